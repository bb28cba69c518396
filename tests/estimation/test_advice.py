"""Advice: additions that lower the held-out error are found, each by the right name; a complete model gets none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.codec import from_record, to_record
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.estimation.advice import Advice, advice_lines, advise
from dynid.estimation.held_out import BLOCKS, HeldOut
from dynid.estimation.model_extensions import BACKLASH, reversal_columns
from dynid.io.demo import demo_robot, demo_samples
from dynid.model.coupling import coupling_from_terms
from dynid.model.effects.dry_friction import SmoothCoulomb
from dynid.model.effects.springs import Potential, TorsionSpring
from dynid.model.effects.wrapped import OnJoints
from dynid.model.friction import with_coupling
from dynid.model.robot import Robot
from dynid.regression.factor import build_regression
from dynid.regression.row_filter import BandLimit
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples

EFFECTS = ("viscous", SmoothCoulomb(smooth_width=0.02), "offset", "armature")
ROWS = BandLimit(8.0)


def robot_with(*more) -> Robot:
    from dynid.io.robots.read import chosen_effects

    robot = demo_robot().with_effects(chosen_effects([*EFFECTS, *more]))
    return robot.with_parameters({f"fc{j}": 1.0 for j in range(1, 8)} | {f"fv{j}": 1.0 for j in range(1, 8)})


def noisy(robot: Robot, seed: int = 0, **more: float) -> Samples:
    samples = demo_samples(robot.with_parameters(more), seconds=20.0, rate_hz=100.0, seed=seed)
    assert samples.torque is not None
    size = np.sqrt((samples.torque**2).mean(axis=0))
    return samples.with_torque(samples.torque + 0.01 * size * np.random.default_rng(seed).normal(size=samples.torque.shape))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("row_filter", [ROWS, BandLimit(3.0), None], ids=["8Hz", "3Hz", "none"])
def test_a_complete_model_gets_no_advice(seed: int, row_filter: BandLimit | None) -> None:
    robot = robot_with()
    assert advise(robot, [noisy(robot, seed)], row_filter) == ()


def test_a_coupled_motor_is_found_with_its_sign() -> None:
    robot = robot_with()
    coupled = with_coupling(robot, coupling_from_terms(["7:6=-1"], robot.joint_names))
    samples = noisy(coupled, fvm7=0.6, fcm7=0.8, Iam7=0.05)
    found = advise(robot, [samples], ROWS)
    assert [one.joint for one in found] == list(robot.joint_names[5:])
    option = f'--coupling "{robot.joint_names[6]}:{robot.joint_names[5]}=-1"'
    assert {one.option for one in found} == {option}
    assert all(0.3 < one.gain < 1.0 for one in found)
    assert advise(coupled, [samples], ROWS) == ()
    (line,) = advice_lines(found)
    assert all(part in line for part in (*robot.joint_names[5:], option, "%"))


def test_rows_that_a_fit_has_made_are_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = robot_with()
    samples = noisy(robot_with(OnJoints(TorsionSpring(), (5,))), ks5=4.0)
    fitted = build_regression(robot, samples, row_filter=ROWS)
    expected = advise(robot, [samples], ROWS)
    made: list[int] = []
    own = TorqueRows.passes
    monkeypatch.setattr(TorqueRows, "passes", lambda self, *given: made.append(1) or own(self, *given))
    found = advise(robot, [samples], ROWS, known=fitted.sources)
    assert not made
    assert [(one.joint, one.option) for one in found] == [(one.joint, one.option) for one in expected]
    assert found[0].gain == pytest.approx(expected[0].gain, rel=1e-9)
    other = samples.with_torque(1.5 * np.asarray(samples.torque))
    advise(robot, [other], ROWS, known=fitted.sources)
    assert made, "rows of other samples are made"


@pytest.mark.parametrize(
    ("spring", "values", "option"),
    [
        (TorsionSpring(), {"ks5": 4.0}, "torsion"),
        (Potential(harmonics=(2,)), {"uss5": 2.0}, "potential"),
    ],
)
def test_a_spring_is_found(spring, values: dict[str, float], option: str) -> None:
    robot = robot_with()
    samples = noisy(robot_with(OnJoints(spring, (5,))), **values)
    found = advise(robot, [samples], ROWS)
    name = robot.joint_names[4]
    assert [(one.joint, one.option) for one in found][:1] == [(name, f"--spring {name}={option}")]


def test_a_wrong_gain_is_found() -> None:
    robot = robot_with()
    samples = noisy(robot)
    gain = np.array([1.0, 1.0, 1.1, 1.0, 1.0, 1.0, 1.0])
    wrong = samples.with_torque(samples.torque * gain)
    (found,) = advise(robot, [wrong], ROWS, drive_gains=(10.0,) * 7)
    assert found.joint == robot.joint_names[2]
    assert found.option is not None
    assert found.option.startswith("--drive-gains 10,10,9.")
    (measured,) = advise(robot, [wrong], ROWS)
    assert measured.option is None
    assert "no option" in advice_lines([measured])[0]


def test_drift_and_backlash_are_named() -> None:
    robot = robot_with()
    samples = noisy(robot)
    assert samples.torque is not None
    t = samples.time / samples.duration_s
    drift = samples.torque.copy()
    drift[:, 4] += 1.5 * t
    assert "time" in advise(robot, [samples.with_torque(drift)], ROWS)[0].cause
    late = samples.torque + 4.0 * reversal_columns(samples.position, samples.velocity) * (np.arange(7) == 3)
    found = advise(robot, [samples.with_torque(late)], BandLimit(20.0))
    assert "reversal" in found[0].cause
    assert found[0].joint == robot.joint_names[3]


def test_torque_that_is_late_is_named_as_such() -> None:
    robot = robot_with()
    samples = noisy(robot)
    late = np.column_stack([np.interp(samples.time - 0.008, samples.time, own) for own in np.asarray(samples.torque).T])
    found = advise(robot, [samples.with_torque(late)], ROWS)
    assert {one.cause for one in found} == {"torque is logged later or earlier than position in all joints alike"}
    assert found[0].total > 0.3
    one_late = np.asarray(samples.torque).copy()
    one_late[:, 1] = late[:, 1]
    (alone,) = advise(robot, [samples.with_torque(one_late)], ROWS)
    assert alone.joint == robot.joint_names[1]
    assert "alone" in alone.cause


def test_a_base_that_leans_is_named_as_such() -> None:
    robot = robot_with()
    samples = noisy(robot.with_gravity((0.25, 0.15, -9.8)))
    found = advise(robot, [samples], ROWS)
    assert {one.cause.partition(":")[0] for one in found} == {"gravity leans in the base frame"}


@pytest.mark.parametrize("joint", [1, 3, 4])
def test_the_joint_of_a_wrong_gain_is_the_one_whose_gain_is_wrong(joint: int) -> None:
    robot = robot_with()
    samples = noisy(robot, seed=joint)
    wrong = samples.with_torque(np.asarray(samples.torque) * np.where(np.arange(7) == joint, 1.1, 1.0))
    found = advise(robot, [wrong], ROWS)
    assert found[0].joint == robot.joint_names[joint]
    assert "gain" in found[0].cause


def test_ripple_is_named_with_its_period() -> None:
    robot = robot_with()
    samples = noisy(robot)
    torque = np.asarray(samples.torque).copy()
    torque[:, 3] += 0.1 * torque[:, 3].std() * np.sin(20.0 * samples.position[:, 3] + 0.3)
    found = advise(robot, [samples.with_torque(torque)], BandLimit(20.0))
    assert found[0].joint == robot.joint_names[3]
    assert "ripple" in found[0].cause
    assert 18.5 < float(found[0].cause.split()[-4]) < 21.5


def test_a_load_that_comes_and_goes_is_named_with_its_times() -> None:
    robot = robot_with()
    samples = noisy(robot)
    heavier = robot.with_parameters({"m7": robot.parameters["m7"] + 1.0})
    loaded = noisy(heavier)
    inside = (samples.time > 6.0) & (samples.time < 13.0)
    found = advise(robot, [samples.with_torque(np.where(inside[:, None], loaded.torque, samples.torque))], ROWS)
    assert "a load was carried" in found[0].cause
    start, end = (float(word) for word in found[0].cause.split() if word.replace(".", "").isdigit())
    assert (start, end) == pytest.approx((6.0, 13.0), abs=0.5)
    assert found[0].option is None


def test_a_gear_that_yields_is_named_with_its_joint() -> None:
    robot = robot_with()
    samples = noisy(robot)
    stiffness = np.asarray(samples.torque)[:, 1].std() / 0.006
    bodies = inverse_dynamics(robot, samples.position, samples.velocity, samples.acceleration, effects=False)
    behind, dt = bodies[:, 1] / stiffness, samples.time[1] - samples.time[0]
    q, v, a = (one.copy() for one in (samples.position, samples.velocity, samples.acceleration))
    q[:, 1] -= behind
    v[:, 1] -= np.gradient(behind, dt)
    a[:, 1] -= np.gradient(np.gradient(behind, dt), dt)
    change = inverse_dynamics(robot, q, v, a, effects=False) - bodies
    found = advise(robot, [samples.with_torque(np.asarray(samples.torque) + 3.0 * change)], ROWS)
    assert found[0].joint == robot.joint_names[1]
    assert "elastic" in found[0].cause


def test_the_way_since_a_reversal() -> None:
    t = np.linspace(0.0, 2.0 * np.pi, 401)
    q, v = -np.cos(t)[:, None], np.sin(t)[:, None]
    column = reversal_columns(q, v)[:, 0]
    turn = int(np.argmax(v[:, 0] < 0.0))
    assert not column[:turn].any()
    way = np.abs(q[turn:, 0] - q[turn, 0])
    np.testing.assert_allclose(column[turn:380], -np.exp(-way / BACKLASH)[: 380 - turn], atol=1e-9)


def test_residuals_are_those_of_fits_without_the_block() -> None:
    robot = robot_with()
    held = HeldOut.of(robot, [noisy(robot)], ROWS)
    assert held is not None
    extra = {2: np.random.default_rng(1).normal(size=(len(held.block), 2))}
    left, (added,) = held.with_each([extra])
    np.testing.assert_allclose(held.residuals(), left, atol=1e-9 * np.abs(held.torque).max())
    assert added is not None
    own, total, _ = added
    C = np.zeros((7, len(held.block), 2))
    C[2] = held.weights[2] * extra[2]
    for block in range(BLOCKS):
        inside, known = held.block == block, (held.block >= 0) & (held.block != block)
        expected = []
        for columns in (held.basis, np.concatenate([held.basis, C], axis=2)):
            A, y = np.concatenate(columns[:, known]), held.torque[:, known].ravel()
            x = np.linalg.lstsq(A, y, rcond=None)[0]
            expected.append(held.torque[:, inside] - columns[:, inside] @ x)
        np.testing.assert_allclose(left[:, inside], expected[0], atol=1e-6 * np.abs(held.torque).max())
        assert own[2][block] == pytest.approx((expected[1][2] ** 2).sum(), rel=1e-6)
        assert total[block] == pytest.approx((expected[1] ** 2).sum(), rel=1e-6)
    known_already = {joint: held.basis[joint, :, :1] / held.weights[joint] for joint in range(7)}
    assert held.with_each([known_already])[1] == [None]


def test_short_logs_are_left_alone() -> None:
    robot = robot_with()
    assert advise(robot, [noisy(robot)[:60]], None) == ()


def test_plain_values() -> None:
    advice = Advice("elbow", "a cause", 0.25, None)
    assert from_record(Advice, to_record(advice)) == advice
    assert to_record(replace(advice, option="--spring 2=cable"))["option"] == "--spring 2=cable"
