"""A verdict says what a test of feasibility proved: its numbers hold, and it comes back from plain values."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimation.convex.feasibility import feasibility
from dynid.estimation.convex.verdict import Verdict, combination_text
from dynid.files import read_json, write_json
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.robot.model import Robot
from problems import random_tree


@pytest.fixture(scope="module")
def arm() -> tuple[Robot, BaseReduction]:
    robot = random_tree(3, 4)
    return robot, reduce_to_base(robot)


def verdict_on(arm: tuple[Robot, BaseReduction], values: np.ndarray) -> Verdict:
    robot, base = arm
    return Verdict.of(feasibility(base, values, robot=robot), values, "full", robot.links)


def test_an_infeasible_verdict_names_the_links_and_separates(arm: tuple[Robot, BaseReduction]) -> None:
    robot, base = arm
    values = base.base_values(robot.parameters.values)
    wrong = -values
    found = verdict_on(arm, wrong)
    assert (found.decision, found.proof, found.proven) == ("infeasible", "direction", True)
    factors = dict(found.combination)
    here, there = (
        sum(factors.get(name, 0.0) * value for name, value in zip(base.names, b, strict=True)) for b in (wrong, values)
    )
    assert here == pytest.approx(found.value, abs=1e-5 * np.linalg.norm(values))
    assert found.value < found.bound <= there + 1e-5 * np.linalg.norm(values)
    assert any(link in found.in_conflict for link in robot.links)
    assert combination_text(found.combination) in found.sentence
    assert found.inertia_matrix.endswith("random positions")
    assert found.mass_matrix is not None
    assert found.mass_matrix.positive_share < 1.0


def test_a_feasible_verdict_needs_no_sentence(arm: tuple[Robot, BaseReduction]) -> None:
    robot, base = arm
    found = verdict_on(arm, base.base_values(robot.parameters.values))
    assert (found.decision, found.proof, found.sentence) == ("feasible", "certificate", "")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_verdict_comes_back_from_a_file(arm: tuple[Robot, BaseReduction], sign: float, tmp_path) -> None:
    robot, base = arm
    found = verdict_on(arm, sign * base.base_values(robot.parameters.values))
    write_json(tmp_path / "verdict.json", found.as_dict())
    again = Verdict.from_dict(read_json(tmp_path / "verdict.json", "verdict"))
    assert again.as_dict() == found.as_dict()
    assert again.sentence == found.sentence


def test_nothing_is_called_proven_that_is_not() -> None:
    found = Verdict("boundary", distance=2e-7, lower_bound=1e-9)
    assert not found.proven
    assert "not decided" in found.sentence
    assert "2e-07" in found.sentence
    assert found.as_dict()["proof"] is None


def test_small_terms_are_marked_by_dots() -> None:
    assert combination_text((("Izz3", 0.8), ("m4", -0.5), ("mx5", 0.001))) == "0.8 Izz3 - 0.5 m4 + .."
    assert combination_text((("fv1", 1.0),)) == "1 fv1"
