"""Verbs that take a robot, logs or a store; and that no verb of the program is left out of the matrix."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynid.cli.program import VERBS
from dynid.pipeline.row_plan import row_kinds
from matrix_place import DATA, ENGINES_TO_TRY, METHODS, ON_RUNS, OTHERS, RUNS, Place, cell, every_other

LINEAR = ("--friction", "linear", "--cutoff-hz", 8)
SLOW = ("excite", "demo", "payload online", "watch polynomial", "actuators", "gains sdp", "fleet")


@pytest.mark.parametrize("given", [cell(name, slow=name in SLOW) for name in OTHERS])
def test_every_other_verb(place: Place, given: tuple[str]) -> None:
    words = OTHERS[given[0]]
    place.ends(*words, "--json", stdin="log1.csv" if words[0] == "watch" else "")


COMPARED = [kind for kind in DATA if not {"--coefficients", "--fix-bodies", "--flat-feet"} & set(DATA[kind])]


@pytest.mark.parametrize("given", [cell(kind, slow=kind != "torque") for kind in COMPARED])
def test_compare_on_every_kind_of_data(place: Place, given: tuple[str]) -> None:
    """All methods side by side; a method that cannot work there says so in its row."""
    words = [word for word in DATA[given[0]] if word not in ("--export", "json")]
    place.ends("compare", *words, "--json")


QUICK_METHODS = every_other(METHODS)


@pytest.mark.parametrize("given", [cell(method, slow=not QUICK_METHODS(method)) for method in METHODS])
def test_every_method_on_a_store(place: Place, given: tuple[str]) -> None:
    words = ("store", "identify", "STORE", "--where", "robot=A", "--method", given[0], "-o", f"stored_{given[0]}")
    place.ends(*words, "--json")


@pytest.mark.parametrize(
    "given", [cell(engine, verb, slow=engine != "threads:2") for engine in ENGINES_TO_TRY for verb in ("identify", "fleet")]
)
def test_every_engine_on_a_store(place: Place, given: tuple[str, str]) -> None:
    engine, verb = given
    words = ("store", "identify", "STORE") if verb == "identify" else ("fleet", "STORE", "-o", "fleet.html")
    assert place.ends(*words, "--engine", engine, "--json").returncode < 2


@pytest.mark.parametrize(
    "given",
    [cell(rows, stream, slow=(rows, stream) != ("torque", "off")) for rows in row_kinds() for stream in ("off", "on")],
)
def test_a_store_of_every_kind_of_rows(place: Place, given: tuple[str, str], tmp_path: Path) -> None:
    rows, stream = given
    words = ("--rows", rows, "--stream", stream, "--robot-id", "R", "--day", "2026-03-01", *LINEAR)
    added = place.ends("store", "add", "arm.urdf", "log1.csv", "--to", tmp_path / "store", *words, "--json")
    if added.returncode == 0:
        for verb in (("store", "identify"), ("store", "list"), ("fleet",)):
            place.ends(*verb, tmp_path / "store", "--json")


def test_every_verb_is_in_the_matrix() -> None:
    """A verb that is added to the program is added here."""
    met = {str(words[0]) for words in (*OTHERS.values(), *ON_RUNS.values())} | {"identify", "compare", "store"}
    assert met == set(VERBS)
    assert len(RUNS) == len(DATA) + 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OTHERS if name not in ("demo", "excite")])
def test_the_text_of_every_other_verb(place: Place, name: str) -> None:
    words = OTHERS[name]
    place.ends(*words, stdin="log1.csv" if words[0] == "watch" else "")
