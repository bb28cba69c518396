"""Stops in which friction holds a joint with a torque that no speed tells: left out where they spoil the fit, kept where they do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.finding import DataCheck, Finding
from dynid.model.robot import Robot
from dynid.pipeline.dwells import DWELL_S, DWELLS, SlowRows
from dynid.pipeline.estimate_rows import widen_by_weights
from dynid.pipeline.validate import _with_disagreement
from dynid.signals.recording import Recording
from problems import planar_2r

DELTA = Path(__file__).parents[2] / "examples/robots/delta_rl5.toml"
STOPS_S = (3.1, 8.4, 13.2, 19.7)


def stopping(robot: Robot, held: bool, friction: float, seed: int = 0, stops: tuple[float, ...] = STOPS_S) -> Recording:
    """Sums of sines with slow stops; ``held`` by any torque within dry friction, else by that of the speed."""
    rng, n, rate_hz = np.random.default_rng(seed), robot.n_dof, 1000.0
    t = np.arange(24_000) / rate_hz
    pace = np.prod([np.ones_like(t), *(1.0 - 0.998 * np.exp(-(((t - at) / 0.5) ** 4)) for at in stops)], axis=0)
    s = np.cumsum(pace) / rate_hz
    f, phase = rng.uniform(0.2, 1.0, (4, n)), rng.uniform(0.0, 6.3, (4, n))
    size = 0.12 * rng.uniform(0.5, 1.0, (4, n)) / f
    q = (size * np.sin(2.0 * np.pi * f * s[:, None, None] + phase)).sum(axis=1) + 0.3
    v = np.gradient(q, t, axis=0)
    sign = np.tanh(v / 0.002)
    for at in stops if held else ():
        near = (np.abs(t - at) < 0.7)[:, None] & (np.abs(v) < 0.005)
        sign = np.where(near, rng.uniform(-1.0, 1.0, n), sign)
    tau = dynid.inverse_dynamics(robot.with_effects(()), q, v, np.gradient(v, t, axis=0)) + friction * (sign + 0.5 * v)
    tau += 0.01 * tau.std(axis=0) * rng.normal(size=tau.shape)
    return Recording(time=t[::5], position=q[::5], torque=tau[::5], joint_names=robot.dof_names)


def inertia_errors(
    run: dynid.IdentificationResult, robot: Robot, like: dynid.IdentificationResult | None = None
) -> np.ndarray:
    """Relative errors of the inertial base values that are known to 3 %, here or in a run like it."""
    truth = dict(zip(robot.parameters.names, robot.parameters.values, strict=True))
    names = run.robot.parameters.names
    values = np.array([0.0 if name.startswith(("f", "Ia")) else truth.get(name, 0.0) for name in names])
    true = np.asarray(run.estimate.base.K) @ values
    inertial = np.array([not name.startswith(("f", "Ia")) for name in run.estimate.base.names])
    known = inertial & ((like or run).estimate.sigma < 0.03 * np.abs(true))
    assert known.sum() >= 2
    return np.abs(run.estimate.base_values[known] / true[known] - 1.0)


def dwelling(run: dynid.IdentificationResult) -> tuple[Finding, ...]:
    return tuple(one for one in run.findings if one.code == DWELLS)


def test_stops_that_friction_holds_are_left_out() -> None:
    robot = planar_2r()
    settings = dynid.Settings(split=0.65, cutoff_hz=10.0, friction="smooth")
    run = dynid.identify(robot, stopping(robot, True, 6.0), settings)
    (finding,) = dwelling(run)
    assert finding.level == "note"
    assert 0.02 < finding.values["share"].max() < 0.15
    assert inertia_errors(run, robot).max() < 0.03
    kept = dynid.identify(robot, stopping(robot, True, 6.0), replace(settings, dead_zone=0.0))
    assert not dwelling(kept)
    assert inertia_errors(run, robot).max() < 0.5 * inertia_errors(kept, robot, run).max()
    asked = dynid.identify(robot, stopping(robot, True, 6.0), replace(settings, friction="linear", dead_zone=0.01))
    assert inertia_errors(asked, robot).max() < 0.03
    weight = asked.data.known.windows[0].weight
    assert widen_by_weights(kept.estimate, asked.data.known).sigma == pytest.approx(
        kept.estimate.sigma / np.sqrt(weight.mean(axis=0).min())
    )


def test_stops_that_the_model_explains_are_kept() -> None:
    robot = planar_2r()
    settings = dynid.Settings(split=0.65, cutoff_hz=10.0, friction="smooth")
    assert not dwelling(dynid.identify(robot, stopping(robot, False, 2.0), settings))
    assert not dwelling(dynid.identify(robot, stopping(robot, True, 2.0, stops=()), settings))


def test_reversals_are_no_dwells() -> None:
    t = np.arange(4000) / 200.0
    v = np.sin(t)[:, None]
    v[1000:1100] = 1e-3
    samples = dynid.Samples(t, np.cumsum(v, axis=0) / 200.0, v, np.zeros_like(v), np.ones_like(v))
    mask = SlowRows(np.array([0.02]), DWELL_S).mask(samples)
    assert mask.sum() == 100
    assert SlowRows(np.array([0.02]), 0.0).mask(samples).sum() > 100


def test_a_part_that_is_not_of_the_model_is_told() -> None:
    robot = planar_2r()
    run = dynid.identify(robot, stopping(robot, False, 2.0), dynid.Settings(split=0.65, cutoff_hz=10.0, friction="smooth"))
    known, unseen, checks = run.validation, run.validation, (DataCheck((), {}),)
    assert not _with_disagreement(checks, known, unseen)[0].codes
    worse = replace(known, total=replace(known.total, relative_error=0.11))
    assert _with_disagreement(checks, worse, unseen)[0].codes == ("unexplained_part",)


@pytest.mark.slow
def test_a_delta_with_stops() -> None:
    robot = dynid.read_robot(DELTA)
    described = robot.with_parameters(robot.parameters.with_values(1.1 * robot.parameters.values))
    run = dynid.identify(described, stopping(robot, True, 4.0), dynid.Settings(split=0.65))
    assert dwelling(run)
    assert inertia_errors(run, robot).max() < 0.03
