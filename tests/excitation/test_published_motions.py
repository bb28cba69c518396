"""Motions of Gaz and others 2019 with the numbers as printed: the sinusoids of Table I, the Fourier series of Table II."""

from __future__ import annotations

import json
import math

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

# Panda: modified DH of the paper's Fig. 1, ranges and limits of the manufacturer's data sheet.
DH = [
    (0.0, 0.0, 0.333), (0.0, -0.5, 0.0), (0.0, 0.5, 0.316), (0.0825, 0.5, 0.0),
    (-0.0825, -0.5, 0.384), (0.0, 0.5, 0.0), (0.088, 0.5, 0.0),
]  # fmt: skip
RANGES = [
    (-2.8973, 2.8973), (-1.7628, 1.7628), (-2.8973, 2.8973), (-3.0718, -0.0698),
    (-2.8973, 2.8973), (-0.0175, 3.7525), (-2.8973, 2.8973),
]  # fmt: skip
SPEEDS = [2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61]
ACCELERATIONS = [15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0]

# Table I of the paper: amplitudes (rad/s) and periods (s) of (31).
A = [2.21, -2.21, 1.2, -2.1, -2.3, 2.1, -2.5]
T = [3.68, 2.04, 2.98, 1.75, 4.43, 2.749, 1.06]

# Table II of the supplement: a_l, b_l of five harmonics of 0.15 pi rad/s, and q_0.
FOURIER_A = [
    [-0.2031, 0.1295, -0.009, 0.2319, -0.7598], [-0.0699, -0.538, -0.2015, -0.5535, 0.2352],
    [0.3076, 0.5864, -0.4813, -0.1228, -0.5273], [0.1269, -0.0253, -0.2405, 0.2178, 0.6984],
    [-0.2773, -0.0857, 0.481, 0.5311, -0.1639], [0.21, -0.1194, -0.095, -0.0964, -0.0399],
    [-0.2273, -0.5636, -0.2099, 0.5725, -0.3748],
]  # fmt: skip
FOURIER_B = [
    [-0.1136, 0.66, -0.1858, 0.1867, 0.2357], [-0.2437, 0.182, -0.239, -0.2647, 0.4252],
    [0.3898, -0.0268, 0.0179, 0.4767, 0.2726], [0.0401, -0.1503, 0.2359, -0.2022, 0.3693],
    [0.5491, 0.1046, 0.0407, -0.0432, 0.2448], [0.0692, -0.6946, -0.4442, -0.5749, -0.0698],
    [0.2023, -0.257, -0.501, 0.0774, -0.4833],
]  # fmt: skip
FOURIER_Q0 = [-0.585, -0.1744, -0.3373, -1.8767, -1.0631, 1.7917, -0.7284]


def panda(speeds=SPEEDS):
    joints = [
        {
            "name": f"joint{j + 1}", "type": "revolute", "a": a, "alpha": alpha * math.pi, "d": d, "q_min": low, "q_max": high,
            "dq_max": speed, "ddq_max": rate,
        }
        for j, ((a, alpha, d), (low, high), speed, rate) in enumerate(zip(DH, RANGES, speeds, ACCELERATIONS, strict=True))
    ]  # fmt: skip
    table = {"name": "panda", "gravity": [0.0, 0.0, -9.80665], "dh_convention": "modified", "joint": joints}
    return robot_from_table(table).with_effects([Viscous(), Coulomb(), Offset()])


def test_the_motion_of_table_2_has_a_condition_number_of_95_without_noise():
    """One period of 13.33 s; the printed 121.88 is that of the recorded motion with its noise."""
    robot = panda()
    base = reduce_to_base(robot)
    assert base.n_base == 43 + 21
    motion = FourierTrajectory(2.0 / 0.15, FOURIER_A, FOURIER_B, FOURIER_Q0)
    assert np.linalg.cond(base_regressor(robot, base, motion)) == pytest.approx(95.4, abs=0.1)
    assert margins_of(robot, motion, limits_of(robot)).smallest > 0.0


def test_the_motion_of_table_1_exceeds_the_data_sheet_and_fits_a_faster_arm():
    """2.21 rad/s are printed for joints 1 and 2, whose data sheet has 2.175."""
    robot = panda()
    with pytest.raises(InputError, match=r"exceed the limit of velocity by 1\.61 % .* \(joint[12]\)"):
        given_sinusoids(robot, limits_of(robot), A, T)
    fast = panda([2.5] * 7)
    limits = limits_of(fast)
    motion = given_sinusoids(fast, limits, A, T, duration_s=5.458)
    t = motion.grid(5458)
    np.testing.assert_allclose(motion.derivative(t, 1), np.array(A) * np.sin(2.0 * np.pi * t[:, None] / T), atol=1e-13)
    found = sinusoid_excitation(fast, motion, limits, rest=False)
    assert found.margins.smallest > 0.0
    assert json.dumps(found.as_json())
    assert found.condition_number > 95.4  # made for friction, not for the parameters of links
