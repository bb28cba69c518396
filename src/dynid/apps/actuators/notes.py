"""What to beware of in logs and answers of actuators, one sentence each.

Rollouts that stray further than the noise of their positions: something that is held, such as the bodies, is not as described.

Values that are fitted make up for wrong bodies as far as they can (too light bodies look like rotor inertia). What they leave of the error
``e`` is set against the change ``d`` of the rollout with the weight of all bodies, beside the changes ``J`` with every fitted value:

    e = J x + s d,      s the part by which the bodies would have to be heavier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.apps.actuators.comparison import Rollout, roll_out
from dynid.apps.actuators.model import ActuatorLog, ActuatorModel, ActuatorProblem
from dynid.apps.actuators.output_error import OutputError
from dynid.apps.actuators.separability import Separability
from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.estimation.constraints.bodies import proposed_symmetry
from dynid.finding import Finding
from dynid.model.inertia import is_consistent
from dynid.model.robot import Robot
from dynid.signals.measures import noise_level

BEYOND = 0.02
"""Share of commands beyond the description's limits, or of drives at their torque limit, that is worth a note."""
STRAYS = 2.0
"""Times the noise of a position from which on a rollout strays."""
LEAST = 1e-5
"""rad or m: noise that positions have at least."""
HEAVIER, FALLS = 0.02, 0.25
"""Part by which bodies must be too light or heavy, and share of the squared error that this must explain, to be called the cause."""
STEP = 1e-3
MOST_ROWS = 10_000
"""Rows of the first logs that are looked at: each value is rolled out anew over them."""


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


MOVES = 0.01
"""rad or m: standard deviation of a position from which on a joint counts as moved."""


def lost_joints(robot: Robot, rollouts: Sequence[Rollout]) -> tuple[Finding, ...]:
    """Joints whose rollout is further from a log than the log is from its own mean: their values explain nothing."""
    found = []
    for j, joint in enumerate(robot.joints):
        pairs = [(float(one.rms[j]), float(np.std(one.measured[:, j]))) for one in rollouts]
        error, motion = max(pairs, key=lambda pair: pair[0] / max(pair[1], MOVES))
        if motion > MOVES and error > motion:
            unit = "mm" if joint.kind == "prismatic" else "mrad"
            found.append(
                Finding(
                    "error",
                    f"the rollout of joint {joint.name} is {1e3 * error:.3g} {unit} RMS from a log in which it moves "
                    f"{1e3 * motion:.3g} {unit}: its values explain nothing",
                    "give --kp and --kd as the drive has them, a shorter --window, or the true --limit",
                    code="lost_joint",
                )
            )
    return tuple(found)


def gain_findings(problem: ActuatorProblem, rollouts: Sequence[Rollout]) -> tuple[Finding, ...]:
    """Gains that were estimated: positions show them beside the weight of the bodies alone, so their scale is that of the description."""
    if not any(u.symbol == "kp" for u in problem.unknowns) or problem.logs[0].control.supply is not None:
        return ()
    ratio = float((np.max([one.rms for one in rollouts], axis=0) / _noise(rollouts)).max())
    more = f"; positions stray up to {ratio:.2g} times their noise, which (sigma) does not count" if ratio > STRAYS else ""
    what = (
        "gains are estimated, and their scale is the weight of the described bodies: 20 % too light gives gains, friction and rotors "
        f"20 % too low{more}"
    )
    return (Finding("warning", what, "give --kp and --kd as the controller has them", code="gains_estimated"),)


def _noise(rollouts: Sequence[Rollout]) -> Array:
    return np.asarray(np.maximum(np.max([noise_level(one.measured) for one in rollouts], axis=0), LEAST))


def stray_notes(problem: ActuatorProblem, model: ActuatorModel, rollouts: Sequence[Rollout]) -> tuple[str, ...]:
    """Joints whose rollout strays, and whether bodies of another weight explain it."""
    noise = _noise(rollouts)
    ratio = np.max([one.rms for one in rollouts], axis=0) / noise
    if not (ratio > STRAYS).any():
        return ()
    worst = int(np.argmax(ratio))
    joint = problem.robot.joints[worst]
    unit = "mm" if joint.kind == "prismatic" else "mrad"
    said = (
        f"the rollout of joint {joint.name} strays by {1e3 * ratio[worst] * noise[worst]:.3g} {unit}, {ratio[worst]:.2g} times the "
        "noise of its position: the model lacks something, or what is held is not as described"
    )
    found = heavier_bodies(problem, model, rollouts)
    if found is None or abs(found[0]) < HEAVIER or found[1] < FALLS:
        return (said,)
    part, share = found
    weight = f"{100.0 * abs(part):.2g} % {'heavier' if part > 0.0 else 'lighter'}"
    what = f"bodies about {weight} than described would explain {100.0 * share:.0f} % of it"
    return (f"{said}; {what}: weigh them, or free them (--free), because rotor inertia and friction make up for them",)


def heavier_bodies(
    problem: ActuatorProblem, model: ActuatorModel, rollouts: Sequence[Rollout]
) -> tuple[float, float] | None:
    """The part by which all bodies would have to be heavier beside the fitted values, and what share of the squared error that explains.

    None where a rollout with other values cannot be made.
    """
    rows = np.cumsum([len(log.time) for log in problem.logs])
    few = max(1, int(np.searchsorted(rows, MOST_ROWS, side="right")))
    problem, rollouts = replace(problem, logs=problem.logs[:few]), rollouts[:few]
    values = np.array([model.value(unknown) for unknown in problem.unknowns])
    steps = STEP * np.maximum(np.abs(values), 1e-2)
    parameters = model.robot.parameters
    scaled = np.array(parameters.values)
    scaled[: parameters.n_inertial] *= 1.0 + STEP
    heavy = replace(model, robot=model.robot.with_parameters(parameters.with_values(scaled)))
    others = [model.with_values([one], np.array([x])) for one, x in zip(problem.unknowns, values + steps, strict=True)]
    try:
        *columns, body = [_moved(problem, other, rollouts) for other in (*others, heavy)]
    except DynidError:  # at the edge of what a controller holds, another value lets the robot run away
        return None
    error = np.concatenate([(one.measured - one.simulated).ravel() for one in rollouts])
    J = np.column_stack([column / step for column, step in zip(columns, steps, strict=True)])
    size = np.linalg.norm(J, axis=0)
    Q, R = np.linalg.qr(J[:, size > 0.0] / size[size > 0.0])
    Q = Q[:, np.abs(np.diag(R)) > 1e-6]
    left, change = (x - Q @ (Q.T @ x) for x in (error, body / STEP))
    power = float(change @ change)
    if power <= 1e-12 * float(body @ body) / STEP**2:
        return None
    part = float(change @ left) / power
    return part, part**2 * power / max(float(left @ left), 1e-300)


def _moved(problem: ActuatorProblem, model: ActuatorModel, rollouts: Sequence[Rollout]) -> Array:
    """What another model changes of the rollouts."""
    again = [roll_out(model, log, problem.tick_s).simulated for log in problem.logs]
    return np.concatenate([(new - old.simulated).ravel() for new, old in zip(again, rollouts, strict=True)])
