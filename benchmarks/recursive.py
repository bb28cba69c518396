"""Time of one recursive update: a seven-joint arm with 69 base parameters, one sample per block.

The clock runs over everything a controller would do with one tick of measurements: make the samples, add them, solve.
The target is a 1 kHz loop: at most 0.3 ms in the median and 1 ms at the 99.9th percentile. ``p999_cpu_ms`` is the
same percentile of the processor time of the thread, which other work on the machine does not lengthen. The literal
form of the printed algorithm is timed beside it on the same samples.
"""

from __future__ import annotations

import measure

import gc
import time

import numpy as np

from dynid.dynamics.simulate import exact_motion
from dynid.estimation.methods.recursive import RecursiveLeastSquares, SampleEstimator
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.regression.base import reduce_to_base
from dynid.signals.samples import Samples


def update_times(online: SampleEstimator, motion: Samples, n_updates: int) -> np.ndarray:
    """Seconds of every update, one sample each: wall-clock and processor time of the thread, ``(2, updates)``."""
    assert motion.torque is not None
    seconds = np.empty((2, n_updates))
    gc.collect()
    gc.disable()
    try:
        for k in range(n_updates):
            i = k % len(motion)
            busy, started = time.thread_time(), time.perf_counter()
            online.update(
                Samples(
                    motion.time[i : i + 1],
                    motion.position[i : i + 1],
                    motion.velocity[i : i + 1],
                    motion.acceleration[i : i + 1],
                    motion.torque[i : i + 1],
                )
            )
            seconds[:, k] = time.perf_counter() - started, time.thread_time() - busy
    finally:
        gc.enable()
    return seconds


def main() -> None:
    """Measure and print."""
    arguments = measure.parser(__doc__).parse_args()
    n_updates = 500 if arguments.smoke else 10_000
    robot = demo_robot()
    base = reduce_to_base(robot)
    motion = exact_motion(robot, random_fourier(robot, 10.0, 5, seed=0).samples(1000.0))
    result: dict[str, object] = {"n_base": base.n_base, "n_updates": n_updates}
    for suffix, method in (
        ("", RecursiveLeastSquares()),
        ("_literal", RecursiveLeastSquares(form="literal", threshold=1e-3)),
    ):
        update_times(method.start(robot, base), motion, 100)  # compiles, and fills the caches
        wall, busy = 1e3 * update_times(method.start(robot, base), motion, n_updates)
        result[f"median_ms{suffix}"] = float(np.median(wall))
        result[f"p999_ms{suffix}"] = float(np.quantile(wall, 0.999))
        result[f"p999_cpu_ms{suffix}"] = float(np.quantile(busy, 0.999))
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
