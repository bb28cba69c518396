"""A stream of 1 kHz from a socket into ``dynid watch`` beside its own page: rows lost, latency, memory, and the batch result.

The program is started as a user starts it, with one reader of its page's events, and a sender writes one line a millisecond of a simulated
seven-joint arm. ``median_ms`` and ``p999_ms`` run from the arrival of the first of the lines that are handed over together (those of 5 ms)
to the state that a line changes, on the wall clock, and feel
everything else that the machine does, a sender that was held up and then sends a heap of lines, too (``sender_late_p999_ms``: how late
lines were sent); ``median_cpu_ms`` and ``p999_cpu_ms`` are processor time of the thread for the same work, which other
work does not lengthen; ``cpu_share`` is the processor time of the whole process over the time of the stream. ``batch_difference`` is the
largest difference of the final values from those of the batch path on the same rows, over the largest value. The stream takes ``--seconds``
of real time (600 unless --smoke).
"""

from __future__ import annotations

import measure

import gc
import json
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np

from dynid.apps.online.rows import RowOptions
from dynid.dynamics.simulate import exact_motion
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import WeightedLeastSquares
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.io.robots.read import read_robot
from dynid.io.robots.urdf_write import write_urdf
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import factorise
from dynid.regression.row_filter import BandLimit, FilteredRows
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.steps.filters import SavitzkyGolay

RATE_HZ = 1000.0
PERIOD_S = 20.0
NOISE = 0.1


def motion(robot, seconds: float) -> Recording:
    """Periodic exciting motion under noise of torque."""
    period = exact_motion(robot, random_fourier(robot, PERIOD_S, 5, seed=0).samples(RATE_HZ))
    rows = np.arange(round(seconds * RATE_HZ)) % (len(period.time) - 1)
    rng = np.random.default_rng(0)
    tau = period.torque[rows] + NOISE * rng.standard_normal((len(rows), robot.n_dof))
    time_s = np.round(np.arange(len(rows)) / RATE_HZ, 6)
    return Recording(time=time_s, joint_names=robot.joint_names, position=period.position[rows], torque=tau)


def send(port: int, folder: str, answer) -> None:
    """One line a millisecond, made beforehand; a sender that is late catches up. The answer is by how much, s, for every line.

    It runs in a process of its own: as a thread beside the readers of reports and events it waited for them by half a second at times.
    """
    lines = Path(folder, "lines").read_bytes().splitlines(keepends=True)
    late = np.empty(len(lines))
    gc.disable()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        started = time.perf_counter()
        for index, line in enumerate(lines):
            due = started + index / RATE_HZ
            wait = due - time.perf_counter()
            if wait > 0.0:
                time.sleep(wait)
            late[index] = time.perf_counter() - due
            connection.sendall(line)
    answer.send(late.tolist())


def write_lines(recording: Recording, folder: Path) -> None:
    """The lines that the sender sends."""
    rows = zip(recording.time.tolist(), recording.position.tolist(), recording.torque.tolist(), strict=True)
    with (folder / "lines").open("w") as out:
        out.writelines(json.dumps({"t": t, "q": q, "tau": tau}) + "\n" for t, q, tau in rows)


def read_events(url: str) -> None:
    """A browser's part: take every event."""
    try:
        with urllib.request.urlopen(url + "events") as answer:
            for _ in answer:
                pass
    except OSError:
        return


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    return float(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024.0


def cpu_s(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def batch_values(robot, recording: Recording) -> np.ndarray:
    """The base values of the same rows by the path of whole logs."""
    options = RowOptions()
    window = options.window_rows(1.0 / RATE_HZ)
    smooth = SavitzkyGolay(window=window, order=options.order, velocity="position", signals=("position",))
    samples = process(recording, [smooth], edge_s=(window // 2) / RATE_HZ)
    data = factorise(FilteredRows(TorqueRows(robot, (samples,)), BandLimit(options.band_hz)))
    method = WeightedLeastSquares(settle=1e-12, iterations=50, covariance="classical")
    return estimate(data, reduce_to_base(robot), method).base_values


def main() -> None:
    """Measure and print."""
    parser = measure.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=None, help="length of the stream")
    arguments = parser.parse_args()
    seconds = arguments.seconds or (20.0 if arguments.smoke else 600.0)
    with tempfile.TemporaryDirectory() as folder:
        urdf = Path(folder) / "arm.urdf"
        write_urdf(demo_robot(), urdf)
        robot = read_robot(urdf, "viscous,coulomb,offset,armature")
        recording = motion(robot, seconds)
        write_lines(recording, Path(folder))
        command = [
            sys.executable,
            "-m",
            "dynid",
            "watch",
            str(urdf),
            "--source",
            "tcp://127.0.0.1:0",
            "--once",
            "--page",
            "0",
            "--json",
        ]
        command += ["--checkpoint", str(Path(folder) / "watch.npz")]
        watch = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        url = port = None
        while port is None:
            line = watch.stderr.readline()
            url = url or (found[0] if (found := re.search(r"http://\S+", line)) else None)
            port = int(found[1]) if (found := re.search(r"\(port (\d+)\)", line)) else None
        threading.Thread(target=read_events, args=(url,), daemon=True).start()
        threading.Thread(target=watch.stderr.read, daemon=True).start()
        before = cpu_s(watch.pid)
        answer, question = multiprocessing.Pipe(duplex=False)
        sender = multiprocessing.get_context("spawn").Process(target=send, args=(port, folder, question), daemon=True)
        sender.start()
        reports, memory = [], []
        busy = before
        for line in watch.stdout:
            reports.append(json.loads(line))
            if not reports[-1]["final"]:
                memory.append(memory_mb(watch.pid))
                busy = cpu_s(watch.pid)
        watch.wait()
        late = answer.recv()
        last = reports[-1]
        values = np.array(list(last["values"].values()))
        expected = batch_values(robot, recording)
    tail = memory[len(memory) // 10 :]
    measure.print_result(
        {
            "rows_sent": len(recording.time),
            "rows_lost": len(recording.time) - last["rows"],
            "malformed": last["malformed"],
            "stalls": last["stalls"],
            "median_ms": last["latency_ms"]["median"],
            "p999_ms": last["latency_ms"]["p999"],
            "median_cpu_ms": last["cpu_ms"]["median"],
            "p999_cpu_ms": last["cpu_ms"]["p999"],
            "largest_cpu_ms": last["cpu_ms"]["largest"],
            "cpu_share": (busy - before) / seconds,
            "memory_mb": tail[-1],
            "memory_growth_mb": float(np.median(tail[-5:]) - np.median(tail[:5])),
            "batch_difference": float(np.abs(values - expected).max() / np.abs(expected).max()),
            "sender_late_p999_ms": 1e3 * float(np.quantile(late, 0.999)),
            "load_average": os.getloadavg()[0],
        },
        arguments.json,
    )


if __name__ == "__main__":
    main()
