"""Gears and sensors whose truth is known: coverage of intervals and false discoveries of ``--calibrate``, on arms that move in MuJoCo.

Four joints, 20 s at 200 Hz, torque with noise of 1 %, encoders of 18 bit at the motors; gears are second hinges. In turn every log has

    gears     compliance of all gears, 1e3 to 1e5 N m/rad (no softer than what swings at 4.5 Hz)
    play      backlash of all gears, 0.2 to 2 degrees, and friction that changes by up to half in a minute
    sensors   zeros up to 5 degrees and gains within 10 %
    stiff     nothing of it, and compliance is sought: what is undone there is false
    tight     nothing of it, and backlash and temperature are sought, the same

    python benchmarks/calibration_truth.py --logs 200

``coverage``: share of 95 % intervals that hold the truth; ``false``: share of logs without anything in which any value was undone.
``unseen``: share of values that were said to have no number. Logs go through the filter and the search of the pipeline.
"""

from __future__ import annotations

import measure

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from calibrated_logs import JOINTS, geared_log
from dynid.errors import InputError
from dynid.estimation.calibration import GEAR_BAND_HZ, find_calibration
from dynid.pipeline.signal_filter import Filter, to_samples

KINDS: dict[str, tuple[dict[str, bool], tuple[str, ...]]] = {
    "gears": ({"stiff": True}, ("compliance",)),
    "play": ({"play": True, "warm": True}, ("backlash", "temperature")),
    "sensors": ({"wrong": True}, ("zero:1", "zero:2", "gain:0", "gain:2", "gain:3")),
    "stiff": ({}, ("compliance",)),
    "tight": ({}, ("backlash", "temperature")),
}


def main() -> None:
    """Measure and print."""
    options = measure.parser(__doc__)
    options.add_argument("--logs", type=int, default=40, help="logs of all kinds together")
    options.add_argument("--first", type=int, default=0, help="seed of the first log")
    arguments = options.parse_args()
    inside: dict[str, list[bool]] = {}
    false, unseen, refused, cpu = [], [], 0, []
    band = Filter(2.0 * GEAR_BAND_HZ, 2.0 * GEAR_BAND_HZ, 4, "position", row_band_hz=GEAR_BAND_HZ)
    for k in range(len(KINDS) if arguments.smoke else arguments.logs):
        kind = tuple(KINDS)[k % len(KINDS)]
        made, asked = KINDS[kind]
        log = geared_log(arguments.first + k, **made, seconds=10.0 if arguments.smoke else 20.0)
        named = [name.partition(":") for name in asked]
        sought = [(name, j) for name, _, own in named for j in range(JOINTS) if own in ("", str(j))]
        begun = time.process_time()
        samples = to_samples(log.recording, band, log.recording.n_samples)
        try:
            found, _ = find_calibration(log.robot, [samples], band.row_filter, sought, with_friction=lambda robot, _: robot)
        except InputError as error:
            refused += 1
            print(f"log {k}: {error}", file=sys.stderr)
            continue
        cpu.append(time.process_time() - begun)
        for (name, j), one in zip(sought, found, strict=True):
            unseen.append(one.value is None)
            if one.value is not None and one.lower is not None and one.upper is not None:
                key = f"coverage_{name}" if made else "coverage_none"
                inside.setdefault(key, []).append(one.lower <= log.true(name, j) <= one.upper)
        if not made:
            false.append(any(one.undone for one in found))
        print(f"log {k} ({kind}): {cpu[-1]:.1f} s", file=sys.stderr)
    result: dict[str, Any] = {name: float(np.mean(values)) for name, values in inside.items()}
    result |= {f"n_{name}": len(values) for name, values in inside.items()}
    result["coverage"] = float(
        np.mean(np.concatenate([values for name, values in inside.items() if name != "coverage_none"]))
    )
    result |= {"false": float(np.mean(false)), "n_false": len(false), "unseen": float(np.mean(unseen)), "refused": refused}
    measure.print_result(result | {"cpu_seconds_per_log": float(np.median(cpu))}, arguments.json)


if __name__ == "__main__":
    main()
