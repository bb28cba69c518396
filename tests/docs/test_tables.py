"""Tables of the pages: every marker has its function, what is missing is said, and what fails ends the build."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from messages import facts

pytest.importorskip("mkdocs", reason="the pages are built by mkdocs, of the extra 'docs'")

from mkdocs.exceptions import PluginError

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
PAPERS = ("gautier_khalil1992", "gaz2019", "lomakin2020", "sousa2014", "traversaro2016")
MODULES = PAPERS


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The hook as MkDocs loads it: the folder is on the path for that moment. Fresh each time, with nothing computed."""
    for name in [name for name in sys.modules if name.split(".")[0] == "tables_of"]:
        monkeypatch.delitem(sys.modules, name)
    with monkeypatch.context() as loading:
        loading.syspath_prepend(str(DOCS))
        spec = importlib.util.spec_from_file_location("docs/tables.py", DOCS / "tables.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DYNID_SHARED_DATA", str(tmp_path))


def rendered(hook: ModuleType, text: str) -> str:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="papers/page.md"))
    return str(hook.on_page_markdown(text, page=page, config=None, files=None))


def invented(hook: ModuleType, monkeypatch: pytest.MonkeyPatch, function) -> None:
    """Let every marker stand for this function."""
    monkeypatch.setattr(hook, "table_named", lambda name, page: function)


def markers() -> list[tuple[str, str]]:
    found = re.compile(r"^<!--\s*table:\s*(.*?)\s*-->", re.MULTILINE)
    return [
        (str(path.relative_to(DOCS)), name)
        for path in sorted(DOCS.rglob("*.md"))
        for name in found.findall(path.read_text("utf-8"))
    ]


def test_every_marker_names_a_function_and_every_function_is_shown(hook):
    asked = markers()
    assert {name.split(".")[0] for _, name in asked} == set(MODULES)
    for page, name in asked:
        assert callable(hook.table_named(name, page))
    there = {f"{one}.{name}" for one in MODULES for name in hook.tables_in(importlib.import_module(f"tables_of.{one}"))}
    assert there == {name for _, name in asked}


def test_a_marker_is_looked_for_wherever_the_word_stands(hook):
    """No marker that is spelt a little differently stays in a page unseen."""
    for path in DOCS.rglob("*.md"):
        text = path.read_text("utf-8")
        assert len(re.findall(r"<!--\s*table", text)) == len(hook.MARKER.findall(text)), path


def test_marker_becomes_the_table_and_the_rest_stays(hook, monkeypatch):
    invented(hook, monkeypatch, lambda: "| a |\n| --- |\n| 1 |")
    text = rendered(hook, "before\n\n<!-- table: sousa2014.table_1 -->\n\nafter `<!-- table: x -->`\n")
    assert text.startswith(
        "before\n\n| a |\n| --- |\n| 1 |\n\n<small>Computed in this build by `docs/tables_of/sousa2014.py`, in "
    )
    assert text.endswith(" s.</small>\n\nafter `<!-- table: x -->`\n")


def test_the_seconds_are_those_of_the_table_and_it_is_computed_once(hook, monkeypatch):
    calls = []

    def slow() -> str:
        calls.append(1)
        time.sleep(0.05)
        return "| a |"

    invented(hook, monkeypatch, slow)
    first = rendered(hook, "<!-- table: sousa2014.slow -->")
    assert float(re.findall(r"in ([\d.]+) s\.", first)[0]) >= 0.05
    assert rendered(hook, "<!-- table: sousa2014.slow -->") == first
    assert len(calls) == 1


