"""Logs larger than memory: a parquet log streamed through process, row filter and build_regression, against the same in memory.

    python benchmarks/stream.py --rows 10000000

The log is simulated: a periodic Fourier motion of the built-in arm, sampled at 1 kHz, with its inverse-dynamics torque. Streaming
and reading whole run in processes of their own, so that the peak memory of each is its own; ``peak_mb`` is the resident peak of the
streaming process, everything included.
"""

from __future__ import annotations

import measure

import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

from dynid.io.logs.read import open_recording

CHUNK_ROWS = 50_000


def write_log(path: Path, rows: int) -> None:
    """The log, written piece by piece."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dynid.dynamics.simulate import exact_motion
    from dynid.excitation.shapes import random_fourier
    from dynid.io.demo import demo_robot

    robot = demo_robot()
    period = exact_motion(robot, random_fourier(robot, 20.0, 5, seed=1).samples(1000.0)[:20_000])
    names = [f"{symbol}{j + 1}" for symbol in ("q", "dq", "tau") for j in range(robot.n_joints)]
    assert period.torque is not None
    block = np.hstack([period.position, period.velocity, period.torque])
    noise = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float64()) for name in ("t", *names)])
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as writer:
        for start in range(0, rows, len(block)):
            part = block[: min(len(block), rows - start)]
            noisy = part + 1e-4 * noise.normal(size=part.shape)
            time_s = (start + np.arange(len(part))) * 1e-3
            writer.write_table(pa.table([time_s, *noisy.T], schema=schema))


def run(path: str, streamed: bool) -> dict[str, float]:
    """Factor the log and say how long it took and how much memory this process ever held."""
    import dynid
    from dynid.io.demo import demo_robot

    robot = demo_robot()
    steps = [dynid.LowPass(cutoff_hz=40.0, signals=("position", "velocity")), dynid.Differentiate()]
    band = dynid.BandLimit(10.0)
    warm = open_recording(path, robot, chunk_rows=2_000)
    dynid.build_regression(robot, dynid.process(next(iter(warm)), steps), row_filter=band)
    started = time.perf_counter()
    source = open_recording(path, robot, chunk_rows=CHUNK_ROWS) if streamed else dynid.read_recording(path, robot)
    regression = dynid.build_regression(robot, dynid.process(source, steps), row_filter=band)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    return {
        "seconds": seconds,
        "peak_mb": peak,
        "rows": float(regression.n_samples),
        "norm": float(regression.torque_norms.sum()),
    }


def in_new_process(path: Path, streamed: bool) -> dict[str, float]:
    """``run`` where nothing was loaded before."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(run, (str(path), streamed))


def main() -> None:
    """Measure and print."""
    parser = measure.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    rows = 100_000 if options.smoke else options.rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        sys.stderr.write(f"writing a simulated log of {rows} rows\n")
        write_log(path, rows)
        size = path.stat().st_size / 2**20
        sys.stderr.write(f"streaming {size:.0f} MB\n")
        streamed = in_new_process(path, streamed=True)
        short = min(rows, 1_000_000)  # whole in memory: a part is enough to know the speed
        if short < rows:
            path.unlink()
            write_log(path, short)
        whole = in_new_process(path, streamed=False)
    measure.print_result(
        {
            "rows": rows,
            "file_mb": round(size, 1),
            "peak_mb": round(streamed["peak_mb"], 1),
            "rows_per_second": round(rows / streamed["seconds"]),
            "in_memory_rows_per_second": round(short / whole["seconds"]),
            "in_memory_peak_mb": round(whole["peak_mb"], 1),
        },
        options.json,
    )


if __name__ == "__main__":
    main()
