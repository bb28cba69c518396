"""Mechanisms against plain models on the same rollouts: which one is best, and whether the mechanism adds anything.

A rollout is the simulation of a whole log, against what was measured.

The choice between estimates is made on the logs identified on alone: both are fitted to their first part and rolled out on the rest.
What is unseen only judges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.apps.actuators.model import ActuatorLog, ActuatorModel, ActuatorProblem, first_state
from dynid.arrays import Array, freeze
from dynid.dynamics.position_loop import RunawayError
from dynid.errors import InputError
from dynid.finding import Finding, Verdict

HORIZONS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
STARTS = 40
"""Starts per log from which short horizons are rolled out, at most."""


@dataclass(frozen=True, eq=False)
class Rollout:
    """A rollout of one log: measured and simulated position at the stamps."""

    time: Array
    command: Array
    measured: Array
    simulated: Array

    @property
    def rms(self) -> Array:
        """Per joint, rad or m."""
        return np.asarray(np.sqrt(np.mean((self.simulated - self.measured) ** 2, axis=0)))


def roll_out(model: ActuatorModel, log: ActuatorLog, tick_s: float | None = None) -> Rollout:
    """Follow the commands of a whole log from its first state."""
    motion = model.simulate(log, first_state(log), tick_s)
    sent = log.command.at(log.time, np.zeros(model.robot.n_joints))
    return Rollout(log.time, sent, log.position, freeze(motion.at_stamps))


def total_rms(rollouts: Sequence[Rollout]) -> float:
    """Root mean square over joints, time and logs."""
    if not rollouts:
        raise InputError("no rollout to judge")
    errors = np.concatenate([(one.simulated - one.measured).ravel() for one in rollouts])
    return float(np.sqrt(np.mean(errors**2)))


def error_over_horizon(
    model: ActuatorModel, logs: Sequence[ActuatorLog], horizons_s: Sequence[float] = HORIZONS_S, tick_s: float | None = None
) -> list[tuple[float, float]]:
    """Root mean square error at the end of rollouts of some lengths, started all over the logs."""
    found = []
    for horizon in horizons_s:
        ends: list[Array] = []
        for log in logs:
            rows = round(horizon / log.period_s)
            if rows < 1 or rows + 1 >= len(log.time):
                continue
            for start in np.unique(np.linspace(0, len(log.time) - rows - 2, STARTS).astype(int)):
                part = log.part(start, start + rows + 1)
                motion = model.simulate(part, first_state(log, start), tick_s)
                ends.append(motion.at_stamps[-1] - part.position[-1])
        if ends:
            found.append((horizon, float(np.sqrt(np.mean(np.array(ends) ** 2)))))
    return found


HEAD = 0.65
"""Share of each log that estimates are fitted to before they are compared on the rest."""
LEAST_ROWS = 400
"""Rows of a log below which it is not cut."""
ALIKE = 0.01
"""Relative difference of errors that does not decide between two models."""
MECHANISM, DESCRIPTION = "mechanism", "description"


@dataclass(frozen=True, eq=False)
class Compared:
    """Rollouts of one model, on the logs identified on and on the unseen ones."""

    name: str
    rollouts: tuple[tuple[Rollout, ...], tuple[Rollout, ...]]

    @property
    def errors(self) -> tuple[float | None, float | None]:
        """Root mean square over joints, time and logs of both."""
        known, unseen = (total_rms(part) if part else None for part in self.rollouts)
        return known, unseen

    @property
    def judged(self) -> float:
        """Error on unseen time, or on that identified on where nothing is unseen."""
        known, unseen = self.errors
        return float(known if unseen is None else unseen)  # type: ignore[arg-type]

    def as_json(self) -> dict[str, float | None]:
        known, unseen = self.errors
        return {"identification": known, "validation": unseen}


def best_of(compared: Sequence[Compared]) -> Compared:
    """The model of least error; among those that are alike the first, which is the mechanism."""
    least = min(one.judged for one in compared)
    return next(one for one in compared if one.judged <= (1.0 + ALIKE) * least)


def better_estimate(
    problem: ActuatorProblem, fits: Sequence[Callable[[ActuatorProblem], ActuatorModel]]
) -> tuple[int, tuple[float, ...]]:
    """Which of some fits rolls out best on the last part of the logs after it was fitted to the first; and all errors.

    The first is kept where another is not better by more than a little, and where the logs are too short to be cut.
    """
    cuts = [(log, round(HEAD * len(log.time))) for log in problem.logs]
    if min(len(log.time) for log in problem.logs) < LEAST_ROWS:
        return 0, ()
    head = replace(problem, logs=tuple(log.part(0, edge) for log, edge in cuts))
    tails = [log.part(edge, len(log.time)) for log, edge in cuts]
    errors = [_rolled(fit, head, tails) for fit in fits]
    best = int(np.argmin(errors))
    return (best if errors[best] < (1.0 - ALIKE) * errors[0] else 0), tuple(errors)


def _rolled(fit: Callable[[ActuatorProblem], ActuatorModel], problem: ActuatorProblem, logs: Sequence[ActuatorLog]) -> float:
    """Error on some logs of the model that a fit finds; infinite where it runs away."""
    try:
        model = fit(problem)
        return total_rms([roll_out(model, log, problem.tick_s) for log in logs])
    except RunawayError:
        return np.inf


def actuator_verdict(compared: Sequence[Compared], reasons: Sequence[Finding], mechanism: str = MECHANISM) -> Verdict:
    """What the mechanism is worth beside plain models, judged on unseen time where there is some.

    Args:
        compared: rollouts of all models.
        reasons: what else is known against or for the result.
        mechanism: name of the model that was identified.
    """
    ours = next(one for one in compared if one.name == mechanism)
    best = best_of(compared)
    unseen = bool(ours.rollouts[1])
    found = list(reasons)
    if not unseen:
        found.append(Finding("warning", "nothing unseen was rolled out", "give --split 0.65, or other logs by --validate"))
    described = next((one for one in compared if one.name == DESCRIPTION), None)
    if best.name == DESCRIPTION:
        found.append(
            Finding(
                "error", f"the description rolls out better ({_mrad(best)})", "keep the description; check gains and units"
            )
        )
    elif best.name != mechanism:
        found.append(
            Finding(
                "warning",
                f"the mechanism adds nothing: a {best.name} follows as well or better ({_mrad(best)})"
                if "lag" in best.name
                else f"the mechanism adds nothing: {best.name} is as good or better ({_mrad(best)})",
                "use that model where only positions matter; faster motion, known gains or a known load would show more of the mechanism",
            )
        )
    beside = f" (description: {_mrad(described)})" if described is not None else ""
    where = "unseen data" if unseen else "the logs identified on"
    return Verdict(f"simulated position is {_mrad(ours)} RMS from {where}{beside}", tuple(found))


def _mrad(one: Compared) -> str:
    return f"{1e3 * one.judged:.3g} mrad"
