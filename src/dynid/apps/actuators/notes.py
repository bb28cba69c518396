"""What to beware of in logs and answers of actuators, one sentence each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.apps.actuators.model import ActuatorLog, ActuatorModel, ActuatorProblem
from dynid.apps.actuators.output_error import OutputError
from dynid.apps.actuators.separability import Separability
from dynid.estimation.constraints.symmetry import proposed_symmetry
from dynid.model.inertia import is_consistent
from dynid.model.robot import Robot

BEYOND = 0.02
"""Share of commands beyond the description's limits, or of drives at their torque limit, that is worth a note."""


def still_notes(robot: Robot, still: set[int]) -> tuple[str, ...]:
    """Joints that do not move."""
    return tuple(
        f"joint {robot.joint_names[j]} does not move in any log: nothing of it is identified; move it, or lock it with --lock"
        for j in sorted(still)
    )


def limit_notes(robot: Robot, logs: Sequence[ActuatorLog]) -> tuple[str, ...]:
    """Commands beyond the joints' limits, and drives at their torque limits."""
    notes = []
    low, high = robot.position_limits.T
    for log in logs:
        sent = log.command.at(log.time, np.zeros(robot.n_joints))
        share = np.mean((sent < low - 1e-6) | (sent > high + 1e-6), axis=0) * (not log.control.velocity)
        assert log.control.limit is not None
        torque = log.control.kp * (sent - log.position)
        full = np.mean(np.abs(torque) > log.control.limit, axis=0)
        for j, name in enumerate(robot.joint_names):
            if share[j] > BEYOND:
                notes.append(
                    f"{log.place}: {100 * share[j]:.0f} % of the commands of joint {name} lie beyond its limits "
                    f"[{low[j]:.3g}, {high[j]:.3g}]: if it rests on its stop there, cut that part with --from and --to"
                )
            if full[j] > BEYOND:
                notes.append(
                    f"{log.place}: the drive of joint {name} is at its torque limit of {log.control.limit[j]:.4g} in "
                    f"{100 * full[j]:.0f} % of the rows, where gains and friction hardly show: "
                    "record smaller steps, or give the true --limit"
                )
    return tuple(notes)


def separated_notes(problem: ActuatorProblem, apart: Separability) -> tuple[str, ...]:
    """Whether logs with different gains tell gains from friction."""
    asked = [name for name, u in zip(problem.names, problem.unknowns, strict=True) if u.symbol in ("kp", "kd")]
    first = problem.logs[0].control
    differ = any(
        not np.array_equal(getattr(log.control, symbol), getattr(first, symbol))
        for log in problem.logs
        for symbol in ("kp", "kd")
    )
    if not asked or not differ or apart.entangled & set(asked):
        return ()
    return (f"the logs have different gains, which tell {', '.join(asked)} from friction and rotor inertia",)


def answer_notes(
    problem: ActuatorProblem, model: ActuatorModel, refined: OutputError | None, freed: Sequence[int]
) -> tuple[str, ...]:
    """Values at their bounds, an answer that did not settle, freed bodies that cannot exist."""
    notes = []
    if refined is not None:
        bound = [
            n for n, b, u in zip(problem.names, refined.at_bound, problem.unknowns, strict=True) if b and u.symbol != "width"
        ]
        if bound:
            notes.append(f"at the bound of what is physical (zero): {', '.join(bound)}")
        if not refined.converged:
            notes.append(
                f"output error stopped after {len(refined.steps)} steps before it settled: deviations are those of a settled answer, "
                "so do not rely on them; shorter windows (--window) settle more easily"
            )
    bad = [problem.robot.links[b] for b in freed if not is_consistent(model.robot.parameters.inertials[b])]
    if bad:
        notes.append(f"freed bodies that are not physically consistent: {', '.join(bad)}; hold them, or record more motion")
    return tuple(notes)


def symmetry_notes(robot: Robot) -> tuple[str, ...]:
    """The option that ties two sides, where the names of the joints have them."""
    flags = " ".join(f'--symmetric "{side}"' for side in proposed_symmetry(robot.joint_names))
    return (f"the names of the joints have two sides: {flags} ties their rotors and friction",) if flags else ()
