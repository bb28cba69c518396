"""A motion with its ramps and repeats, and its properties."""

from __future__ import annotations

import pytest

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


def test_periods_without_ramps(robot):
    base = reduce_to_base(robot)
    found = search_excitation(robot, base, SHAPE, starts=1, periods=3, engine="serial", limits=limits_of(robot), rest=False)
    assert found.playable.duration_s == pytest.approx(3 * SHAPE.period_s)
    with pytest.raises(InputError, match="cannot be repeated 2 times"):
        search_excitation(
            robot, base, BSplineShape(6.0, 7), starts=1, periods=2, engine="serial", limits=limits_of(robot), rest=False
        )
