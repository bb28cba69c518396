"""Replay: the true model follows measured torque, a wrong one strays, and energy is accounted for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.dynamics.simulate import exact_motion, simulate
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.shapes import random_fourier
from dynid.model.effects.dry_friction import Coulomb, LoadCoulomb, Sigmoid, SmoothCoulomb, Stribeck
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.effects.wrapped import Coupled
from dynid.signals.samples import Samples
from dynid.validation.free_run import RunawayError
from dynid.validation.replay import replay
from messages import facts
from problems import demo_arm, planar_2r, random_tree

VISCOUS = (Viscous(), Offset(), Armature())
COUPLING = ((1.0, 0.0), (1.0, 1.0))


def arm(effects=VISCOUS, **values):
    robot = planar_2r(effects)
    given = {"fv1": 0.8, "fv2": 0.5, "fo1": 0.3, "fo2": -0.2, "Ia1": 0.2, "Ia2": 0.1} | values
    return robot.with_parameters({name: value for name, value in given.items() if name in robot.parameters.names})


def replayed(robot, samples, **options):
    return replay(robot, samples, **({"window_s": 0.25} | options))


def motion(robot, rate_hz=500.0, seed=1):
    """A smooth motion with the torque that it needs."""
    return exact_motion(robot, random_fourier(robot, 4.0, 3, seed=seed).samples(rate_hz))


@pytest.mark.parametrize("engine", ["mujoco", "own"])
def test_the_true_model_follows(engine):
    robot = arm()
    result = replayed(robot, motion(robot), engine=engine)
    assert result.engine == engine
    assert result.n_windows == 16
    assert result.position_drift.max() < 2e-5
    assert result.torque_error.max() < 1e-12
    assert result.end_effector_position.max() < 5e-5
    assert result.end_effector_orientation.max() < 5e-5
    assert result.energy_error < 1e-4
    assert result.replayed_energy_error < 1e-4


def test_own_integration_is_of_second_order():
    """Against SciPy on Pinocchio's forward dynamics, with steep friction; half the step, a quarter of the error."""
    robot = arm((Viscous(), SmoothCoulomb(smooth_width=0.05), Armature()), fc1=1.5, fc2=1.0)
    model, (fv, fc) = pinocchio_model(robot), np.array([[0.8, 0.5], [1.5, 1.0]])
    working = model.createData()

    def slope(t, y):
        q, v = y[:2], y[2:]
        tau = np.array([12.0 + 8.0 * t, 3.0 - 10.0 * t])
        return np.concatenate([v, pin.aba(model, working, q, v, tau - fv * v - fc * np.tanh(v / 0.05))])

    start = np.array([0.3, -0.5, -0.4, 0.6])
    exact = solve_ivp(slope, (0.0, 0.3), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:2, -1]
    errors = []
    for n in (300, 600):  # steps of 1 ms and of 0.5 ms
        time = np.linspace(0.0, 0.3, n + 1)
        torque = np.column_stack([12.0 + 8.0 * time, 3.0 - 10.0 * time])
        q, v = np.tile(start[:2], (n + 1, 1)), np.tile(start[2:], (n + 1, 1))
        samples = Samples(time, q, v, np.zeros_like(q), torque)
        errors.append(np.abs(replayed(robot, samples, window_s=0.3, engine="own").position[0, -1] - exact).max())
    assert errors[0] < 2e-5
    assert errors[1] < 0.35 * errors[0]


@pytest.mark.parametrize(
    ("effects", "values"),
    [
        ((Viscous(), Coulomb(), Armature()), {"fc1": 0.5, "fc2": 0.3}),
        ((Viscous(), Stribeck(), Armature()), {"fs1": 0.5, "fs2": 0.3}),
        ((Sigmoid(slope=20.0),), {"fsig1": 1.0, "fsig2": 0.6}),
        ((Viscous(), LoadCoulomb(), Armature()), {"flc1": 0.05, "flc2": 0.1}),
        (
            (Coupled(Viscous(), COUPLING), Coupled(Armature(), COUPLING)),
            {"fvm1": 0.5, "fvm2": 0.4, "Iam1": 0.2, "Iam2": 0.1},
        ),
    ],
    ids=["coulomb", "stribeck", "sigmoid", "load", "coupled"],
)
def test_any_friction_can_be_replayed(effects, values):
    robot = arm(effects, **values)
    trajectory = random_fourier(robot, 4.0, 3, seed=1).samples(500.0)
    if any(effect.loaded for effect in effects):
        carried = robot.with_effects([])  # neither friction nor rotors, which turn before the gears
        trajectory = trajectory.with_load(exact_motion(carried, trajectory).torque)
    samples = exact_motion(robot, trajectory)
    result = replayed(robot, samples, engine="own")
    assert result.position_drift.max() < 3e-3  # the sharp sign of the data is smoothed over 0.01 rad/s here
    assert result.energy_error < 1e-3
    none = robot.with_parameters({name: 0.0 for name in values if not name.startswith("Ia")})
    assert replayed(none, samples, engine="own").position_drift.max() > 3.0 * result.position_drift.max()
    assert replayed(none, samples, engine="own").energy_error > 10.0 * result.energy_error


def test_engines_agree_on_trees_whose_joints_mujoco_reorders():
    robot = random_tree(1, 6, effects=VISCOUS)
    samples = motion(robot, 1000.0)
    one, other = (replayed(robot, samples, window_s=0.1, engine=engine) for engine in ("mujoco", "own"))
    np.testing.assert_allclose(one.position, other.position, atol=2e-4)
    np.testing.assert_allclose(one.position, one.measured, atol=2e-4)


