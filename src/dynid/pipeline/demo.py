"""The whole path on the built-in arm, simulated: design, record, identify, validate, export, report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits
from dynid.dynamics.regressors import torque_regressor
from dynid.dynamics.simulate import simulate
from dynid.engine import Tell, silent
from dynid.estimation.methods.manifold import log_cholesky, phi_from_log_cholesky
from dynid.excitation.excitation_result import Excitation
from dynid.excitation.limits import limits_of
from dynid.excitation.motion_files import write_motion
from dynid.excitation.search import search_excitation
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.io.logs.read import write_recording
from dynid.io.robots.read import read_robot
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.robot import Robot
from dynid.pipeline.compare import compare_on
from dynid.pipeline.export import write_result
from dynid.pipeline.identify import identify
from dynid.pipeline.model_files import FORMATS, Exported
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.sections.motion import excitation_section
from dynid.signals.samples import Samples

COMPARED = ("ols", "wls", "robust", "ridge", "essential", "sdp", "manifold")
PERIOD_S, HARMONICS, RATE_HZ, DESIGN_S = 20.0, 5, 1000.0, 10.0


@dataclass(frozen=True)
class AgainstTruth:
    """Base values beside those of the true robot.

    Args:
        median: relative error of viscous and Coulomb friction and rotor inertia, where these are values of their own.
        largest: the largest of these errors.
        where: the value that has it.
        n_friction: how many values these are.
        inside: 95 % intervals that hold the truth, of bodies, friction and rotors.
        n_intervals: of so many.
    """

    median: float
    largest: float
    where: str
    n_friction: int
    inside: int
    n_intervals: int


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demonstration made and how close it came to the truth it knows."""

    run: IdentificationResult
    exported: tuple[Exported, ...]
    files: tuple[Path, ...]
    torque_gap_before: float
    """Relative difference of rigid-body and friction torque from the true robot on random states: the description's."""
    torque_gap_after: float
    """The same for the identified model."""
    friction: Array
    """``(joints, 4)``: true and identified viscous, true and identified Coulomb friction."""
    against_truth: AgainstTruth
    report: Path | None


