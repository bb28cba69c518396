"""Simulation: the truth obeys the regressor, the integration obeys physics, the log looks like a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.regressors import energy_regressor, torque_regressor
from dynid.dynamics.simulate import (
    ComputedTorque,
    Controller,
    effect_values,
    exact_motion,
    simulate,
    told_effects,
    with_effect,
)
from dynid.errors import InconsistentModelError, InputError
from dynid.excitation.shapes import random_fourier
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.effect import Effect
from dynid.model.effects.jointwise import Coefficient, JointwiseEffect
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.joint import Joint
from dynid.model.robot import make_robot
from dynid.regression.base import reduce_to_base
from dynid.signals.samples import Samples
from gravity_controller import GravityPD
from messages import facts
from problems import demo_arm, planar_2r, random_tree

FRICTION = (Viscous(), Coulomb(), Offset(), Armature())


def reference(robot, seconds=2.0, seed=1):
    return random_fourier(robot, seconds, 3, seed).samples(200.0)


def relative(x, y):
    return float(np.abs(x - y).max() / np.abs(y).max())


@pytest.fixture(scope="module")
def demo():
    robot = demo_arm()
    return robot, simulate(robot, random_fourier(robot, 5.0, 4, seed=3).samples(200.0), seed=7)


@pytest.mark.parametrize("controller", [ComputedTorque(), GravityPD()])
def test_true_torque_is_what_the_regressor_explains(controller):
    robot = random_tree(2, 5, effects=FRICTION)
    slow = random_fourier(robot, 4.0, 2, seed=0, fraction=0.3).samples(100.0)
    result = simulate(robot, slow, controller=controller, rate_hz=500.0)
    truth = result.truth
    explained = inverse_dynamics(result.robot, truth.position, truth.velocity, truth.acceleration)
    assert relative(explained, truth.torque) < 1e-12


def test_base_parameters_are_recovered_exactly_from_the_truth(demo):
    _, result = demo
    base = reduce_to_base(result.robot)
    truth = result.truth[::7]
    Y = torque_regressor(result.robot, truth.position, truth.velocity, truth.acceleration)
    W = Y.reshape(-1, Y.shape[2]) @ base.lift
    scale = np.linalg.norm(W, axis=0)
    beta = np.linalg.lstsq(W / scale, truth.torque.ravel(), rcond=None)[0] / scale
    expected = base.base_values(result.robot.parameters)
    assert np.abs(beta - expected).max() < 1e-9 * np.abs(expected).max()


def test_the_log_is_not_the_truth(demo):
    robot, result = demo
    log, truth = result.recording, result.truth
    count = 2.0 * np.pi / 2**20
    assert log.joint_names == robot.joint_names
    np.testing.assert_allclose(log.position / count, np.round(log.position / count), atol=1e-6)
    off = np.abs(log.position - truth.position).max(axis=0)
    assert ((off > 0.4 * count) & (off <= 0.5 * count * (1 + 1e-6))).all()
    noise = np.std(log.torque - truth.torque, axis=0)
    np.testing.assert_allclose(noise, 0.01 * np.sqrt(np.mean(truth.torque**2, axis=0)), rtol=0.05)
    # the encoder's difference steps by one count per tick, and lags by half a tick
    lag = truth.velocity - 0.0005 * truth.acceleration
    assert (np.sqrt(np.mean((log.velocity - lag) ** 2, axis=0)) < count * 1000.0).all()
    assert (np.std(log.velocity - truth.velocity, axis=0) > 0.3 * count * 1000.0).all()


def test_tracking_is_imperfect_but_tracks(demo):
    _, result = demo
    assert (result.tracking_error > 1e-4).all()
    assert (result.tracking_error < 0.05).all()
    swing = np.ptp(result.recording.reference_position, axis=0)
    assert (result.tracking_error < 0.05 * swing).all()


def test_a_worse_model_tracks_worse():
    robot = demo_arm()
    path = reference(robot, 3.0)
    good = simulate(robot, path, controller=ComputedTorque(model_error=0.0, friction_compensation=1.0))
    bad = simulate(robot, path, controller=ComputedTorque(model_error=0.3, friction_compensation=0.0))
    assert (good.tracking_error < 0.5 * bad.tracking_error).all()


def test_free_swing_agrees_with_an_independent_integrator():
    """No torque at all: SciPy integrates the equations that inverse dynamics implies."""

    class Limp(Controller):
        def law(self, robot, middle, rng):
            return lambda q, v, q_ref, v_ref, a_ref: np.zeros(len(q))

    effects = (Viscous(), Coulomb(smooth_width=0.05), Armature())
    robot = planar_2r(effects).with_parameters({"fv1": 0.3, "fv2": 0.2, "fc1": 0.2, "fc2": 0.1, "Ia1": 0.1, "Ia2": 0.05})
    time = np.linspace(0.0, 2.0, 201)
    start = np.array([0.4, -0.7])
    held = Samples(time, np.tile(start, (201, 1)), np.zeros((201, 2)), np.zeros((201, 2)))

    def slope(_, state):
        q, v = np.tile(state[:2], (3, 1)), np.tile(state[2:], (3, 1))
        tau = inverse_dynamics(robot, q, v, np.vstack([np.zeros(2), np.eye(2)]))
        mass = (tau[1:] - tau[0]).T
        return np.concatenate([state[2:], np.linalg.solve(mass, -tau[0])])

    theirs = solve_ivp(slope, (0.0, 2.0), [*start, 0.0, 0.0], t_eval=time, rtol=1e-11, atol=1e-12, method="DOP853")
    ours = simulate(robot, held, controller=Limp(), rate_hz=100.0, torque_noise=0.0, encoder_counts=None)
    np.testing.assert_allclose(ours.truth.position, theirs.y[:2].T, atol=1e-7)
    np.testing.assert_allclose(ours.truth.velocity, theirs.y[2:].T, atol=1e-6)
    assert np.ptp(ours.truth.position, axis=0).min() > 0.5


def test_work_of_the_motors_becomes_energy():
    robot = demo_arm([Armature()])
    result = simulate(robot, reference(robot), encoder_counts=None)
    truth = result.truth
    rotor = 0.5 * truth.velocity**2 @ [robot.parameters[f"Ia{j}"] for j in range(1, 8)]
    energy = energy_regressor(robot, truth.position, truth.velocity) @ robot.parameters.inertials.ravel() + rotor
    power = np.sum(truth.torque * truth.velocity, axis=1)
    work = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(truth.time))])
    assert np.abs(energy - energy[0] - work).max() < 1e-4 * np.abs(work).max()


def test_smaller_steps_change_nothing_that_matters():
    robot = demo_arm()
    path = reference(robot)
    automatic, fine = (simulate(robot, path, encoder_counts=None, substeps=n).truth for n in (None, 8))
    assert np.abs(automatic.position - fine.position).max() < 1e-7
    assert np.abs(automatic.velocity - fine.velocity).max() < 1e-4


def test_rows_follow_the_rate_while_control_stays_fast():
    robot = demo_arm()
    path = reference(robot)
    slow = simulate(robot, path, rate_hz=125.0, encoder_counts=None, torque_noise=0.0)
    fast = simulate(robot, path, rate_hz=1000.0, encoder_counts=None, torque_noise=0.0)
    np.testing.assert_allclose(slow.truth.time, np.arange(251) / 125.0)
    np.testing.assert_allclose(slow.truth.position, fast.truth.position[::8], atol=1e-12)
    np.testing.assert_allclose(slow.recording.torque, fast.recording.torque[::8], atol=1e-9)


def test_reference_between_rows_is_smooth():
    robot = planar_2r()
    motion = random_fourier(robot, 2.0, 3, seed=0)
    result = simulate(robot, motion.samples(50.0), torque_noise=0.0)
    expected, _, _ = motion.evaluate(result.truth.time)
    np.testing.assert_allclose(result.recording.reference_position, expected, atol=1e-8)


def test_seed_repeats_and_changes():
    robot = planar_2r(FRICTION)
    path = reference(robot)
    first, again, other = (simulate(robot, path, seed=seed).recording for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.torque, again.torque)
    assert np.abs(first.torque - other.torque).max() > 0.0
    assert np.abs(first.position - other.position).max() > 0.0  # another misjudged model tracks otherwise


def test_noise_as_asked():
    robot = planar_2r(FRICTION)
    result = simulate(robot, reference(robot), torque_noise=[0.2, 0.0], velocity_noise=0.01, encoder_counts=None)
    error = result.recording.torque - result.truth.torque
    assert abs(np.std(error[:, 0]) - 0.2) < 0.02
    assert not error[:, 1].any()
    assert abs(np.std(result.recording.velocity - result.truth.velocity) - 0.01) < 0.001
    np.testing.assert_array_equal(result.recording.position, result.truth.position)


def test_torque_limits_bind_and_are_said():
    robot = planar_2r()
    weak = replace(robot, joints=(replace(robot.joints[0], tau_max=22.0), robot.joints[1]))
    result = simulate(weak, reference(robot), torque_noise=0.0)
    assert np.abs(result.truth.torque[:, 0]).max() == 22.0
    assert any("torque was at its limit" in note for note in result.recording.source.notes)


def test_coulomb_friction_is_smoothed_in_the_robot_that_moved():
    robot = planar_2r([Coulomb(), Viscous()]).with_parameters({"fc1": 1.0, "fc2": 0.5})
    (moved,) = [e for e in simulate(robot, reference(robot)).robot.effects if isinstance(e, Coulomb)]
    assert moved.smooth_width == (0.01, 0.01)
    given = robot.with_effects([Coulomb(smooth_width=(0.0, 0.2)), Viscous()])
    (moved,) = [e for e in simulate(given, reference(robot)).robot.effects if isinstance(e, Coulomb)]
    assert moved.smooth_width == (0.01, 0.2)


def test_stiff_friction_on_small_inertia_keeps_its_sharp_sign():
    robot = planar_2r([Coulomb()]).with_parameters({"fc2": 60.0})
    result = simulate(robot, reference(robot)[:101], controller=ComputedTorque(friction_compensation=0.9))
    (moved,) = [e for e in result.robot.effects if isinstance(e, Coulomb)]
    assert moved.smooth_width == (0.01, 0.01)
    assert np.abs(result.truth.torque[:, 1]).max() > 30.0


@dataclass(frozen=True)
class Drag(JointwiseEffect):
    """Friction that the simulation has no formula of its own for."""

    name: ClassVar[str] = "drag"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fd", "N m s^2/rad^2"),)

    def formula(self, m, motion, inner):
        return (motion.velocity * abs(motion.velocity),)


@dataclass(frozen=True)
class Lead(Drag):
    """An effect that looks at the acceleration."""

    name: ClassVar[str] = "lead"

    def formula(self, m, motion, inner):
        return (abs(motion.acceleration + 1.0),)


def test_any_effect_of_position_and_velocity_can_be_simulated():
    effects: Sequence[Effect] = (Viscous(), Drag(), Coulomb())
    robot = planar_2r(effects).with_parameters({"fv1": 0.5, "fd1": 1.5, "fd2": 0.8, "fc2": 0.3})
    result = simulate(robot, reference(robot)[:201])
    truth, moved = result.truth, result.robot
    explained = inverse_dynamics(moved, truth.position, truth.velocity, truth.acceleration)
    assert relative(explained, truth.torque) < 1e-12
    without = inverse_dynamics(moved.with_parameters({"fd1": 0.0}), truth.position, truth.velocity, truth.acceleration)
    assert relative(without, truth.torque) > 1e-3


def test_an_effect_of_acceleration_is_refused():
    robot = planar_2r([Lead()])
    with pytest.raises(InputError, match="effect 'lead' depends on acceleration"):
        simulate(robot, reference(robot))


def test_exact_motion_is_inverse_dynamics():
    robot = demo_arm()
    path = reference(robot)
    exact = exact_motion(robot, path)
    np.testing.assert_array_equal(exact.position, path.position)
    np.testing.assert_array_equal(exact.torque, inverse_dynamics(robot, path.position, path.velocity, path.acceleration))


def test_massless_link_is_refused():
    robot = planar_2r()
    hollow = robot.with_parameters({name: 0.0 for name in robot.parameters.names if name.endswith("2")})
    with pytest.raises(InputError, match=r"link lower .*no mass"):
        simulate(hollow, reference(robot))


def test_inconsistent_robot_is_refused_with_its_links():
    robot = planar_2r()
    with pytest.raises(InconsistentModelError, match=r"not positive definite; .*lower"):
        simulate(robot.with_parameters({"Iyy2": -5.0}), reference(robot))


def test_bad_jobs_are_refused():
    robot = planar_2r()
    path = reference(robot)
    with pytest.raises(InputError, match=facts("7", "2", "trajectory")):
        simulate(robot, reference(demo_arm()))
    with pytest.raises(InputError, match="floats"):
        simulate(random_tree(0, floating=True), path)
    with pytest.raises(InputError, match="rate of the log is -5 Hz"):
        simulate(robot, path, rate_hz=-5.0)
    with pytest.raises(InputError, match=facts("torque_noise", "3", "2")):
        simulate(robot, path, torque_noise=[1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=facts("encoder_counts", "0")):
        simulate(robot, path, encoder_counts=0)
    with pytest.raises(InputError, match="bandwidth 0 Hz"):
        ComputedTorque(bandwidth_hz=0.0)
    with pytest.raises(InputError, match="shorter than one row"):
        simulate(robot, path[:2], rate_hz=1.0)


def test_absurd_rates_and_lengths_are_refused_before_anything_is_made():
    robot = planar_2r()
    path = reference(robot)
    with pytest.raises(InputError, match=facts("2", "1e+09", "2e+09", "10", "000", "sample")):
        simulate(robot, path, rate_hz=1e9)
    year = Samples(path.time * 1.6e7, path.position, path.velocity, path.acceleration)
    with pytest.raises(InputError, match=facts("0.1", "3.2e+06", "3.2e+10", "sample")):
        simulate(robot, year, rate_hz=0.1)


def test_values_of_effects():
    robot = planar_2r(FRICTION)
    assert told_effects(
        robot.with_parameters(robot.parameters.with_values([*robot.parameters.values[:20], *[0.0] * 8]))
    ) == ("none; rotor inertia: none")
    robot = with_effect(with_effect(robot, "viscous", [1.0, 2.0]), "armature", 0.1)
    assert robot.parameters["fv2"] == 2.0
    assert robot.parameters["Ia1"] == 0.1
    np.testing.assert_array_equal(effect_values(robot)["viscous"], [1.0, 2.0])
    assert told_effects(robot) == "viscous 1 to 2 N m s/rad; rotor inertia: armature 0.1 kg m^2"
    with_effect(robot, "offset", -0.3)  # an offset has either sign
    with pytest.raises(InputError, match=facts("3", "1", "2", "joint")):
        with_effect(robot, "viscous", [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="coulomb is -1, expected zero or more"):
        with_effect(robot, "coulomb", -1.0)
    with pytest.raises(InputError, match="values of viscous were given, but the robot's effects are none"):
        with_effect(planar_2r(), "viscous", 1.0)


def test_values_of_effects_of_a_floating_robot_stand_beside_those_of_others():
    joints = [
        Joint("base", "floating", -1, np.eye(4), np.zeros(6)),
        Joint("hinge", "revolute", 0, np.eye(4), [0, 0, 0, 0, 0, 1]),
    ]
    body = [1.0, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1]
    robot = with_effect(make_robot("wheel", joints, [body, body], effects=(Viscous(), Armature())), "viscous", 0.5)
    assert robot.parameters["fv2"] == 0.5
    assert robot.parameters["Ia2"] == 0.0


def test_a_runaway_is_an_error_not_a_log():
    robot = planar_2r()
    with pytest.raises(InputError, match="diverged at"):
        simulate(robot, reference(robot), controller=ComputedTorque(bandwidth_hz=2000.0))
