"""Everything that is compiled or loaded at its first use, used once before rows count on being answered in time."""

from __future__ import annotations

import json

import numpy as np

from dynid.recording.readers.options import ReadOptions
from dynid.robot.model import Robot
from dynid.watch.flow import Reference, WatchOptions
from dynid.watch.watcher import Watcher

_ROWS, _PERIOD_S = 1200, 0.002


def warm_up(robot: Robot, options: WatchOptions, reference: Reference | None) -> None:
    """Run a short invented stream through a watcher of the same robot and options, and forget it."""
    watcher = Watcher(robot, ReadOptions(), options, reference, where="a rehearsal")
    rng = np.random.default_rng(0)
    phase = rng.uniform(0.0, 6.0, robot.n_dof)
    period_s = min(_PERIOD_S, options.rows.polynomial.window_s / 20.0)
    for k in range(_ROWS):
        t = k * period_s
        row = {
            "t": t,
            "q": (0.2 * np.sin(t + phase)).tolist(),
            "dq": (0.2 * np.cos(t + phase)).tolist(),
            "tau": rng.standard_normal(robot.n_dof).tolist(),
        }
        for _ in watcher.feed(json.dumps(row)):
            pass
    watcher.finish()
    watcher.state()