def test_a_wrong_model_strays_in_proportion():
    robot = arm()
    samples = motion(robot)
    true = replayed(robot, samples)
    drifts, energies = [], []
    for factor in (1.02, 1.04):
        heavier = robot.with_parameters({name: factor * robot.parameters[name] for name in ("m2", "mx2", "Iyy2")})
        result = replayed(heavier, samples)
        drifts.append(result.position_drift.max())
        energies.append(result.energy_error)
    assert drifts[0] > 20.0 * true.position_drift.max()
    assert drifts[1] == pytest.approx(2.0 * drifts[0], rel=0.1)
    assert energies[1] == pytest.approx(2.0 * energies[0], rel=0.1)


def test_end_effector_errors_are_those_of_forward_kinematics():
    robot = demo_arm()
    wrong = robot.with_parameters({"mx2": robot.parameters["mx2"] + 0.5, "fv1": 3.0})
    result = replayed(wrong, motion(robot, 250.0), engine="own")
    assert result.frame == "flange"
    joints = tuple(replace(joint, kind="revolute") if joint.kind == "continuous" else joint for joint in robot.joints)
    model = pinocchio_model(replace(robot, joints=joints))
    working, frame = model.createData(), model.getFrameId("flange")

    def pose(q):
        pin.framesForwardKinematics(model, working, q)
        return working.oMf[frame].copy()

    for window in (0, 7):
        real, hat = pose(result.measured[window, -1]), pose(result.position[window, -1])
        distance = np.linalg.norm(hat.translation - real.translation)
        angle = np.linalg.norm(pin.log3(real.rotation.T @ hat.rotation))
        assert result.end_effector_position[window, -1] == pytest.approx(distance, abs=1e-12)
        assert result.end_effector_orientation[window, -1] == pytest.approx(angle, abs=1e-9)
        assert distance > 1e-4
    named = replayed(wrong, motion(robot, 250.0), engine="own", frame=robot.links[2])
    assert named.end_effector_position.max() < result.end_effector_position.max()


def test_simulated_log_with_dry_friction_and_noise():
    robot = demo_arm()
    log = simulate(robot, random_fourier(robot, 4.0, 4, seed=1).samples(250.0), rate_hz=250.0, seed=1)
    samples = replace(log.truth, torque=log.recording.torque, raw_torque=log.recording.torque)
    for engine in ("mujoco", "own"):
        result = replayed(robot, samples, engine=engine, raw=True)
        summary = result.summary()
        assert summary["end_effector_position_mean"] < 5e-3  # of the size that Gaz and others report for the best engine
        assert summary["end_effector_orientation_mean"] < np.deg2rad(1.2)
        assert summary["energy_error"] < 0.01
        assert set(summary) >= {"position_drift", "torque_error", "n_windows"}


def test_windows_leave_gaps_out():
    robot = arm()
    samples = motion(robot)
    keep = np.r_[0:700, 720:2000]
    cut = Samples(*(getattr(samples, name)[keep] for name in ("time", "position", "velocity", "acceleration", "torque")))
    result = replayed(robot, cut)
    assert result.n_windows == 14
    assert not any(start < 700 <= start + 125 for start in result.starts)
    assert result.position_drift.max() < 2e-5


def test_auto_takes_mujoco_where_it_can():
    robot = arm()
    assert replayed(robot, motion(robot)).engine == "mujoco"
    sigmoid = arm((Sigmoid(),), fsig1=0.5)
    result = replayed(sigmoid, motion(sigmoid))
    assert result.engine == "own"
    assert result.notes == ("replayed without MuJoCo: it has no place for sigmoid",)
    with pytest.raises(InputError, match=facts("MuJoCo", "sigmoid")):
        replayed(sigmoid, motion(sigmoid), engine="mujoco")
    negative = arm(fv1=-0.01)
    assert replayed(negative, motion(negative)).engine == "own"


def test_bad_questions_get_a_sentence():
    robot = arm()
    samples = motion(robot)
    with pytest.raises(InputError, match=facts("0.198", "0.25", "sample")):
        replayed(robot, samples[:100])
    with pytest.raises(InputError, match="samples hold no torque"):
        replayed(robot, replace(samples, torque=None))
    with pytest.raises(InputError, match="samples hold no raw torque"):
        replayed(robot, samples, raw=True)
    with pytest.raises(UnknownNameError, match=facts("upper", "lower", "hand", "planar_2r", "frame")):
        replayed(robot, samples, frame="hand")
    with pytest.raises(UnknownNameError, match="unknown engine 'bullet'"):
        replayed(robot, samples, engine="bullet")
    with pytest.raises(InputError, match="expected a positive number"):
        replayed(robot, samples, window_s=0.0)
    with pytest.raises(InputError, match="floats; replay needs a fixed base"):
        replayed(random_tree(0, 3, floating=True), samples)
    with pytest.raises(InputError, match=facts("(2001, 2)", "(any, 7)", "position")):
        replayed(demo_arm(), samples)
    with pytest.raises(InputError, match="runs away"):
        replayed(robot, samples.with_torque(-1e5 * samples.torque), engine="own")


def test_a_model_that_mujoco_cannot_follow_runs_away_and_leaves_no_file(tmp_path, monkeypatch, capfd):
    """MuJoCo warns in a file of the present folder, sets the state back and goes on: a drift measured after that means nothing."""
    monkeypatch.chdir(tmp_path)
    robot = arm()
    samples = motion(robot)
    hurled = replace(samples, torque=np.where(samples.time[:, None] > 1.0, [0.0, 1e12], samples.torque))
    with pytest.raises(RunawayError, match=r"runs away .*MuJoCo: .* at joint 'shoulder'"):
        replayed(robot, hurled, engine="mujoco")
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
