"""Groups of options: every option stands in one section, and the shared groups hold only their own."""

from __future__ import annotations

from dataclasses import fields

import pytest

from dynid.pipeline.option_groups import FLOATING, MODEL, READING, SECTIONS, TORQUE, WRENCH, Model, Reading
from dynid.pipeline.options import Settings


@pytest.mark.parametrize(("group", "heading"), [(Model, MODEL), (Reading, READING)])
def test_a_shared_group_holds_the_options_of_its_section_and_no_others(group: type, heading: str) -> None:
    own = [one.name for one in fields(group)]
    assert own == [one.name for one in fields(Settings) if one.metadata["group"] == heading]


def test_sections_stand_together_and_in_order() -> None:
    found = [one.metadata["group"] for one in fields(Settings)]
    assert list(dict.fromkeys(found)) == list(SECTIONS.values())
    assert sorted(found, key=list(SECTIONS.values()).index) == found


def test_options_name_the_logs_that_they_are_for() -> None:
    for one in fields(Settings):
        assert set(one.metadata["only_for"] or ()) <= {TORQUE, WRENCH, FLOATING}, one.name
