"""How often 95 % intervals hold the truth, by kind of parameter: the demonstration arm, simulated, over many logs.

The motion is that of ``dynid demo``; every log has its own noise, and its encoders 2^14, 2^17 or 2^20 counts per turn. Each is
identified by what ``dynid identify arm.urdf log.parquet`` does without options. An interval is ``value +- 1.96 sigma`` of a base
value. The reference is 95 %: 90 to 98 % is asked for, and a median friction error of 0.1 % with 2^20 counts.
"""

from __future__ import annotations

import measure

import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

from dynid.excitation.design import design_excitation
from dynid.export.urdf import write_urdf
from dynid.publish.demo import DESIGN_S, RATE_HZ, drawn_robot
from dynid.recording.recording import write_recording
from dynid.recording.samples import Samples
from dynid.robot.builtin import demo_robot
from dynid.robot.model import Robot
from dynid.run.identify import identify
from dynid.run.options import Settings
from dynid.run.record import Run
from dynid.simulation import simulate

COUNTS = (14, 17, 20)
KINDS = {"fv": "viscous", "fc": "coulomb", "fo": "offset", "Ia": "armature"}


def kind_of(name: str) -> str:
    """Kind of a base value by its name: a friction or rotor value, or one of the rigid bodies."""
    return next((kind for symbol, kind in KINDS.items() if name.startswith(symbol)), "inertial")


def one_log(folder: Path, truth: Robot, description: Path, motion: Samples, bits: int, seed: int) -> Run:
    """A simulated log and what the command makes of it."""
    log = simulate(truth, motion, rate_hz=RATE_HZ, seed=seed, encoder_counts=2**bits).recording
    path = Path(write_recording(log, folder / f"log_{bits}_{seed}.parquet"))
    run = identify(description, path, Settings())
    path.unlink()
    return run


def misses(run: Run, truth: Robot) -> dict[str, tuple[bool, float]]:
    """For every base value whether its interval holds the truth, and its relative error."""
    known = truth.with_effects(run.robot.effects).with_parameters(
        {name: truth.parameters[name] for name in truth.parameters.names if name in run.robot.parameters.names}
    )
    base = run.estimate.base
    true = base.base_values(known.parameters)
    found, sigma = base.base_values(run.estimate.standard), run.estimate.sigma
    return {
        name: (abs(found[i] - true[i]) <= 1.96 * sigma[i], abs(found[i] / true[i] - 1.0) if true[i] else 0.0)
        for i, name in enumerate(base.names)
    }


def main() -> None:
    """Measure and print."""
    parser = measure.parser(__doc__)
    parser.add_argument("--logs", type=int, default=40, help="simulated logs per encoder")
    arguments = parser.parse_args()
    n_logs = 2 if arguments.smoke else arguments.logs
    truth = demo_robot()
    result: dict[str, object] = {"logs": n_logs}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        drawn = drawn_robot(truth, 0)
        description = folder / "arm.urdf"
        write_urdf(drawn, description)
        motion = design_excitation(drawn, seconds=DESIGN_S, seed=0).playable.samples(RATE_HZ)
        for bits in COUNTS:
            holds: dict[str, list[bool]] = defaultdict(list)
            errors: dict[str, list[float]] = defaultdict(list)
            models: dict[str, int] = defaultdict(int)
            for seed in range(n_logs):
                run = one_log(folder, truth, description, motion, bits, seed)
                models["" if run.friction is None else run.friction.model] += 1
                for name, (held, error) in misses(run, truth).items():
                    holds[kind_of(name)].append(held)
                    errors[kind_of(name)].append(error)
            for kind in sorted(holds):
                result[f"{kind}_{bits}"] = float(np.mean(holds[kind]))
            friction = [error for kind in ("viscous", "coulomb", "armature") for error in errors[kind]]
            result[f"friction_error_median_{bits}"] = float(np.median(friction))
            result[f"friction_error_most_{bits}"] = float(np.max(friction))
            result[f"models_{bits}"] = dict(models)
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
