"""Pictures of a designed motion."""

from __future__ import annotations

from designed_motion import designed_motion
from dynid.pipeline.sections.motion import excitation_section, picture
from dynid.report.page import Head, figures_of, page


def test_pictures():
    excitation = designed_motion()
    html = picture(excitation)
    for text in (
        "excitation_positions",
        "excitation_singular_values",
        "excitation_tool",
        "Clearance was not checked",
        "The robot in motion",
    ):
        assert text in html
    assert '"scenes":[{' in html  # the robot itself plays the motion
    section = excitation_section(excitation)
    figures = figures_of([section])
    assert [figure.name for figure in figures] == [
        "excitation_limits", "excitation_positions", "excitation_singular_values", "excitation_tool"
    ]  # fmt: skip
    assert len(figures[1].panels) == 2
    assert {mark.value for mark in figures[1].panels[0].marks} == {-3.0, 3.0}
    shares = figures[0].panels[0].curves[0].y
    assert 0.0 < shares.max() <= 100.0
    assert "a note &lt;b&gt;" in page("motion", "", Head("good", "fine"), [section])
