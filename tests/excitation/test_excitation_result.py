"""A motion with its ramps and repeats, and its properties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.excitation.limits import limits_of
from dynid.excitation.search import search_excitation
from dynid.excitation.shapes import BSplineShape, FourierShape
from dynid.regression.base import reduce_to_base
from problems import demo_arm

SHAPE = FourierShape(6.0, 3)


def arm():
    """Three joints of the built-in arm."""
    return demo_arm().only(["shoulder_yaw", "shoulder_pitch", "elbow"])


@pytest.fixture(scope="module")
def robot():
    return arm()


@pytest.fixture(scope="module")
def found(robot):
    return search_excitation(
        robot, shape=SHAPE, starts=3, seed=1, rest=True, periods=2, engine="serial", limits=limits_of(robot)
    )


def test_the_condition_of_what_is_played_counts_the_ramps(robot, found):
    q, v, a = found.playable.evaluate(found.playable.grid(20_000))
    Y = torque_regressor(robot, q, v, a)
    singular = np.linalg.svd(found.base.regressor(Y.reshape(-1, Y.shape[2])), compute_uv=False)
    assert found.played_condition_number == pytest.approx(singular[0] / singular[-1], rel=1e-3)
    assert f"{found.played_condition_number:.4g} with its ramps" in found.in_words()
    alone = replace(found, playable=found.trajectory)
    assert alone.played_condition_number == alone.condition_number
    assert "ramps" not in alone.in_words()


class Gap:
    """Stands for what is kept apart: a pair whose distance at the start is given and falls with the distance of any joint from it."""

    notes = ("shapes are guessed",)

    def __init__(self, start, gap):
        self.start, self.gap = start, gap

    def distances(self, q):
        return self.gap - np.abs(q - self.start).max(axis=1, keepdims=True)

    def name_of(self, k):
        return ["arm - table"][k]


@pytest.mark.parametrize(("gap", "told"), [(0.0086, 1), (0.0088, 0)])
def test_what_may_touch_within_half_a_degree_of_the_start_is_told(found, gap, told):
    start = found.playable.derivative([0.0], 0)
    near = replace(found, limits=replace(found.limits, clearance=Gap(start, gap)))
    assert near.warnings[0] == "shapes are guessed"
    assert sum("arm - table may touch" in note for note in near.warnings) == told


def test_periods_without_ramps(robot):
    base = reduce_to_base(robot)
    found = search_excitation(robot, base, SHAPE, starts=1, periods=3, engine="serial", limits=limits_of(robot), rest=False)
    assert found.playable.duration_s == pytest.approx(3 * SHAPE.period_s)
    with pytest.raises(InputError, match="cannot be repeated 2 times"):
        search_excitation(
            robot, base, BSplineShape(6.0, 7), starts=1, periods=2, engine="serial", limits=limits_of(robot), rest=False
        )
