"""Recorded torque against the nominal model: sign, scale, gravity, lag, on simulated faults and public logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.arrays import Array
from dynid.codec import to_record
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.finding import DataCheck, Finding
from dynid.io.logs.read import read_recording, write_recording
from dynid.model.effects.linear import Viscous
from dynid.model.joint import Joint
from dynid.model.robot import Robot, make_robot
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.steps.clock import PeriodAverage
from dynid.signals.steps.cuts import SplitAtGaps, TrimToMotion
from dynid.signals.steps.filters import Differentiate, LowPass, SavitzkyGolay, SmoothingSpline
from dynid.signals.stream import RecordingStream
from dynid.validation.data_check import absent_gravity, check_against_model, check_recording, torque_scale, torque_sign
from dynid.validation.model_fit import fit_nominal
from problems import demo_arm, planar_2r


@pytest.fixture(scope="module")
def robot() -> Robot:
    return demo_arm("none")


def motion(robot: Robot, t: Array) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(5)
    n = robot.n_dof
    w = random.uniform(0.8, 2.0, (3, n))
    size, phase = random.uniform(0.15, 0.35, (3, n)), random.uniform(0.0, 6.0, (3, n))
    angle = t[:, None, None] * w + phase
    q = (size * np.sin(angle)).sum(axis=1) + 0.5 * robot.position_limits.mean(axis=1)
    return q, (size * w * np.cos(angle)).sum(axis=1), -(size * w**2 * np.sin(angle)).sum(axis=1)


def torque(robot: Robot, t: Array, friction: float = 1.0, gravity: bool = True) -> Array:
    q, v, a = motion(robot, t)
    tau = inverse_dynamics(robot, q, v, a, effects=False)
    if not gravity:
        tau -= inverse_dynamics(robot, q, 0 * v, 0 * a, effects=False)
    return tau + friction * (0.4 * v + 0.6 * np.tanh(v / 0.02))


@pytest.fixture(scope="module")
def recording(robot: Robot) -> Recording:
    t = np.arange(8000) / 400.0
    q, v, _ = motion(robot, t)
    noise = np.random.default_rng(0).normal(size=(2, *q.shape))
    return Recording(
        time=t,
        position=q + 1e-5 * noise[0],
        velocity=v,
        torque=torque(robot, t) + 0.05 * noise[1],
        joint_names=robot.joint_names,
    )


def found(check: DataCheck, code: str) -> Finding:
    finding = check.find(code)
    assert finding is not None, f"{code} not among {check.codes}"
    return finding


def test_a_log_that_agrees_has_no_finding(robot: Robot, recording: Recording) -> None:
    check = check_recording(recording, robot)
    assert check.codes == ()
    gravity = check.facts["model_gravity"]
    assert np.isfinite(gravity).sum() >= 3
    np.testing.assert_allclose(gravity[np.isfinite(gravity)], 1.0, atol=0.1)
    assert abs(check.facts["torque_lag_common_s"]) < 1e-3
    assert check_recording(recording).codes == ()


def test_sign(robot: Robot, recording: Recording) -> None:
    assert recording.torque is not None
    finding = found(check_against_model(recording.with_(torque=-recording.torque), robot), "torque_sign")
    assert finding.level == "error"
    flipped = np.ones(robot.n_dof)
    flipped[1] = -1.0
    finding = found(check_against_model(recording.with_(torque=flipped * recording.torque), robot), "torque_sign")
    assert finding.where == (robot.joint_names[1],)


@pytest.mark.parametrize("ratio", [10.0, 160.0])
def test_gear_ratio_or_amperes(robot: Robot, recording: Recording, ratio: float) -> None:
    assert recording.torque is not None
    check = check_against_model(recording.with_(torque=recording.torque / ratio), robot)
    finding = found(check, "torque_scale")
    assert "ampere or torque at the motor side" in finding.what
    suggested = float(finding.remedy.split("about ")[1].rstrip(")"))
    assert suggested == pytest.approx(ratio, rel=0.05)
    assert check.find("gravity_free") is None
    sizes = finding.values["ratio"]
    np.testing.assert_allclose(sizes[np.isfinite(sizes)], ratio, rtol=0.15)


@pytest.mark.parametrize(("factor", "unit"), [(1000.0, "Nmm"), (100.0, "Ncm")])
def test_newton_millimetres_are_an_error_with_a_remedy(
    robot: Robot, recording: Recording, factor: float, unit: str, tmp_path: Path
) -> None:
    """Otherwise links of tons predict unseen torque as well as the true ones, and the verdict has nothing against them."""
    assert recording.torque is not None
    wrong = recording.with_(torque=factor * recording.torque)
    finding = found(check_against_model(wrong, robot), "torque_scale")
    assert finding.level == "error"
    assert f'"{unit}"' in finding.remedy
    log = write_recording(wrong, tmp_path / "log.csv")
    (tmp_path / "mapping.toml").write_text(f'units = {{torque = "{unit}"}}\n')
    again = read_recording(log, robot, mapping=tmp_path / "mapping.toml")
    np.testing.assert_allclose(again.torque, recording.torque, rtol=1e-9)


def test_a_load_beside_an_axis_that_carries_nothing_is_no_sign_and_no_unit(robot: Robot, recording: Recording) -> None:
    """A real log of a UR10e with 2.8 kg: its last joint has -78 times the torque of the description, the others have its own."""
    fit = fit_nominal(recording, robot)
    gravity = np.where(np.arange(len(fit.gravity)) == len(fit.gravity) - 1, -78.0, 1.0)
    loaded = replace(fit, gravity=gravity, explained=np.ones_like(gravity))
    assert torque_sign(recording, loaded, "torque") == []
    (scale,) = torque_scale(recording, loaded)
    assert scale.level == "note"
    assert "the load is not in the description" in scale.what
    turned = replace(loaded, gravity=np.where(gravity < 0.0, -1.2, gravity))
    assert [finding.code for finding in torque_sign(recording, turned, "torque")] == ["torque_sign"]


def test_current_suggests_drive_gains(robot: Robot, recording: Recording) -> None:
    assert recording.torque is not None
    check = check_against_model(recording.with_(torque=None, current=recording.torque / 12.0), robot)
    assert check.find("torque_scale") is None
    gains = found(check, "drive_gains").values["gains"]
    np.testing.assert_allclose(gains, 12.0, rtol=0.1)


def test_torque_without_gravity(robot: Robot, recording: Recording) -> None:
    noise = 0.05 * np.random.default_rng(1).normal(size=recording.position.shape)
    tau = torque(robot, recording.time, gravity=False) + noise
    check = check_against_model(recording.with_(torque=tau), robot)
    assert "gravity was likely subtracted" in found(check, "gravity_free").what
    assert check.find("external_torque") is None


def test_a_counterbalanced_arm_is_not_told_that_gravity_was_subtracted(robot: Robot, recording: Recording) -> None:
    """Springs carry all that each joint's own position shows of gravity; what the other joints change of it is still there."""
    q, still = recording.position, np.zeros_like(recording.position)
    gravity = inverse_dynamics(robot, q, still, still, effects=False)
    carried = np.zeros_like(gravity)
    for j in range(robot.n_dof):
        own = np.column_stack([np.ones(len(q)), *(f(k * q[:, j]) for k in (1, 2, 3) for f in (np.sin, np.cos))])
        carried[:, j] = own @ np.linalg.lstsq(own, gravity[:, j], rcond=None)[0]
    assert recording.torque is not None
    balanced = recording.with_(torque=recording.torque - carried)
    shy = replace(fit_nominal(balanced, robot), gravity_share=np.where(np.arange(robot.n_dof) < 3, 0.05, np.nan))
    assert absent_gravity(balanced, robot, shy) == []
    assert check_against_model(balanced, robot).find("gravity_free") is None


