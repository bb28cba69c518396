"""Motions of Gaz and others 2019 with the numbers as printed: the sinusoids of Table I, the Fourier series of Table II."""

from __future__ import annotations

import json
import math
import tomllib

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.excitation.fourier import FourierTrajectory
from dynid.excitation.judged import base_regressor
from dynid.excitation.limits import limits_of, margins_of
from dynid.excitation.sinusoids import given_sinusoids, sinusoid_excitation
from dynid.regression.base import reduce_to_base
from dynid.robot.dh import robot_from_table
from dynid.robot.effects import Coulomb, Offset, Viscous
from messages import facts
from published import robot_file, tables

# Table I of the paper: amplitudes (rad/s) and periods (s) of (31).
A = [2.21, -2.21, 1.2, -2.1, -2.3, 2.1, -2.5]
T = [3.68, 2.04, 2.98, 1.75, 4.43, 2.749, 1.06]


def panda(speed: float | None = None):
    """The arm of the paper, or one whose joints all turn at up to another speed."""
    table = tomllib.loads(robot_file("panda").read_text("utf-8"))
    for joint in table["joint"]:
        del joint["tau_max"]  # the table has no inertials
        joint["dq_max"] = joint["dq_max"] if speed is None else speed
    return robot_from_table(table).with_effects([Viscous(), Coulomb(), Offset()])


def test_the_motion_of_table_2_has_a_condition_number_of_95_without_noise():
    """One period of 13.33 s; the printed 121.88 is that of the recorded motion with its noise."""
    robot = panda()
    base = reduce_to_base(robot)
    assert base.n_base == 43 + 21
    printed = tables("gaz2019")["table_2"]
    motion = FourierTrajectory(2.0 * math.pi / printed["rate_rad_s"], printed["a"], printed["b"], printed["q0"])
    assert np.linalg.cond(base_regressor(robot, base, motion)) == pytest.approx(95.4, abs=0.1)
    assert margins_of(robot, motion, limits_of(robot)).smallest > 0.0


def test_the_motion_of_table_1_exceeds_the_data_sheet_and_fits_a_faster_arm():
    """2.21 rad/s are printed for joints 1 and 2, whose data sheet has 2.175."""
    robot = panda()
    with pytest.raises(InputError, match=facts("1.61", "joint", "velocity", "limit")):
        given_sinusoids(robot, limits_of(robot), A, T)
    fast = panda(2.5)
    limits = limits_of(fast)
    motion = given_sinusoids(fast, limits, A, T, duration_s=5.458)
    t = motion.grid(5458)
    np.testing.assert_allclose(motion.derivative(t, 1), np.array(A) * np.sin(2.0 * np.pi * t[:, None] / T), atol=1e-13)
    found = sinusoid_excitation(fast, motion, limits, rest=False)
    assert found.margins.smallest > 0.0
    assert json.dumps(found.as_json())
    assert found.condition_number > 95.4  # made for friction, not for the parameters of links
