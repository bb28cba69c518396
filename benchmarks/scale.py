"""From one log to many, measured by the command that a user types: ``dynid identify ROBOT LOG...``.

    python benchmarks/scale.py                       # 10 million rows x 7 joints, 200 logs, 60 joints, Dask
    python benchmarks/scale.py --only rows --rows 1000000
    python benchmarks/scale.py --only growth         # 10^5 to 10^7 rows, one line each

All data are simulated here and written as parquet: a periodic motion of the demonstration arm at 1 kHz (the 60 joints: a chain of
random bodies at 100 Hz) with its inverse-dynamics torque, smooth Coulomb friction and noise. ``cpu_s`` is user plus system time of the
whole command, from the start of Python to the written report and models; ``peak_mb`` its largest resident memory.
``rows_per_second`` is rows divided by that time. ``marginal_rows_per_second`` is what one more row costs: the difference of the longest and
the shortest log of ``growth``. Dask: triangles of 64 partitions on a ``LocalCluster`` of single-thread processes against the same
on one; ``dask_speedup`` (two workers) and ``dask_speedup_4`` are ratios of wall-clock times, the shortest
of three each, and need two idle cores.
"""

from __future__ import annotations

import measure

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

PARTS = ("rows", "logs", "joints", "growth", "dask")
PERIOD_S, RATE_HZ = 20.0, 1000.0
GROUP_ROWS = 100_000
DASK_TURNS = 3


def arm() -> Any:
    """The demonstration arm with friction that no sampled sign can spoil."""
    from dynid.io.demo import demo_robot
    from dynid.model.effects.dry_friction import SmoothCoulomb
    from dynid.model.effects.linear import Armature, Offset, Viscous

    return demo_robot([Viscous(), SmoothCoulomb(smooth_width=0.02), Offset(), Armature()])


def period_of(robot: Any, seed: int = 1) -> np.ndarray:
    """Position, velocity and torque of one period, side by side."""
    from dynid.dynamics.inverse_dynamics import inverse_dynamics
    from dynid.excitation.shapes import random_fourier

    motion = random_fourier(robot, PERIOD_S, 5, seed=seed).samples(RATE_HZ)[: int(PERIOD_S * RATE_HZ)]
    torque = inverse_dynamics(robot, motion.position, motion.velocity, motion.acceleration)
    return np.hstack([motion.position, motion.velocity, torque])


def write_log(path: Path, rows: int, period: np.ndarray, rate_hz: float = RATE_HZ, seed: int = 0) -> None:
    """A log of so many rows, written piece by piece: noise of an encoder on motion, of a sensor on torque."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    n = period.shape[1] // 3
    spread = np.concatenate([np.full(n, 1e-5), np.full(n, 1e-3), 0.01 * period[:, 2 * n :].std(axis=0)])
    names = [f"{symbol}{j + 1}" for symbol in ("q", "dq", "tau") for j in range(n)]
    schema = pa.schema([(name, pa.float64()) for name in ("t", *names)])
    rng = np.random.default_rng(seed)
    with parquet.ParquetWriter(path, schema, compression="zstd", compression_level=1) as writer:
        for start in range(0, rows, GROUP_ROWS):
            places = np.arange(start, min(start + GROUP_ROWS, rows))
            noisy = period[places % len(period)] + spread * rng.normal(size=(len(places), 3 * n))
            writer.write_table(pa.table([places / rate_hz, *noisy.T], schema=schema))


def command(arguments: list[str]) -> dict[str, Any]:
    """Time, peak memory and answer of a command in a process of its own."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is not compiled at every start
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "dynid", *arguments, "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    answer = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"dynid {' '.join(arguments[:4])} ended with {process.returncode}")
    return {
        "cpu_s": used.ru_utime + used.ru_stime,
        "wall_s": time.perf_counter() - started,
        "peak_mb": used.ru_maxrss / 1024.0,
        "answer": json.loads(answer),
    }


def identified(robot: Path, logs: list[str], folder: Path, *options: str) -> dict[str, Any]:
    """The main command, once; its error on the logs goes along, since speed without an answer is worth nothing."""
    found = command(["identify", str(robot), *logs, *options, "-o", str(folder / "run")])
    answer = found.pop("answer")
    return {**found, "relative_error": answer["relative_error"]["identification"]}


def long_log(folder: Path, rows: int, options: list[str]) -> dict[str, Any]:
    """One log of 7 joints."""
    from dynid.io.demo import demo_description

    robot, log = folder / "arm.toml", folder / f"log_{rows}.parquet"
    robot.write_text(demo_description())
    sys.stderr.write(f"writing a simulated log of {rows} rows\n")
    write_log(log, rows, period_of(arm()))
    size = log.stat().st_size / 2**20
    found = identified(robot, [str(log)], folder, *options)
    log.unlink()
    return {"rows": rows, "file_mb": size, **found, "rows_per_second": rows / found["cpu_s"]}


def many_logs(folder: Path, n_logs: int, rows: int, options: list[str]) -> dict[str, Any]:
    """Logs of 20 s by one pattern."""
    from dynid.io.demo import demo_description

    robot, logs = folder / "arm.toml", folder / "logs"
    robot.write_text(demo_description())
    logs.mkdir()
    sys.stderr.write(f"writing {n_logs} simulated logs of {rows} rows\n")
    periods = [period_of(arm(), seed) for seed in range(1, 9)]
    for k in range(n_logs):
        write_log(logs / f"log{k:03d}.parquet", rows, periods[k % len(periods)], seed=k)
    return {"logs": n_logs, "rows": n_logs * rows, **identified(robot, [str(logs / "*.parquet")], folder, *options)}