def test_external_torque(robot: Robot, recording: Recording) -> None:
    pushes = np.cumsum(np.random.default_rng(2).normal(size=recording.position.shape), axis=0) * 0.01
    check = check_against_model(recording.with_(torque=pushes), robot)
    assert "external torque" in found(check, "external_torque").what


@pytest.mark.parametrize("lag", [0.012, -0.02])
def test_torque_lag(robot: Robot, recording: Recording, lag: float) -> None:
    noise = 0.05 * np.random.default_rng(1).normal(size=recording.position.shape)
    late = recording.with_(torque=torque(robot, recording.time - lag) + noise)
    finding = found(check_against_model(late, robot), "torque_lag")
    assert ("lags" if lag > 0 else "leads") in finding.what
    assert fit_nominal(late, robot).common_lag_s == pytest.approx(lag, abs=1.5e-3)


def exchanged(recording: Recording, i: int, j: int) -> Recording:
    order = list(range(recording.n_joints))
    order[i], order[j] = j, i
    return recording.with_(**{name: getattr(recording, name)[:, order] for name in recording.quantities})


def test_exchanged_joints(robot: Robot, recording: Recording) -> None:
    check = check_against_model(exchanged(recording, 1, 2), robot)
    assert check.codes == ("exchanged_joints",)
    finding = found(check, "exchanged_joints")
    assert finding.where == robot.joint_names[1:3]
    names = " and ".join(robot.joint_names[1:3])
    assert f"the columns of joints {names} are likely exchanged: " in finding.what
    assert finding.values["unexplained_otherwise"] < 0.01 < 0.1 < finding.values["unexplained"]


