"""Figures as files: well-formed, to scale, and safe with any name."""

from __future__ import annotations

import re

import numpy as np
import pytest
from defusedxml import ElementTree

from dynid.errors import InputError
from dynid.report.figure import Figure, figure_svg, ticks
from dynid.report.panel import Axis, Curve, Mark, Panel, limits_of
from messages import facts

SVG = "{http://www.w3.org/2000/svg}"


def _figure(*panels: Panel, arrangement: str = "grid") -> Figure:
    return Figure("name", "A title", "A caption", panels, arrangement)  # type: ignore[arg-type]


def test_a_line_is_drawn_to_scale() -> None:
    x, y = np.array([0.0, 1.0, 4.0]), np.array([2.0, 0.0, 1.0])
    panel = Panel("p", Axis("x", low=0.0, high=4.0), Axis("y", low=0.0, high=2.0), (Curve("c", x, y, "data"),))
    root = ElementTree.fromstring(figure_svg(_figure(panel)))
    frame = next(element for element in root.iter(f"{SVG}rect") if element.get("fill") == "none")
    left, top, width, height = (float(frame.get(key)) for key in ("x", "y", "width", "height"))
    (line,) = root.iter(f"{SVG}polyline")
    points = np.array([[float(v) for v in pair.split(",")] for pair in line.get("points").split()])
    np.testing.assert_allclose(points[:, 0], left + width * x / 4.0, atol=0.11)
    np.testing.assert_allclose(points[:, 1], top + height * (1.0 - y / 2.0), atol=0.11)


def test_logarithmic_axes_put_decades_at_equal_distances() -> None:
    x = np.array([1.0, 10.0, 100.0])
    panel = Panel("p", Axis(log=True), Axis(log=True), (Curve("c", x, x, "data"),))
    (line,) = ElementTree.fromstring(figure_svg(_figure(panel))).iter(f"{SVG}polyline")
    points = np.array([[float(v) for v in pair.split(",")] for pair in line.get("points").split()])
    np.testing.assert_allclose(np.diff(points[:, 0], n=2), 0.0, atol=0.21)


def test_missing_values_leave_a_gap() -> None:
    y = np.array([0.0, 1.0, np.nan, 2.0, 3.0])
    panel = Panel("p", Axis(), Axis(), (Curve("c", np.arange(5.0), y, "data"),))
    assert len(list(ElementTree.fromstring(figure_svg(_figure(panel))).iter(f"{SVG}polyline"))) == 2


@pytest.mark.parametrize("arrangement", ["grid", "strips"])
def test_every_kind_of_curve_and_hostile_names(arrangement: str) -> None:
    hostile = "</title><script>alert('1')</script>&\""
    x = np.array([1.0, 2.0, 3.0])
    curves = (
        Curve(hostile, x, x, "measured", dashed=True),
        Curve("points", x, x, "data", "points", width=4.0, spread=np.ones(3)),
        Curve("bars", x, x, "prior", "bars", bar=0.5),
    )
    rows = Curve("rows", x, np.arange(3.0), "good", "rows")
    named = Panel(hostile, Axis(hostile), Axis(categories=(hostile, "b", "c")), (rows,), (Mark("x", 1.5, hostile),))
    text = figure_svg(
        _figure(Panel(hostile, Axis(), Axis(), curves, (Mark("y", 1.0, "level"),)), named, arrangement=arrangement)
    )
    root = ElementTree.fromstring(text)
    assert not list(root.iter(f"{SVG}script"))
    assert hostile in [element.text for element in root.iter(f"{SVG}text")]
    assert not re.search(r"\b(nan|inf)\b", text)


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [(0.0, 1.0, False), (-3.3, 7.1, False), (1e-9, 3e-9, False), (-1e6, 1e6, False), (0.01, 1000.0, True), (3.0, 8.0, True)],
)
def test_ticks_are_round_and_inside(low: float, high: float, log: bool) -> None:
    found = np.array(ticks(low, high, 5, log))
    assert 2 <= len(found) <= 12
    slack = 1e-9 * (high - low)
    assert (found >= low - slack).all()
    assert (found <= high + slack).all()
    digits = np.array([float(f"{value:.2g}") for value in found])
    np.testing.assert_allclose(digits, found, rtol=1e-9, atol=1e-12 * (high - low))


def test_limits_hold_everything_drawn() -> None:
    curve = Curve("c", np.array([1.0, 2.0]), np.array([5.0, 6.0]), "data", spread=np.array([1.0, 3.0]))
    panel = Panel("", Axis(), Axis(low=0.0), (curve,), (Mark("x", 4.0, "limit"),))
    low, high = limits_of(panel, "x")
    assert low < 1.0
    assert high > 4.0
    low, high = limits_of(panel, "y")
    assert low == 0.0
    assert high > 9.0


def test_parts_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match=facts("'c'", "2", "3", "length")):
        Curve("c", np.zeros(2), np.zeros(3), "data")
    with pytest.raises(InputError, match="figure 'f' has no panel"):
        Figure("f", "", "", ())


def test_drawings_of_two_figures_fit_into_one_page() -> None:
    """Names inside a drawing are its own: clip paths of one figure must not cut another's curves."""
    x = np.array([0.0, 1.0])
    panel = Panel("p", Axis(), Axis(), (Curve("c", x, x, "data"),))
    names = [set(re.findall(r"id='([^']+)'", figure_svg(Figure(name, "t", "c", (panel, panel))))) for name in ("one", "two")]
    assert len(names[0]) == 2
    assert not names[0] & names[1]


def test_a_notebook_shows_a_figure() -> None:
    x = np.array([0.0, 1.0])
    figure = _figure(Panel("p", Axis(), Axis(), (Curve("c", x, x, "data"),)))
    assert figure._repr_svg_() == figure_svg(figure)
