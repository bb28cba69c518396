"""Simulated streams of a small arm, as lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dynid.apps.online.options import OnlineSettings
from dynid.apps.online.session import Session
from dynid.apps.online.sources import Source
from dynid.apps.online.watcher import Watcher
from dynid.dynamics.simulate import exact_motion
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.model.robot import Robot
from dynid.signals.recording import Recording

RATE_HZ = 200.0


@dataclass(frozen=True)
class Stream:
    """A robot, what it did, and the lines that say so."""

    robot: Robot
    recording: Recording

    def json_lines(self) -> list[str]:
        rec = self.recording
        rows = zip(rec.time.tolist(), rec.position.tolist(), rec.torque.tolist(), strict=True)
        return [json.dumps({"t": t, "q": q, "tau": tau}) for t, q, tau in rows]

    def csv_lines(self) -> list[str]:
        rec, n = self.recording, self.robot.n_dof
        head = ",".join(["t", *(f"q{j + 1}" for j in range(n)), *(f"tau{j + 1}" for j in range(n))])
        table = np.column_stack([rec.time, rec.position, rec.torque])
        return [head, *(",".join(map(repr, row)) for row in table.tolist())]


@cache
def small_arm() -> Robot:
    return demo_robot().only(["shoulder_yaw", "shoulder_pitch", "elbow"])


def stream(
    seconds: float = 12.0, seed: int = 1, noise: float = 0.1, robot: Robot | None = None, start_s: float = 0.0
) -> Stream:
    """Periodic exciting motion of a three-joint arm under noise of torque."""
    arm = robot or small_arm()
    period = exact_motion(arm, random_fourier(arm, 4.0, 4, seed=0).samples(RATE_HZ))
    n = len(period.time) - 1
    rows = np.arange(round(seconds * RATE_HZ)) % n
    rng = np.random.default_rng(seed)
    assert period.torque is not None
    tau = period.torque[rows] + noise * rng.standard_normal((len(rows), arm.n_dof))
    time = start_s + np.round(np.arange(len(rows)) / RATE_HZ, 6)
    return Stream(arm, Recording(time=time, joint_names=arm.joint_names, position=period.position[rows], torque=tau))


def reports_of(
    given: Stream,
    source: Source,
    checkpoint: Path | None = None,
    *,
    resume: bool = False,
    said: list[str] | None = None,
) -> list[dict[str, Any]]:
    """What a watch of a source reports."""
    said = [] if said is None else said
    settings = OnlineSettings(checkpoint=None if checkpoint is None else str(checkpoint), resume=resume)
    return [dict(one) for one in Session(Watcher(given.robot, settings=settings), source, said.append).run()]


def told(given: Stream) -> list[dict[str, Any]]:
    """What a watcher tells that is fed all lines."""
    watcher = Watcher(given.robot)
    found = [report for line in given.json_lines() for report in watcher.feed(line)]
    last = watcher.finish()
    assert last is not None
    return [report.as_dict() for report in [*found, last]]


def facts(reports: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Reports without what depends on the machine."""
    return [
        {k: v for k, v in one.items() if k not in ("final", "waiting", "stalls", "latency_ms", "cpu_ms")} for one in reports
    ]