@pytest.mark.parametrize("gravity", [(9.81, 0.0, 0.0), (0.0, 9.81, 0.0), (0.0, 0.0, 0.0)])
def test_another_direction_of_gravity_is_no_exchange(
    robot: Robot, recording: Recording, gravity: tuple[float, float, float]
) -> None:
    turned = robot.with_gravity(gravity)
    fit = fit_nominal(recording, turned)
    assert np.mean(1.0 - fit.explained) > 0.05  # worth a look
    assert not any(code.startswith("exchanged") for code in check_against_model(recording, turned).codes)


def test_impossible_numbers_are_the_only_finding(robot: Robot, recording: Recording) -> None:
    assert recording.torque is not None
    for scale in (1e200, 1e12):
        wild = recording.with_(position=recording.position * scale, torque=recording.torque * scale)
        assert check_recording(wild, robot).codes == ("impossible_value",)


def test_a_description_without_masses_is_said(robot: Robot, recording: Recording) -> None:
    bare = make_robot("bare", robot.joints, np.zeros((robot.n_joints, 10)))
    assert check_against_model(recording, bare).codes == ("no_nominal",)


def test_logs_that_cannot_be_compared_are_left_to_the_other_checks(robot: Robot, recording: Recording) -> None:
    names = (*robot.joint_names[:-1], "other")
    assert check_against_model(recording.with_(joint_names=names), robot).codes == ()
    assert check_against_model(recording.with_(torque=None), robot).codes == ()
    assert check_against_model(recording.rows(0, 20), robot).codes == ()
    assert found(check_recording(recording.with_(joint_names=names), robot), "joint_names").where == ("other",)


# Anything a file may hold ------------------------------------------------------------------------


def column(kind: str, n: int, random: np.random.Generator) -> Array:
    k = np.arange(n, dtype=np.float64)
    return {
        "zero": 0.0 * k,
        "constant": 0.0 * k + 3.3,
        "noise": random.normal(size=n),
        "wave": np.sin(k / 20.0),
        "huge": 1e12 * random.normal(size=n),
        "large": 1e5 * random.normal(size=n),
        "tiny": 1e-14 * random.normal(size=n),
        "ramp": 0.01 * k,
        "coarse": np.round(5.0 * np.sin(k / 9.0)),
    }[kind]