def many_joints(folder: Path, n_joints: int, rows: int, options: list[str]) -> dict[str, Any]:
    """One log of a long chain."""
    from dynid.dynamics.inverse_dynamics import inverse_dynamics
    from dynid.io.robots.urdf_write import write_urdf
    from dynid.model.effects.dry_friction import SmoothCoulomb
    from dynid.model.effects.linear import Armature, Offset, Viscous
    from identify import chain, motion

    robot = chain(n_joints, [Viscous(), SmoothCoulomb(smooth_width=0.02), Offset(), Armature()])
    description = write_urdf(robot, folder / "chain.urdf").path
    q, v, a = motion(n_joints, np.arange(rows) / 100.0)
    log = folder / "chain.parquet"
    write_log(log, rows, np.hstack([q, v, inverse_dynamics(robot, q, v, a)]), rate_hz=100.0)
    return {"joints": n_joints, "rows": rows, **identified(description, [str(log)], folder, *options)}


def on_a_cluster(folder: Path, rows: int, workers: tuple[int, ...]) -> dict[str, Any]:
    """Triangles of 64 partitions, made by one Dask worker, by two and by four, and here."""
    from dynid.engine import Dask
    from dynid.engine_dask import connected
    from dynid.io.demo import demo_robot
    from dynid.pipeline import partitions
    from dynid.pipeline.data import open_logs
    from dynid.pipeline.options import Settings
    from dynid.pipeline.row_plan import RowPlan
    from dynid.pipeline.signal_filter import Filter
    from dynid.regression.factor import factorise
    from dynid.regression.partitions import merged, one_block

    log = folder / "log.parquet"
    sys.stderr.write(f"writing a simulated log of {rows} rows\n")
    write_log(log, rows, period_of(arm()))
    partitions.PARTITION_ROWS = rows // 64
    logs = open_logs(demo_robot(), [log], Settings(stream="on"))
    filtered, plan = Filter(24.0, 12.0, 4, "logged", row_band_hz=12.0), RowPlan("torque", 12.0)
    whole = plan.source(demo_robot(), logs.filtered(filtered, rows, still=True).samples)  # type: ignore[union-attr]
    parts = [part for own in partitions.partitioned(whole) for part in own]
    serial = factorise(whole)
    found: dict[str, Any] = {"partitions": len(parts), "bytes_per_partition": bytes_moved(parts[0])}
    found["dask_difference"] = 0.0
    for n in workers:
        engine = Dask(n=n)
        list(engine.map(one_block, parts[: 4 * n]))  # every worker is up, and has loaded its kernels
        seconds = []
        for _ in range(DASK_TURNS):
            started = time.perf_counter()
            together = merged(parts, engine.map, whole)
            seconds.append(time.perf_counter() - started)
        found[f"dask_wall_s_{n}"] = min(seconds)  # what else the machine does only ever lengthens one
        found["dask_difference"] = max(
            found["dask_difference"],
            *(
                float(np.abs(a.R.T @ a.R - b.R.T @ b.R).max() / np.abs(a.R.T @ a.R).max())
                for a, b in zip(serial.factors, together.factors, strict=True)
            ),
        )
        client = connected(None, n)
        client.cluster.close()  # idle workers and their scheduler take time from the next ones
        client.close()
    for n, name in ((2, "dask_speedup"), (4, "dask_speedup_4")):
        if {1, n} <= set(workers):
            found[name] = found["dask_wall_s_1"] / found[f"dask_wall_s_{n}"]
    return found


def bytes_moved(part: Any) -> int:
    """What travels for one partition: the work to the worker and its triangles back, as Dask writes them."""
    from distributed.protocol import serialize

    from dynid.estimation.residuals import one_block_with_cells

    return sum(memoryview(frame).nbytes for value in (part, one_block_with_cells(part)) for frame in serialize(value)[1])


def asked() -> argparse.Namespace:
    """The options."""
    options = measure.parser(__doc__)
    options.add_argument("--only", action="append", choices=PARTS, help="some of the measurements; repeat for several")
    options.add_argument("--rows", type=int, default=10_000_000, help="rows of the long log")
    options.add_argument("--folder", type=Path, help="where data are written; default: a temporary folder")
    options.add_argument(
        "--option", action="append", default=[], help="an option for dynid identify, such as --option=--friction=linear"
    )
    return options.parse_args()


def main() -> None:
    """All figures."""
    arguments = asked()
    smoke, given = arguments.smoke, arguments.option
    wanted = arguments.only or [name for name in PARTS if name != "growth"]
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        if smoke:
            given = [*given, "--stream=on", "--method=wls", "--cutoff-hz=12", "--signal-band-hz=24"]
        if "rows" in wanted:
            found = long_log(folder, 40_000 if smoke else arguments.rows, given)
            result |= {"rows": found, "rows_per_second": found["rows_per_second"], "peak_mb": found["peak_mb"]}
        if "logs" in wanted:
            result["logs"] = many_logs(folder, *((3, 5_000) if smoke else (200, 20_000)), given)
        if "joints" in wanted:
            result["joints"] = many_joints(folder, *((9, 2_000) if smoke else (60, 20_000)), given)
        if "growth" in wanted:
            sizes = (20_000, 40_000) if smoke else (100_000, 1_000_000, 10_000_000)
            table = [long_log(folder, rows, [*given, "--stream=on"]) for rows in sizes]
            result["growth"] = table
            result["marginal_rows_per_second"] = (sizes[-1] - sizes[0]) / (table[-1]["cpu_s"] - table[0]["cpu_s"])
        if "dask" in wanted:
            result |= on_a_cluster(folder, 64_000 if smoke else 4_000_000, (2,) if smoke else (1, 2, 4))
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