def test_an_exception_in_a_table_ends_the_build_and_names_it(hook, monkeypatch):
    def broken() -> str:
        raise ZeroDivisionError("no rows")

    invented(hook, monkeypatch, broken)
    with pytest.raises(ZeroDivisionError, match="no rows") as caught:
        rendered(hook, "<!-- table: sousa2014.broken -->")
    assert caught.value.__notes__ == ["while building table 'sousa2014.broken' of papers/page.md"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "sousa2014.table_9",
            "papers/page.md asks for the table 'sousa2014.table_9', which docs/tables_of/sousa2014.py does not",
        ),
        ("sousa2014._wam", "papers/page.md asks for the table 'sousa2014._wam', which"),
        ("sousa2014.markdown", "papers/page.md asks for the table 'sousa2014.markdown', which"),
        (
            "sousa2014",
            "papers/page.md asks for the table 'sousa2014'; expected MODULE.FUNCTION with a module of docs/tables_of",
        ),
        ("nobody.table_1", "papers/page.md asks for the table 'nobody.table_1'; expected MODULE.FUNCTION"),
        ("__init__.shared", "papers/page.md asks for the table '__init__.shared'; expected"),
        ("", "papers/page.md asks for the table ''; expected"),
    ],
)
def test_unknown_names_are_refused_with_what_there_is(hook, name, sentence):
    with pytest.raises(PluginError) as caught:
        rendered(hook, f"<!-- table: {name} -->")
    assert str(caught.value).startswith(sentence)
    offered = "table_1" if name.startswith("sousa2014.") else "gautier_khalil1992, gaz2019, "
    assert offered in str(caught.value)


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("sousa2014.table_8", "robots/wam7.toml"),
        ("gaz2019.retrieval", "panda_gaz/expected.json"),
        ("gaz2019.static_set", "panda_gaz/static_mg.parquet"),
    ],
)
def test_missing_data_are_said_in_one_sentence(hook, name, file):
    text = rendered(hook, f"<!-- table: {name} -->")
    assert text == (
        f"*The file `{file}` of the published data is not on the machine that built this page "
        "(`DYNID_SHARED_DATA` names the folder), so this table was not built.*"
    )


def test_without_any_folder_the_same_sentence(hook, monkeypatch, tmp_path):
    monkeypatch.delenv("DYNID_SHARED_DATA", raising=False)
    monkeypatch.setattr(hook.tables_of, "REPOSITORY", tmp_path / "repository")
    assert "`robots/wam7.toml` of the published data is not" in rendered(hook, "<!-- table: sousa2014.table_3 -->")
    (tmp_path / "shared" / "data" / "robots").mkdir(parents=True)
    (tmp_path / "shared" / "data" / "robots" / "wam7.toml").touch()
    assert hook.tables_of.shared("robots/wam7.toml") == tmp_path / "shared" / "data" / "robots" / "wam7.toml"


def test_rows_of_another_length_are_refused(hook):
    with pytest.raises(ValueError, match=facts("1", "2", "row")):
        hook.tables_of.markdown(("a", "b"), [("1",)])


