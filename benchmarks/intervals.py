"""How often 95 % intervals hold the truth, by kind of parameter: the demonstration arm, simulated, over many logs.

Every log is a recording of its own, as a user would make several: its own designed motion, its own wrong model in the
controller and its own torque noise. One motion in all logs would pass the same encoder steps at the same places again and
again, and so repeat one error instead of drawing another. Encoders have 2^14, 2^17 or 2^20 counts per turn; a seed has one
motion for all of them. Each log is identified by what ``dynid identify arm.urdf log.parquet --validate other.parquet`` does
without further options; the other log is that of the next seed, unseen.

An interval is ``value +- 1.96 sigma`` of a base value. The reference is 95 %: 90 to 98 % is asked for, a median error of
friction and rotor inertia of 0.1 % and an unseen error of 0.25 % with 2^20 counts. ``z`` is the error in units of sigma; its
mean square would be 1, and the mean over logs of every value's own z shows a bias (``bias_z``, root mean square over values;
by chance ``1 / sqrt(logs)``). ``curve`` is the same for the friction torque, offset included, at eight speeds of every
joint: it has a truth whatever model of friction was chosen.

``--set method=iv`` measures a run with another option, ``--joints 3`` the first joints of the arm
alone, with the others fixed.
"""

from __future__ import annotations

import measure

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.regressors import torque_regressor
from dynid.dynamics.simulate import simulate
from dynid.engine import engine_from
from dynid.excitation.limits import limits_of
from dynid.excitation.search import search_excitation
from dynid.io.demo import demo_robot
from dynid.io.logs.read import write_recording
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.robot import Robot
from dynid.pipeline.demo import RATE_HZ, drawn_robot, true_base_values
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.signals.samples import Samples

COUNTS = (14, 17, 20)
KINDS = {"fv": "viscous", "fc": "coulomb", "fo": "offset", "Ia": "armature"}
STARTS, BUDGET_S = 2, 600.0
"""Random starts of a design, and a time that they do not reach: a seed gives the same motion on every machine."""
WITHIN = 1.96
SPEEDS = np.array([-0.95, -0.7, -0.4, -0.15, 0.15, 0.4, 0.7, 0.95])
"""Where friction curves are compared, in parts of the largest speed of the log."""


@dataclass(frozen=True)
class Found:
    """What one log gave."""

    bits: int
    seed: int
    names: tuple[str, ...]
    true: tuple[float, ...]
    value: tuple[float, ...]
    sigma: tuple[float, ...]
    curve_z: tuple[float, ...]
    """Errors of the friction torque in units of its sigma, at every speed and joint."""
    unseen: float
    """Relative error of filtered torque on the unseen log."""
    friction: str
    filter: str
    cpu_s: float

    @property
    def z(self) -> np.ndarray:
        """Errors in units of sigma."""
        return (np.array(self.value) - self.true) / np.maximum(self.sigma, 1e-300)

    @property
    def errors(self) -> np.ndarray:
        """Relative errors."""
        true = np.array(self.true)
        return np.abs(np.array(self.value) - true) / np.where(true == 0.0, 1.0, np.abs(true))


def kind_of(name: str) -> str:
    """Kind of a base value by its name: a friction or rotor value, or one of the rigid bodies; friction that the arm lacks has no truth."""
    other = "friction_without_truth" if name.startswith("f") else "inertial"
    return next((kind for symbol, kind in KINDS.items() if name.startswith(symbol)), other)


def log_path(folder: Path, bits: int, seed: int) -> Path:
    """Where the log of a seed and encoder is kept."""
    return folder / f"log_{bits}_{seed}.parquet"


def arm(n_joints: int) -> Robot:
    """The demonstration arm, or its first joints."""
    whole = demo_robot()
    return whole if n_joints >= whole.n_joints else whole.only(whole.joint_names[:n_joints])


def record(folder: Path, truth: Robot, counts: Sequence[int], seed: int) -> None:
    """Design the motion of a seed and record it with every encoder; logs that are there already stay."""
    if all(log_path(folder, bits, seed).exists() for bits in counts):
        return
    drawn = drawn_robot(truth, 0)
    design = search_excitation(
        drawn, limits=limits_of(drawn), rest=False, seconds=BUDGET_S, starts=STARTS, seed=seed, engine="serial"
    )
    motion: Samples = design.playable.samples(RATE_HZ)
    for bits in counts:
        if not log_path(folder, bits, seed).exists():
            simulated = simulate(truth, motion, rate_hz=RATE_HZ, seed=seed, encoder_counts=2**bits)
            write_recording(simulated.recording, log_path(folder, bits, seed))


def identified(folder: Path, truth: Robot, n_logs: int, settings: Settings, job: tuple[int, int]) -> Found:
    """What the command makes of one log, and the truth beside it."""
    bits, seed = job
    began = time.process_time()
    unseen = log_path(folder, bits, (seed + 1) % n_logs)
    run = identify(folder / "arm.urdf", log_path(folder, bits, seed), settings, validate_on=[unseen])
    base = run.estimate.base
    assert run.validation is not None
    assert run.filter is not None
    return Found(
        bits,
        seed,
        tuple(base.names),
        tuple(true_base_values(truth, run).tolist()),
        tuple(base.base_values(run.estimate.standard).tolist()),
        tuple(run.estimate.sigma.tolist()),
        tuple(curve_errors(truth, run).ravel().tolist()),
        float(run.validation.relative_error),
        "" if run.friction_choice is None else run.friction_choice.model,
        run.filter.describe(),
        time.process_time() - began,
    )