def clock(kind: str, n: int, random: np.random.Generator) -> Array:
    k = np.arange(n)
    return {
        "uniform": 0.004 * k,
        "jittery": np.cumsum(random.uniform(0.001, 0.01, n)),
        "paused": 0.004 * k + 5e4 * (k > n // 2),
        "nanoseconds": 1e6 * k,
        "slow": 7.0 * k,
    }[kind]


KINDS = st.sampled_from(["zero", "constant", "noise", "wave", "huge", "large", "tiny", "ramp", "coarse"])
PAIR = st.tuples(KINDS, KINDS)
CHAINS = (
    [LowPass(5.0), Differentiate()],
    [SmoothingSpline(3.0)],
    [SavitzkyGolay()],
    [TrimToMotion(), LowPass(cutoff_nyquist=0.1), Differentiate()],
    [PeriodAverage(0.5), Differentiate()],
    [SplitAtGaps(1.0), LowPass(3.0), Differentiate()],
)


@settings(max_examples=80)
@given(
    n=st.sampled_from([1, 2, 3, 17, 63, 64, 300, 1000]),
    position=PAIR,
    velocity=st.none() | PAIR,
    tau=st.none() | PAIR,
    stamps=st.sampled_from(["uniform", "jittery", "paused", "nanoseconds", "slow"]),
    seed=st.integers(0, 5),
)
def test_any_numbers_give_findings_and_samples_or_one_sentence(
    n: int,
    position: tuple[str, str],
    velocity: tuple[str, str] | None,
    tau: tuple[str, str] | None,
    stamps: str,
    seed: int,
) -> None:
    random = np.random.default_rng(seed)

    def columns(kinds: tuple[str, str] | None) -> Array | None:
        return None if kinds is None else np.stack([column(kind, n, random) for kind in kinds], axis=1)

    robot = planar_2r()
    q = columns(position)
    assert q is not None
    log = Recording(
        time=clock(stamps, n, random),
        position=q,
        velocity=columns(velocity),
        torque=columns(tau),
        joint_names=robot.joint_names,
    )
    for description in (robot, None):
        check = check_recording(log, description)
        json.dumps(to_record(check), allow_nan=False)
        assert all(finding.what and finding.remedy for finding in check)
    for steps in CHAINS:
        # anything but a refusal in words fails the test by itself
        with suppress(InputError):
            assert np.isfinite(process(log, steps).acceleration).all()


def test_a_stream_is_checked_by_its_head(robot: Robot, recording: Recording) -> None:
    def pieces(rows: int) -> Iterator[tuple[Recording | None, int]]:
        for start in range(0, recording.n_samples, rows):
            yield recording.rows(start, start + rows), 0

    stream = RecordingStream(recording.joint_names, recording.quantities, recording.source, 700, pieces)
    assert to_record(check_recording(stream, robot)) == to_record(check_recording(recording, robot))


@pytest.mark.parametrize("stated", [True, False])
def test_rotor_inertia_is_no_wrong_scale(stated: bool) -> None:
    """A vertical first axis feels no gravity; with a strong rotor its torque is many times that of the bodies alone."""
    true = demo_arm("armature")
    values = {f"Ia{j + 1}": 1.5 for j in range(true.n_dof)}
    true = true.with_parameters(values)
    t = np.arange(8000) / 400.0
    q, v, a = motion(true, t)
    tau = inverse_dynamics(true, q, v, a) + 0.05 * np.random.default_rng(0).normal(size=q.shape)
    log = Recording(time=t, position=q, velocity=v, torque=tau, joint_names=true.joint_names)
    described = true if stated else true.with_parameters(dict.fromkeys(values, 0.0))
    check = check_recording(log, described)
    assert check.find("torque_scale") is None
    assert check.find("torque_sign") is None
    if stated:
        fit = fit_nominal(log, described)
        assert fit.inertia[0] == pytest.approx(1.0, abs=0.05)


def test_a_joint_that_gravity_hardly_loads_is_no_gravity_free_log() -> None:
    """One joint about a nearly vertical axis: gravity is a small part of its torque by right."""
    tilt = 0.05
    pose = np.eye(4)
    pose[1:3, 1:3] = [[np.cos(tilt), -np.sin(tilt)], [np.sin(tilt), np.cos(tilt)]]
    body = np.array([2.0, 0.4, 0.0, 0.0, 0.05, 0.0, 0.1, 0.0, 0.0, 0.12])
    screw = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    lone = make_robot("lone", [Joint("j1", "revolute", -1, pose, screw)], [body], effects=[Viscous()])
    t = np.arange(8000) / 400.0
    q = (0.8 * np.sin(2.0 * t) + 0.5 * np.sin(3.3 * t))[:, None]
    v = (1.6 * np.cos(2.0 * t) + 1.65 * np.cos(3.3 * t))[:, None]
    a = (-3.2 * np.sin(2.0 * t) - 5.445 * np.sin(3.3 * t))[:, None]
    tau = inverse_dynamics(lone, q, v, a, effects=False) + 1.5 * v
    log = Recording(time=t, position=q, velocity=v, torque=tau, joint_names=("j1",))
    assert check_against_model(log, lone).find("gravity_free") is None


def test_a_wrong_description_is_no_lag(robot: Robot, recording: Recording) -> None:
    """The advice to shift torque is given where a fitted model gains by it, not where the nominal one is off."""
    rng = np.random.default_rng(3)
    values = robot.parameters.values * (1.0 + 0.3 * rng.uniform(-1.0, 1.0, len(robot.parameters)))
    wrong = robot.with_parameters(robot.parameters.with_values(values))
    assert check_against_model(recording, wrong).find("torque_lag") is None


def test_torque_columns_in_ampere_become_torque(recording: Recording) -> None:
    gains = np.full(recording.n_joints, 2.0)
    made = recording.with_drive_gains(gains)
    np.testing.assert_array_equal(made.torque, 2.0 * recording.torque)
    assert any("taken as motor current" in note for note in made.source.notes)
    with pytest.raises(InputError, match="neither current nor torque"):
        recording.with_(torque=None).with_drive_gains(gains)


def test_one_torque_column_read_for_two_joints_is_named(robot: Robot, recording: Recording) -> None:
    assert recording.torque is not None
    torque = recording.torque.copy()
    torque[:, 4] = torque[:, 1]
    found = check_recording(recording.with_(torque=torque), robot).find("copied_torque")
    assert found is not None
    assert found.level == "error"
    assert found.where == (recording.joint_names[1], recording.joint_names[4])
    torque[:, 4] += 1e-6 * np.random.default_rng(0).normal(size=len(torque))
    assert check_recording(recording.with_(torque=torque), robot).find("copied_torque") is None


def test_a_robot_that_stands_has_no_wrong_unit(robot: Robot, recording: Recording) -> None:
    """Position jumps by one step of its encoder and torque with it, as under a push: no ratio of the two is a unit."""
    random = np.random.default_rng(2)
    n, joints = recording.n_samples, recording.n_joints
    still = np.zeros((n, joints))
    pushed = np.sin(np.arange(n) / 200.0)[:, None] > 0.0
    q = recording.position[0] + 1e-4 * pushed
    tau = inverse_dynamics(robot, q, still, still) + 5.0 * pushed + random.normal(0.0, 0.1, (n, joints))
    check = check_recording(recording.with_(position=q, velocity=still, torque=tau), robot)
    assert check.find("torque_scale") is None
    assert check.find("velocity_unrelated") is None
