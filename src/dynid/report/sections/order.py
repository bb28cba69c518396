"""The sections of the report of a run, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dynid.report.page import Section
from dynid.report.sections.advice import advice_section
from dynid.report.sections.comparison import comparison_section
from dynid.report.sections.consistency import consistency_section
from dynid.report.sections.data import data_section
from dynid.report.sections.excitation import excitation_section
from dynid.report.sections.filtering import filtering_section
from dynid.report.sections.friction import friction_section
from dynid.report.sections.parameters import parameters_section
from dynid.report.sections.replay import replay_section
from dynid.report.sections.residual import residual_section
from dynid.report.sections.retrieval import retrieval_section
from dynid.report.sections.robot import robot_section
from dynid.report.sections.torque import torque_section
from dynid.report.shown import Shown

SectionMaker: TypeAlias = Callable[[Shown], Section | None]
"""What makes a section of what is shown; None where there is nothing to show."""

IN_ORDER: tuple[SectionMaker, ...] = (
    robot_section,
    torque_section,
    replay_section,
    parameters_section,
    consistency_section,
    retrieval_section,
    friction_section,
    residual_section,
    advice_section,
    excitation_section,
    filtering_section,
    comparison_section,
    data_section,
)
"""What the page shows below the verdict."""
