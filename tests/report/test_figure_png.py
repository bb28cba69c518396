"""Drawings as PNG files."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from dynid.report.figure import ZOOM, Figure, can_draw_text, figure_svg, png_of
from dynid.report.panel import Axis, Curve, Panel


def test_size_and_words() -> None:
    curve = Curve("line", np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 5), "data")
    drawing = figure_svg(Figure("one", "A title", "", (Panel("panel", Axis("x"), Axis("y"), (curve,)),)))
    content = png_of(drawing)
    width, height = struct.unpack(">II", content[16:24])
    stated = [float(drawing.split(f"{side}='")[1].split("'")[0]) for side in ("width", "height")]
    assert [width, height] == pytest.approx([ZOOM * side for side in stated], abs=1)
    if can_draw_text():
        assert png_of(drawing.replace("A title", "Another title")) != content