def curve_errors(truth: Robot, run: IdentificationResult) -> np.ndarray:
    """Errors of the friction torque, ``(speeds, joints)``, in units of its standard deviation."""
    v = SPEEDS[:, None] * np.max([np.abs(one.velocity).max(axis=0) for one in run.samples], axis=0)
    still = np.zeros_like(v)
    rubs = np.array([name.startswith("f") for name in run.robot.parameters.names])
    Y = np.array(torque_regressor(run.robot, still, v, still, load=still))
    Y[:, :, ~rubs] = 0.0
    Y = Y @ np.linalg.pinv(np.asarray(run.estimate.base.K))
    bare = truth.with_effects([effect for effect in truth.effects if not effect.is_friction])
    true = inverse_dynamics(truth, still, v, still) - inverse_dynamics(bare, still, v, still)
    sigma = np.sqrt(np.maximum(np.einsum("sjb,bc,sjc->sj", Y, run.covariance, Y), 1e-300))
    return np.asarray((Y @ run.estimate.base_values - true) / sigma)


def measured(found: Sequence[Found], bits: int) -> dict[str, object]:
    """Coverage, spread and bias by kind, and errors, of the logs of one encoder."""
    logs = [one for one in found if one.bits == bits]
    result: dict[str, object] = {}
    by_kind: dict[str, list[np.ndarray]] = {}
    biases: dict[str, list[float]] = {}
    # logs whose friction has another model have other names; a value is followed over those that have it
    values: dict[str, list[float]] = {}
    for one in logs:
        for name, z in zip(one.names, one.z.tolist(), strict=True):
            values.setdefault(name, []).append(z)
    for name, own in values.items():
        if kind_of(name) == "friction_without_truth":
            continue
        by_kind.setdefault(kind_of(name), []).append(np.array(own))
        biases.setdefault(kind_of(name), []).append(float(np.mean(own)))
    for kind, parts in sorted(by_kind.items()):
        z = np.concatenate(parts)
        result[f"{kind}_{bits}"] = float(np.mean(np.abs(z) <= WITHIN))
        result[f"{kind}_z_{bits}"] = float(np.sqrt(np.mean(z**2)))
        result[f"{kind}_bias_z_{bits}"] = float(np.sqrt(np.mean(np.square(biases[kind]))))
    curve = np.concatenate([np.array(one.curve_z) for one in logs])
    result[f"curve_{bits}"] = float(np.mean(np.abs(curve) <= WITHIN))
    result[f"curve_z_{bits}"] = float(np.sqrt(np.mean(curve**2)))
    actuator = ("viscous", "coulomb", "armature")
    errors = [e for one in logs for name, e in zip(one.names, one.errors, strict=True) if kind_of(name) in actuator]
    result[f"friction_error_median_{bits}"] = float(np.median(errors))
    result[f"friction_error_most_{bits}"] = float(np.max(errors))
    result[f"friction_within_half_percent_{bits}"] = float(np.mean(np.array(errors) <= 0.005))
    result[f"unseen_median_{bits}"] = float(np.median([one.unseen for one in logs]))
    result[f"unseen_most_{bits}"] = float(np.max([one.unseen for one in logs]))
    result[f"models_{bits}"] = dict(Counter(one.friction for one in logs))
    result[f"cpu_s_{bits}"] = float(np.mean([one.cpu_s for one in logs]))
    return result


def changed(settings: Settings, texts: Sequence[str]) -> Settings:
    """Settings with ``name=value`` texts, values as JSON where they are."""
    for text in texts:
        name, _, value = text.partition("=")
        try:
            settings = replace(settings, **{name: json.loads(value)})
        except json.JSONDecodeError:
            settings = replace(settings, **{name: value})
    return settings


def arguments_of() -> argparse.Namespace:
    """The options of this benchmark."""
    parser = measure.parser(__doc__)
    parser.add_argument("--logs", type=int, default=40, help="simulated logs per encoder")
    parser.add_argument(
        "--counts", type=int, nargs="+", default=COUNTS, help="encoders: powers of two of their counts per turn"
    )
    parser.add_argument("--joints", type=int, default=7, help="joints of the arm, from its base")
    parser.add_argument("--engine", default="serial", help="such as processes:2")
    parser.add_argument("--folder", type=Path, help="keep the simulated logs here and use those that are there")
    parser.add_argument("--set", nargs="*", default=(), help="options of the run, such as method=iv friction=smooth")
    parser.add_argument("--out", type=Path, help="file for the values of every log, one JSON object per line")
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    arguments = arguments_of()
    n_logs = 2 if arguments.smoke else arguments.logs
    counts = (20,) if arguments.smoke else tuple(arguments.counts)
    settings, engine = changed(Settings(), arguments.set), engine_from(arguments.engine)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) if arguments.folder is None else arguments.folder
        folder.mkdir(parents=True, exist_ok=True)
        truth = arm(arguments.joints)
        write_urdf(drawn_robot(truth, 0), folder / "arm.urdf")
        for seed, _ in enumerate(engine.map(partial(record, folder, truth, counts), range(n_logs))):
            print(f"recorded {seed + 1} of {n_logs}", file=sys.stderr)
        jobs = [(bits, seed) for seed in range(n_logs) for bits in counts]
        found = []
        for one in engine.map(partial(identified, folder, truth, n_logs, settings), jobs):
            found.append(one)
            print(f"2^{one.bits} log {one.seed}: {one.friction}; {one.filter}", file=sys.stderr)
            if arguments.out is not None:
                with arguments.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(asdict(one)) + "\n")
    result: dict[str, object] = {"logs": n_logs}
    for bits in counts:
        result |= measured(found, bits)
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
