"""Criterion and limits as functions of coefficients: gradients, and what stands in the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli_program import dynid
from dynid.excitation.criteria import SpectralCriterion
from dynid.excitation.design_problem import SMOOTH_SIGN, DesignProblem, with_smooth_sign
from dynid.excitation.limits import limits_of
from dynid.excitation.shapes import FourierShape
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.effects.wrapped import Coupled
from dynid.regression.base import BaseReduction, reduce_to_base
from problems import arm_with_hand_urdf, demo_arm, planar_2r


def test_obstacles_are_told_with_flags_that_move_them():
    from dynid.excitation.design_problem import _remedies

    assert _remedies(["clearance of 'hand' and 'elbow' in 90 %"]) == ""
    assert "--ground none or --ground HEIGHT" in _remedies(["clearance of 'hand' and 'ground' in 52 %"])
    ceiling = _remedies(["clearance of '--ceiling' and 'hand' in 52 %", "clearance of '--box 2' and 'hand' in 9 %"])
    assert "another place or size of --box 2, --ceiling, or a smaller --clearance" in ceiling
    room = _remedies(["tool room of 'tool, x' in 100 %"])
    assert "--keep-in" in room
    assert "--torque" not in room
    both = _remedies(["clearance of 'ground' and 'hand' in 52 %", "torque of joint 'a' (22, ..) in 24 %"])
    assert both.startswith("; try --ground none")
    assert "--position LOW:HIGH,.." in both
    assert "--torque" in both


def arm():
    """Three joints of the built-in arm."""
    return demo_arm().only(["shoulder_yaw", "shoulder_pitch", "elbow"])


@pytest.fixture(scope="module")
def robot():
    return arm()


def test_gradient_of_the_whole_problem():
    robot = planar_2r([Viscous(), Coulomb(), Offset(), Armature()])
    robot = replace(robot, joints=tuple(replace(joint, tau_max=100.0) for joint in robot.joints))
    limits = limits_of(robot, tool_speed=20.0)
    for base in (reduce_to_base(robot), BaseReduction.from_matrix(_mixed(reduce_to_base(robot)), robot.parameters.names)):
        problem = DesignProblem.of(robot, base, FourierShape(5.0, 2), limits, scaled=True, torque_noise=[1.0, 0.5])
        x = problem.random_start(np.random.default_rng(0))
        value, gradient = problem.function(x, SpectralCriterion("condition", 4.0), 0.1)
        assert np.isfinite(value)
        h = 1e-6
        expected = [
            (
                problem.function(x + s, SpectralCriterion("condition", 4.0), 0.1)[0]
                - problem.function(x - s, SpectralCriterion("condition", 4.0), 0.1)[0]
            )
            / (2.0 * h)
            for s in h * np.eye(len(x))
        ]
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)


def _mixed(base):
    """Another grouping, which is no choice of columns."""
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(base.n_base, base.n_base)))
    return Q @ base.K


def test_a_robot_too_weak_for_its_weight_is_told_which_joint(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(arm_with_hand_urdf(effort=0.02))
    done = dynid("excite", path, "--seconds", 2, "--starts", 1, "--ground", "none", "-o", tmp_path / "m.csv")
    assert done.returncode == 2
    assert "torque of joint 'lift_joint' (0.014, while gravity" in done.stderr
    assert not (tmp_path / "m.csv").exists()


def test_a_motion_led_away_from_another_keeps_every_limit_and_lies_between_it_and_a_random_one():
    robot = demo_arm()
    problem = DesignProblem.of(robot, reduce_to_base(robot), FourierShape(5.0, 3), limits_of(robot))
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = problem.random_start(rng)
        moved = problem.led_away(x, rng, (0.1, 0.5))
        assert problem.inside(moved)
        assert np.abs(moved - x).max() > 0.0


def test_a_robot_with_weak_drives_is_told_that_its_motion_is_poor(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(arm_with_hand_urdf(effort=0.5))
    done = dynid("excite", path, "--seconds", 2, "--starts", 1, "--ground", "none", "-o", tmp_path / "m.csv")
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    assert "this motion is poor" in said
    assert "torque (lift_joint): try a longer --period" in said
    path.write_text(arm_with_hand_urdf())
    done = dynid("excite", path, "--seconds", 2, "--starts", 1, "--ground", "none", "-o", tmp_path / "m.csv")
    assert "poor" not in done.stdout


def test_sharp_signs_become_smooth_and_others_stay():
    robot = planar_2r()
    widths = tuple((SMOOTH_SIGN * robot.limits("dq_max")).tolist())

    def smooth(effect):
        return with_smooth_sign(robot.with_effects([effect]), limits_of(robot)).effects[0]

    assert smooth(Coulomb(dead_zone=0.1)) == Coulomb(smooth_width=widths)
    assert smooth(Coulomb(smooth_width=0.3)) == Coulomb(smooth_width=0.3)
    assert smooth(Viscous()) == Viscous()
    inner = smooth(Coupled(Coulomb(), ((1.0, 0.0), (0.0, 1.0))))
    assert np.all(np.asarray(inner.effect.smooth_width) > 0.0)
