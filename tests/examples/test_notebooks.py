"""The notebooks run as they stand, their stored outputs are whole, and without the recordings they end with one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from shared_data import shared

FOLDER = Path(__file__).resolve().parents[2] / "examples"
NEEDS = {"panda": "panda_gaz/exciting_traj_1.parquet", "ur10e": "ur10e_mamedov/index.csv"}
ORIGIN = {"panda": "marcocognetti/FrankaEmikaPandaDynModel", "ur10e": "shamilmamedov/dynamic_calibration"}
LARGEST_FILE = 400_000
OF_A_MACHINE = re.compile(r"(?<![\w.])/(?:work|home|tmp|root|Users|usr|opt|var|mnt)/|[A-Z]:\\\\")

notebooks = pytest.mark.parametrize("name", sorted(NEEDS))


def _read(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def _code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _kinds(notebook):
    """What every cell puts out: names of streams, types of displays; but for what kernels say when they are first compiled."""
    return [
        [
            output.get("name") or tuple(sorted(output.get("data", ()))) or output.output_type
            for output in cell.outputs
            if not (
                output.get("name") == "stderr" and all(line.startswith("compiling ") for line in output.text.splitlines())
            )
        ]
        for cell in _code(notebook)
    ]


def _run(notebook, folder):
    options = {"timeout": 300, "coalesce_streams": True, "resources": {"metadata": {"path": str(folder)}}}
    NotebookClient(notebook, **options).execute()


def test_no_notebook_is_left_out():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NEEDS)


@pytest.mark.slow
@notebooks
def test_runs_and_every_claim_holds(name):
    shared(NEEDS[name])
    stored, fresh = _read(name), _read(name)
    _run(fresh, FOLDER)
    assert _kinds(fresh) == _kinds(stored)
    assert not any("stderr" in kinds for kinds in _kinds(fresh))


@notebooks
def test_stored_outputs(name):
    path = FOLDER / f"{name}.ipynb"
    assert path.stat().st_size < LARGEST_FILE
    notebook = _read(name)
    nbformat.validate(notebook)
    cells = _code(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert sum("image/svg+xml" in output.get("data", ()) for output in outputs) >= 4
    assert not OF_A_MACHINE.findall(path.read_text())


@notebooks
def test_numbers_in_the_text_are_asserted(name):
    """A cell of text with a figure in percent, kilograms or milliseconds is followed by an assertion before the next text."""
    cells = _read(name).cells
    texts = [i for i, cell in enumerate(cells) if cell.cell_type == "markdown"]
    claims = [
        (start, end)
        for start, end in zip(texts, [*texts[1:], len(cells)], strict=True)
        if re.search(r"\d\s(?:%|kg|ms|mm)\b|\d\s%", cells[start].source)
    ]
    assert claims
    for start, end in claims:
        assert any("assert " in cell.source for cell in cells[start + 1 : end]), cells[start].source


@notebooks
def test_without_recordings_it_ends_with_one_sentence(name, tmp_path, monkeypatch):
    empty, elsewhere = tmp_path / "empty", tmp_path / "elsewhere"
    empty.mkdir()
    elsewhere.mkdir()
    monkeypatch.setenv("DYNID_SHARED_DATA", str(empty))
    notebook = _read(name)
    for cell in _code(notebook):
        cell.outputs, cell.execution_count = [], None
    with pytest.raises(CellExecutionError):
        _run(notebook, elsewhere)
    first, *others = _code(notebook)
    (said,) = first.outputs
    assert said.ename == "MissingDataError"
    (sentence,) = said.traceback
    assert ORIGIN[name] in sentence
    assert "DYNID_SHARED_DATA" in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert not any(cell.outputs for cell in others)
