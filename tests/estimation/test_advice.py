"""Advice: additions that lower the held-out error are found, each by the right name; a complete model gets none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.estimation.additions import BACKLASH, reversal_columns
from dynid.estimation.advice import Advice, advice_lines, advise
from dynid.estimation.held_out import BLOCKS, HeldOut
from dynid.recording.samples import Samples
from dynid.regression.factor import build_regression
from dynid.regression.row_filter import BandLimit
from dynid.regression.torque_rows import TorqueRows
from dynid.robot.builtin import demo_robot
from dynid.robot.coupling import coupling_from_terms
from dynid.robot.effects import OnJoints, Potential, SmoothCoulomb, TorsionSpring
from dynid.robot.model import Robot
from dynid.robot.motors import with_coupling
from dynid.simulation.builtin import demo_samples

EFFECTS = ("viscous", SmoothCoulomb(smooth_width=0.02), "offset", "armature")
ROWS = BandLimit(8.0)


def robot_with(*more) -> Robot:
    from dynid.robot.read import chosen_effects

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
    assert {one.option for one in found} == {'--coupling "7:6=-1"'}
    assert all(0.3 < one.gain < 1.0 for one in found)
    assert advise(coupled, [samples], ROWS) == ()
    (line,) = advice_lines(found)
    assert all(part in line for part in (*robot.joint_names[5:], '--coupling "7:6=-1"', "%"))


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
        (TorsionSpring(), {"ks5": 4.0}, "--spring 5=torsion"),
        (Potential(harmonics=(2,)), {"uss5": 2.0}, "--spring 5=potential"),
    ],
)
def test_a_spring_is_found(spring, values: dict[str, float], option: str) -> None:
    robot = robot_with()
    samples = noisy(robot_with(OnJoints(spring, (5,))), **values)
    found = advise(robot, [samples], ROWS)
    assert [(one.joint, one.option) for one in found][:1] == [(robot.joint_names[4], option)]


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
        assert added.own[2][block] == pytest.approx((expected[1][2] ** 2).sum(), rel=1e-6)
        assert added.total[block] == pytest.approx((expected[1] ** 2).sum(), rel=1e-6)
    known_already = {joint: held.basis[joint, :, :1] / held.weights[joint] for joint in range(7)}
    assert held.with_each([known_already])[1] == [None]


def test_short_logs_are_left_alone() -> None:
    robot = robot_with()
    assert advise(robot, [noisy(robot)[:60]], None) == ()


def test_plain_values() -> None:
    advice = Advice("elbow", "a cause", 0.25, None)
    assert Advice.from_dict(advice.as_dict()) == advice
    assert replace(advice, option="--spring 2=cable").as_dict()["option"] == "--spring 2=cable"
