"""The template: everything escaped, only its own scripts run, every array stored once."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re

import numpy as np

from dynid.finding import Finding
from dynid.report.figure import Figure
from dynid.report.page import Folded, Head, Section, Table, Tabs, Tile, figures_of, page
from dynid.report.panel import Axis, Curve, Panel
from dynid.report.scene import make_scene
from problems import random_tree

HOSTILE = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;"
VERDICT = Head("good", HOSTILE, (Finding("note", HOSTILE, HOSTILE),), (Tile(HOSTILE, HOSTILE, HOSTILE),))


def _figure(name: str = "figure", title: str = "Title") -> Figure:
    x = np.linspace(0.0, 1.0, 50)
    curves = (Curve(title, x, x, "data", texts=(HOSTILE,) * 50), Curve("other", x, x**2, "measured"))
    return Figure(name, title, title, (Panel(title, Axis(title), Axis(title), curves),))


def _embedded(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="embedded">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def _scripts(text: str) -> list[str]:
    return re.findall(r"<script>(.*?)</script>", text, re.DOTALL)


def test_nothing_from_files_becomes_markup() -> None:
    parts = (
        Table((HOSTILE,), ((HOSTILE,),)),
        (Finding("error", HOSTILE, HOSTILE),),
        HOSTILE,
        _figure("a", HOSTILE),
        Tabs(((HOSTILE, _figure("b", HOSTILE)), (HOSTILE, _figure("c", HOSTILE)))),
        Folded(HOSTILE, (HOSTILE,)),
    )
    text = page(HOSTILE, HOSTILE, VERDICT, [Section(HOSTILE, HOSTILE, parts, HOSTILE)])
    clean = page("x", "x", Head("good", "x"), [Section("x", "x", (_figure("a"),))])
    assert "<img src=x" not in text
    assert len(_scripts(text)) == len(_scripts(clean)) == 4
    assert text.count("<script") == clean.count("<script")
    assert HOSTILE in [html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", text)]
    assert HOSTILE in json.dumps(_embedded(text)["figures"]["a"], ensure_ascii=False).replace('\\"', '"')


def test_only_the_scripts_of_the_page_may_run_and_nothing_is_fetched() -> None:
    text = page("t", "s", VERDICT, [Section("one", "", (_figure(),))])
    policy = html.unescape(re.search(r'Content-Security-Policy" content="(.*?)"', text).group(1))
    assert policy.startswith("default-src 'none';")
    allowed = re.search(r"script-src ([^;]*);", policy).group(1)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in _scripts(text)]
    assert allowed.split() == [f"'sha256-{one}'" for one in hashes]
    outside = text[: text.index("<script>")] + text[text.rindex("</script>") :]
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", outside)


def test_plotting_library_comes_only_with_a_plot() -> None:
    plain = page("t", "s", VERDICT, [Section("one", "text", ("x",))])
    assert len(plain) < 60_000
    assert len(page("t", "s", VERDICT, [Section("one", "", (_figure(),))])) > 3_000_000


def test_arrays_are_stored_once_and_exactly() -> None:
    x = np.linspace(0.0, 1.0, 30)
    frozen = Curve("a", x, x**2, "data").x
    curves = (Curve("a", frozen, x**2, "data"), Curve("b", frozen, x**3, "measured"))
    record = _embedded(
        page("t", "s", VERDICT, [Section("one", "", (Figure("f", "", "", (Panel("", Axis(), Axis(), curves),)),))])
    )
    a, b = record["figures"]["f"]["panels"][0]["curves"]
    assert a["x"] == b["x"]
    assert len(record["arrays"]) == 3
    decoded = np.frombuffer(base64.b64decode(record["arrays"][b["y"]]), dtype="<f4")
    np.testing.assert_array_equal(decoded, (x**3).astype(np.float32))


def test_figures_of_one_name_stay_apart() -> None:
    sections = [Section("one", "", (_figure("same"), Folded("more", (_figure("same"),)), Tabs((("t", _figure("same")),))))]
    assert len(_embedded(page("t", "s", VERDICT, sections))["figures"]) == 3
    assert len(figures_of(sections)) == 3


def test_scene_is_embedded_with_its_frames() -> None:
    robot = random_tree(0)
    text = page("t", "s", VERDICT, [Section("one", "", (make_scene(robot, robot, None),))])
    (scene,) = _embedded(text)["scenes"]
    assert [body["joint"] for body in scene["bodies"]] == list(robot.joint_names)
    assert 'class="play"' not in text  # nothing to play