def run_demo(folder: str | Path, *, seed: int = 0, say: Tell = silent) -> Demo:
    """Run the demonstration into ``folder``; every number in it is simulated."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    truth = demo_robot()
    description = target / "arm.urdf"
    drawn = drawn_robot(truth, seed)
    write_urdf(drawn, description)
    nominal = read_robot(description)
    say(
        f"robot: {truth.name}, {truth.n_joints} joints; its description {description.name} differs from the truth by "
        "about 20 %, as CAD models do"
    )

    # nothing can be hit in a simulation: the motion uses all of the joints' limits, from its first sample on
    design = search_excitation(drawn, limits=limits_of(drawn), rest=False, seconds=DESIGN_S, seed=seed)
    chance = random_fourier(drawn, PERIOD_S, HARMONICS, seed=seed)
    say(
        f"designed a motion of {PERIOD_S:g} s in {design.seconds:.0f} s: condition number {design.condition_number:.1f} "
        f"(a random one: {_condition(drawn, design, chance.samples(100.0)):.0f})"
    )
    motions = []
    for name, samples in (
        ("identification", design.playable.samples(RATE_HZ)),
        ("validation", chance.samples(RATE_HZ)),
    ):
        path = write_motion(samples, target / f"{name}_motion.csv")
        motions.append((name, samples, path))
        say(f"motion for {name}: {path.name}")

    logs = []
    for number, (name, samples, _) in enumerate(motions):
        simulated = simulate(truth, samples, rate_hz=RATE_HZ, seed=seed + number)
        path = Path(write_recording(simulated.recording, target / f"{name}_log.parquet"))
        logs.append(path)
        say(f"simulated log for {name}: friction, quantised encoders, torque noise: {path.name}")

    run = identify(description, logs[0], Settings(), validate_on=[logs[1]])
    say(f"identified in {run.seconds:.2f} s")
    compared = compare_on(run, run.settings, COMPARED)
    run = replace(run, comparisons=tuple(one.as_dict() for one in compared))
    say(f"compared with {', '.join(name for name in COMPARED if name != run.settings.method)}")
    published = write_result(
        run, target / "run", formats=FORMATS, allow_inconsistent=True, sections=[excitation_section(design)]
    )
    say("exported, reloaded and compared; report written")
    friction = np.column_stack(
        [[robot.parameters[f"{symbol}{j + 1}"] for j in range(truth.n_joints)]
         for symbol in ("fv", "fc") for robot in (truth, run.model)]
    )  # fmt: skip
    return Demo(
        run=run,
        exported=published.exported,
        files=(description, *(path for _, _, path in motions), *logs, *published.files),
        torque_gap_before=_torque_gap(truth, nominal),
        torque_gap_after=_torque_gap(truth, run.model),
        friction=friction,
        against_truth=against_truth(truth, run),
        report=published.report,
    )


def against_truth(truth: Robot, run: IdentificationResult) -> AgainstTruth:
    """How far base values are from the truth, and how many of their intervals hold it; friction that the truth lacks has none."""
    base, own = run.estimate.base, _shared_with(truth, run)
    # a value that also adds up something without a truth, such as a friction that the true robot lacks, cannot be compared
    unknown = [name not in own for name in run.robot.parameters.names]
    compared = np.asarray(~base.K[:, unknown].any(axis=1))
    true = true_base_values(truth, run)
    apart = np.abs(base.base_values(run.estimate.standard) - true)
    low, high = run.estimate.interval().T
    holds = np.asarray((low <= true) & (true <= high))
    actuator = [
        i
        for i, name in enumerate(base.names)
        if compared[i] and name in own and name.startswith(("fv", "fc", "Ia")) and true[i]
    ]
    errors = apart[actuator] / np.abs(true[actuator])
    return AgainstTruth(
        median=float(np.median(errors)),
        largest=float(errors.max()),
        where=base.names[actuator[int(errors.argmax())]],
        n_friction=len(actuator),
        inside=int(np.count_nonzero(holds[compared])),
        n_intervals=int(np.count_nonzero(compared)),
    )


def true_base_values(truth: Robot, run: IdentificationResult) -> Array:
    """The base values of a run that the true robot has; effects that it lacks count as zero."""
    known = truth.with_effects(run.robot.effects).with_parameters(_shared_with(truth, run))
    return run.estimate.base.base_values(known.parameters)


def _shared_with(truth: Robot, run: IdentificationResult) -> dict[str, float]:
    """Parameters of the true robot that the run has, too."""
    return {name: truth.parameters[name] for name in truth.parameters.names if name in run.robot.parameters.names}


def _condition(robot: Robot, design: Excitation, samples: Samples) -> float:
    Y = torque_regressor(robot, samples.position, samples.velocity, samples.acceleration)
    return float(np.linalg.cond(Y.reshape(-1, Y.shape[2]) @ design.base.lift))


def drawn_robot(robot: Robot, seed: int, spread: float = 0.2) -> Robot:
    """The robot as its maker's drawings have it: every link a physical body, but not quite the real one, and no friction."""
    rng = np.random.default_rng(seed)
    theta = log_cholesky(robot.parameters.inertials)
    theta = theta * (1.0 + spread * rng.uniform(-1.0, 1.0, theta.shape) * (np.arange(10) > 3))
    theta[:, 0] += spread * rng.uniform(-0.5, 0.5, len(theta))
    wrong = robot.parameters.values.copy()
    wrong[: robot.parameters.n_inertial] = phi_from_log_cholesky(theta).ravel()
    wrong[robot.parameters.n_inertial :] = 0.0
    return robot.with_parameters(robot.parameters.with_values(wrong))


def _torque_gap(truth: Robot, model: Robot) -> float:
    q, v, a = random_states_within_limits(truth, 500, seed=7)
    expected = inverse_dynamics(truth, q, v, a)
    return float(np.linalg.norm(inverse_dynamics(model, q, v, a) - expected) / np.linalg.norm(expected))