def built(folder: Path, marker: str) -> subprocess.CompletedProcess[str]:
    """MkDocs itself, on one page with the hook."""
    (folder / "docs").mkdir()
    (folder / "docs" / "index.md").write_text(f"# Page\n\n{marker}\n", "utf-8")
    settings = f"site_name: page\nstrict: true\nhooks: ['{DOCS / 'tables.py'}']\nmarkdown_extensions: [tables]\n"
    (folder / "mkdocs.yml").write_text(settings, "utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_mkdocs_builds_a_page_with_a_table(tmp_path):
    done = built(tmp_path, "<!-- table: sousa2014.verdicts -->")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert re.search(r"<td[^>]*>1\.650e-03</td>", page)
    assert "Computed in this build" in page


def test_mkdocs_fails_with_the_sentence_when_a_table_is_unknown(tmp_path):
    done = built(tmp_path, "<!-- table: sousa2014.table_9 -->")
    assert done.returncode != 0
    assert "index.md asks for the table 'sousa2014.table_9'" in done.stderr
    assert "Traceback" not in done.stderr


# Cheap tables: they hold the published figures and ours beside them, without any data --------------------------------


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| ")]


@pytest.mark.usefixtures("no_data")
def test_sousa_table_1(hook):
    rows = {row[0]: row[1:] for row in cells(rendered(hook, "<!-- table: sousa2014.verdicts -->"))}
    assert rows["t1, plain"][:2] == ["feasible", "feasible"]
    assert rows["t2, plain"][:2] == ["infeasible", "infeasible"]
    assert rows["t2, plain"][3:] == ["1.65e-3", "1.650e-03"]
    assert [rows[f"{t}, full"][1] for t in ("t1", "t2")] == ["infeasible", "infeasible"]
    rows = {row[0]: row[1:] for row in cells(rendered(hook, "<!-- table: sousa2014.table_1 -->"))}
    assert len(rows) == 15 + 3
    printed, ours = rows["`L3xx - L3yy`"][2:4]
    assert printed == "-0.719049"
    assert float(ours) == pytest.approx(float(printed), abs=5e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("no_data")
def test_traversaro_table_1(hook):
    rows = {row[0]: row[1:] for row in cells(rendered(hook, "<!-- table: traversaro2016.table_1 -->"))}
    speeds = ("10 s", "5 s", "2 s", "1 s", "0.5 s")
    assert [rows[f"{speed}, least squares"][-1] for speed in speeds] == ["no"] * 5
    assert [rows[f"{speed}, manifold"][-1] for speed in speeds] == ["yes", "yes", "no", "yes", "yes"]
    assert rows["0.5 s, least squares"][:2] == ["yes", "no"]


@pytest.mark.usefixtures("no_data")
def test_lomakin_kernels(hook):
    rows = {row[0]: row[1:] for row in cells(rendered(hook, "<!-- table: lomakin2020.kernels -->"))}
    assert rows["Savitzky-Golay 11, order 2"][0] == "4.2e-03"
    assert rows["polynomial approximation, paper"][:3] == ["2.5e-06", "6.7e-05", "6.9e-04"]


@pytest.mark.usefixtures("no_data")
def test_gaz_two_links(hook):
    rows = {row[0]: row[1:] for row in cells(rendered(hook, "<!-- table: gaz2019.two_links -->"))}
    assert rows["masses, kg"][0] == "8, 3"
    assert rows["fully consistent"] == ["yes", "yes", "no"]
    assert rows["bounds and conditions violated"][1] == "0"


# What the pages tell the reader to type ----------------------------------------------------------------------------


@pytest.mark.parametrize("paper", ["sousa2014", "traversaro2016"])
def test_python_of_the_page_runs_and_says_what_it_says(paper):
    (example,) = re.findall(r"```python\n(.*?)```", (DOCS / "papers" / f"{paper}.md").read_text("utf-8"), flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, paper, "exec"), names)
    said = re.findall(r"^(.+?)  # (True|False)\b", example, flags=re.MULTILINE)
    assert said
    for expression, value in said:
        assert str(eval(expression, names)) == value  # noqa: S307 - the page's own line


def test_commands_of_the_pages_exist():
    from typer.main import get_command

    from cli_program import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    lines = [
        line
        for paper in PAPERS
        for line in re.findall(r"^dynid (.*)$", (DOCS / "papers" / f"{paper}.md").read_text("utf-8"), flags=re.MULTILINE)
    ]
    assert len(lines) > 2
    for line in lines:
        words = line.split("#")[0].split()
        options = {option for parameter in commands[words[0]].params for option in parameter.opts}
        assert not [word for word in words[1:] if word.startswith("-") and word not in options]


@pytest.mark.parametrize("paper", PAPERS)
def test_tests_and_benchmarks_that_a_page_names_exist(paper):
    text = (DOCS / "papers" / f"{paper}.md").read_text("utf-8")
    named = re.findall(r"\b((?:tests|benchmarks)/[\w/]+\.py)", text)
    assert named
    for name in named:
        assert (REPOSITORY / name).is_file(), name


def test_a_load_of_known_mass_and_centre_alone_has_no_inertia_in_any_controller():
    """Every form stands in the page as it is written; numbers of all but those of simulators are 2 kg, 50 mm, and zeros."""
    from dynid.io.vendors import FORMS, vendor_text

    load = (2.0, 0.0, 0.0, 0.1, 0.02, 0.0, 0.02, 0.0, 0.0, 0.01)  # its inertia is a guess
    page = (DOCS / "loads.md").read_text("utf-8")
    for name, form in FORMS.items():
        written = vendor_text(name, load, form.links[0] if form.links else "tool0", inertia_known=False)
        lines = "<br>".join(f"`{line.strip()}`" for line in written.text.splitlines())
        told = form.without_inertia or "the consistent body nearest to the data: a simulator needs one"
        assert f"| `{name}` | {lines} | {told} |" in page
        if name not in ("urdf", "mjcf"):
            assert "0.015" not in lines
            assert re.search(r"\b(0\.05|50|5)\b", lines), name
