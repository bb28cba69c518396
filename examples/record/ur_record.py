"""Play an exciting motion on a Universal Robots arm and log it for ``dynid identify --preset rtde``.

    dynid excite ur.urdf -o traj.csv -o traj.script --rate 500
    python ur_record.py 192.168.0.10 traj.csv traj.script -o run.csv

The controller itself plays ``traj.script`` (URScript, ``servoj`` at its own rate), which is sent to its secondary interface
(port 30002); this program reads every package of the Real-Time Data Exchange (port 30004) with Universal Robots' own client,
``pip install git+https://github.com/UniversalRobots/RTDE_Python_Client_Library``, and writes the rows while that program runs.
``traj.csv`` is the same motion as numbers: its speed and its start are checked before anything moves. The robot must be in
remote control, its speed slider at 100 %, its payload as mounted (best: none).

Tried: against the documented interface, with a stand-in for the client (tests/examples/test_record_scripts.py). Not tried:
on a robot. Run it in URSim first, then with the dry-run files of ``dynid excite --card``.
"""

from __future__ import annotations

import argparse
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import playback

JOINTS = 6
VECTORS = ("actual_q", "actual_qd", "actual_current", "target_q", "target_qd", "target_moment", "joint_temperatures")
SCALARS = ("speed_scaling", "payload", "runtime_state")
TORQUE = "actual_current_as_torque"  # N m; PolyScope 5.23 and 10.11 or newer
PLAYING = 2  # runtime_state
STOP_PROGRAM = "def dynid_stop():\n  stopj(2.0)\nend\n"


def columns(vectors: Sequence[str] = VECTORS) -> list[str]:
    """Columns of the log, those of the preset ``rtde`` among them."""
    return ["timestamp", *(f"{name}_{j}" for name in vectors for j in range(JOINTS)), *SCALARS]


def row(state: Any, vectors: Sequence[str] = VECTORS) -> list[float]:
    """One package as numbers in the order of :func:`columns`."""
    values = [float(state.timestamp)]
    for name in vectors:
        values += [float(value) for value in getattr(state, name)]
    return values + [float(getattr(state, name)) for name in SCALARS]


def start_of(program: str) -> np.ndarray:
    """The position that a program of ``dynid excite`` moves to first."""
    found = re.search(r"movej\(\[([^\]]*)\]", program)
    if found is None:
        raise playback.RefusedError("the program has no movej([..]), expected the .script file of dynid excite")
    return np.array([float(value) for value in found[1].split(",")])


def send(host: str, program: str, port: int) -> None:
    """Have the controller run a program."""
    with socket.create_connection((host, port), timeout=5.0) as connection:
        connection.sendall(program.encode())


@contextmanager
def exchange(host: str, rate_hz: float, vectors: Sequence[str]) -> Iterator[Iterator[Any]]:
    """The packages of the controller, as long as they are listened to."""
    from rtde import rtde

    connection = rtde.RTDE(host)
    connection.connect()
    try:
        if not connection.send_output_setup(["timestamp", *vectors, *SCALARS], frequency=rate_hz):
            raise playback.RefusedError(f"the controller does not send {', '.join(vectors)} at {rate_hz:g} Hz")
        if not connection.send_start():
            raise playback.RefusedError("the controller does not start the data exchange")
        yield packages(connection)
    finally:
        connection.disconnect()


def packages(connection: Any, patience_s: float = 2.0) -> Iterator[Any]:
    """Every package in order; an exchange that falls silent is an error, not an end."""
    heard = time.monotonic()
    while time.monotonic() - heard < patience_s:
        state = connection.receive_buffered()
        if state is None:
            time.sleep(0.0005)
            continue
        heard = time.monotonic()
        yield state
    raise playback.RefusedError(f"no package for {patience_s:g} s: was the robot switched off?")


def recorded(states: Iterator[Any], vectors: Sequence[str], longest_s: float) -> Iterator[list[float]]:
    """Rows while the program runs: from its first package to its last."""
    began, playing = None, False
    for state in states:
        began = state.timestamp if began is None else began
        if state.runtime_state == PLAYING:
            playing = True
            yield row(state, vectors)
        elif playing:
            return
        if not playing and state.timestamp - began > 5.0:
            raise playback.RefusedError("the program did not start: is the robot in remote control, released and powered?")
        if state.timestamp - began > longest_s:
            raise playback.RefusedError(f"the program still runs after {longest_s:.0f} s, expected it to have ended")


def record(options: argparse.Namespace) -> int:
    """Check, ask, play, log; returns the number of rows."""
    output = playback.check_new(options.output)
    motion = playback.read_motion(options.motion)
    motion.check(JOINTS, options.max_speed)
    program = Path(options.program).read_text(encoding="utf-8")
    if np.abs(start_of(program) - motion.position[0]).max() > 1e-6:
        raise playback.RefusedError(
            f"{options.program} and {options.motion} start elsewhere: export both by one dynid excite"
        )
    vectors = (*VECTORS, TORQUE) if options.torque else VECTORS
    with exchange(options.host, options.rate, vectors) as states:
        first = next(states)
    distance = playback.check_start(first.actual_q, motion.position[0], options.near)
    if first.payload > 0.0:
        print(f"note: the controller is configured with a payload of {first.payload:g} kg; is it mounted?")
    playback.confirm(f"{motion.summary()}; the start is {distance:.2f} rad away and approached slowly")
    # Opened anew: packages that nobody reads while the question waits would pile up.
    with exchange(options.host, options.rate, vectors) as states:
        playback.check_start(next(states).actual_q, motion.position[0], options.near)
        send(options.host, program, options.port)
        try:
            rows = list(recorded(states, vectors, motion.duration_s + 30.0))
        except BaseException:
            send(options.host, STOP_PROGRAM, options.port)  # also on Ctrl-C
            raise
    if any(values[columns(vectors).index("speed_scaling")] < 0.999 for values in rows):
        print("note: the controller slowed the motion down (speed_scaling below 1)")
    return playback.write_log(output, columns(vectors), rows)


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("host", help="address of the robot")
    parser.add_argument("motion", help="motion as CSV, of dynid excite")
    parser.add_argument("program", help="the same motion as .script, of the same dynid excite")
    parser.add_argument("-o", "--output", default="run.csv", help="log to write")
    parser.add_argument("--rate", type=float, default=500.0, help="packages per second: 500 (e-Series) or 125 (CB3)")
    parser.add_argument("--torque", action="store_true", help=f"log {TORQUE} too (PolyScope 5.23, 10.11 or newer)")
    parser.add_argument("--max-speed", type=float, default=1.5, help="fastest joint allowed, rad/s")
    parser.add_argument("--near", type=float, default=playback.NEAR, help="how far from the start the robot may stand, rad")
    parser.add_argument("--port", type=int, default=30002, help="port that takes programs")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Record; a refusal is one sentence."""
    options = parsed(arguments)
    try:
        count = record(options)
    except (playback.RefusedError, OSError) as refusal:
        raise SystemExit(f"refused: {refusal}") from None
    print(f"{count} rows in {options.output}; next: dynid data {options.output} --robot ur.urdf --preset rtde")


if __name__ == "__main__":
    main()
