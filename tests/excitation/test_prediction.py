"""What a motion promises: deviations by plain least squares on many noisy logs, targets, and motions that exist already."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dynid
from cli_program import dynid as program
from dynid.errors import InputError
from dynid.excitation.prediction import periods_until, predict_sigmas
from dynid.signals.steps.filters import EDGE_S
from messages import facts
from problems import arm_with_hand_urdf, planar_2r

RATE_HZ = 100.0


@pytest.fixture(scope="module")
def found():
    robot = planar_2r()
    return dynid.design_excitation(
        robot, shape="sinusoids", period=8.0, collision=False, unchecked=True, acceleration=(10.0,)
    )


def test_predicted_deviations_are_the_scatter_of_least_squares(found):
    """Torque with white noise, fitted by NumPy alone, 400 times."""
    robot, base = found.robot, found.base
    noise = np.array([0.4, 0.1])
    predicted = predict_sigmas(found, noise, RATE_HZ)
    time = np.arange(EDGE_S, found.playable.duration_s - EDGE_S, 1.0 / RATE_HZ)
    q, v, a = found.playable.evaluate(time)
    W = dynid.torque_regressor(robot, q, v, a).reshape(-1, len(robot.parameters)) @ base.lift
    weights = np.tile(1.0 / noise, len(time))
    beta = base.K @ robot.parameters.values
    rng = np.random.default_rng(0)
    fits = []
    for _ in range(400):
        y = W @ beta + rng.normal(size=len(W)) / weights
        fits.append(np.linalg.lstsq(weights[:, None] * W, weights * y, rcond=None)[0])
    np.testing.assert_allclose([one.sigma for one in predicted], np.std(fits, axis=0), rtol=0.12)
    assert [one.name for one in predicted] == list(base.names)
    np.testing.assert_allclose([one.value for one in predicted], beta)


def test_a_target_repeats_the_motion_until_it_is_met(found):
    one = predict_sigmas(found, 0.1, RATE_HZ)[0]
    assert periods_until(found, f"sigma({one.name}) < {2.0 * one.sigma}", 1, 0.1, RATE_HZ) == 1
    assert periods_until(found, f"sigma({one.name}) < {one.sigma / 3.0}", 1, 0.1, RATE_HZ) == 9
    percent = 100.0 * one.relative
    assert periods_until(found, f"sigma( {one.name} )<{percent / 2.0} %", 1, 0.1, RATE_HZ) == 4
    repeated = dynid.design_excitation(
        found.robot, shape="sinusoids", period=8.0, collision=False, unchecked=True, acceleration=(10.0,),
        torque_noise=(0.1,), rate=RATE_HZ, until=f"sigma({one.name}) < {one.sigma / 2.0}",
    )  # fmt: skip
    after = next(other for other in predict_sigmas(repeated, 0.1, RATE_HZ) if other.name == one.name)
    assert repeated.playable.duration_s > 3.0 * found.trajectory.duration_s
    assert after.sigma <= one.sigma / 2.0 * 1.05


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("m6 small", ("--until", "sigma(Izz6) < 5 %")),
        ("sigma(nothing) < 1", ("base parameter", "nothing")),
        ("sigma({0}) < -1", ("--until", "positive")),
        ("sigma({0}) < 1e-12", ("repeats", "500", "--period")),
    ],
)
def test_targets_that_cannot_be_are_one_sentence(found, target, told):
    with pytest.raises(InputError, match=facts(*told)):
        periods_until(found, target.format(found.base.names[0]), 1, 0.1, RATE_HZ)


def test_a_parameter_inside_others_is_named_with_them(found):
    hidden = next(
        name
        for name, column in zip(found.base.parameter_names, found.base.K.T, strict=True)
        if name not in found.base.names and np.abs(column).max() > 0.0
    )
    with pytest.raises(InputError, match=facts(hidden, "no base parameter", "part of")):
        periods_until(found, f"sigma({hidden}) < 1", 1, 0.1, RATE_HZ)


def test_a_written_motion_is_judged_as_it_was_designed(tmp_path: Path):
    path, out = tmp_path / "arm.urdf", tmp_path / "m.csv"
    path.write_text(arm_with_hand_urdf())
    common = (path, "--acceleration", 8, "--no-collision")
    designed = json.loads(
        program(
            "excite", *common, "--shape", "sinusoids", "--period", 6, "--no-rest", "--rate", 200, "-o", out, "--json"
        ).stdout
    )
    judged = json.loads(program("excite", *common, "--evaluate", out, "--json").stdout)
    assert judged["condition_number"] == pytest.approx(designed["condition_number"], rel=0.02)
    for name in ("position", "velocity", "acceleration"):
        assert judged["margins"][name] == pytest.approx(designed["margins"][name], abs=2e-3)
    assert len(judged["relations"]) == 3
    too_fast = json.loads(program("excite", *common, "--velocity", 0.1, "--evaluate", out, "--json").stdout)
    assert too_fast["margins"]["velocity"] < 0.0
    refused = program("excite", *common, "--evaluate", out, "-o", out)
    assert refused.returncode == 2
    assert "--evaluate" in refused.stderr
