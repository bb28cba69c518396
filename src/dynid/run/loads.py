"""The loads that ``dynid payload`` finds from logs with them and a run without: at once, or block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.errors import InputError
from dynid.estimation.online_body import OnlineBody, OnlineBodyState
from dynid.files import read_json
from dynid.robot.frames import Frame, frame_named
from dynid.run.known_load import known_load
from dynid.run.load_rows import load_parameters, load_rows
from dynid.run.log_paths import log_paths
from dynid.run.options import Reading, Settings
from dynid.run.payload import Payload, identify_payload, loaded_samples
from dynid.run.payload_options import PayloadSettings
from dynid.run.record import Run


def loads_of(run: Run, logs: Sequence[str | Path], settings: PayloadSettings) -> list[tuple[list[Path], Payload]]:
    """The loads that ``dynid payload RUN LOG...`` finds, each with its logs: one of all of them, or one of each.

    Args:
        run: identified without the load.
        logs: logs with the load: files, folders, patterns, URLs.
        settings: frame, what is known of the load, how the logs are read.
    """
    chosen: dict[str, Any] = {
        "constraints": known_load(settings.mass, settings.shape),
        "tool": _tool(settings.tool),
        "gain_sigma": None if settings.gain_percent is None else settings.gain_percent / 100.0,
        "settings": replace(run.settings, **settings.changed(Reading)),
    }
    paths = log_paths(logs)
    groups = [[log] for log in paths] if settings.each else [paths]
    return [(group, identify_payload(run, group, settings.frame, **chosen)) for group in groups]


def online_loads_of(run: Run, logs: Sequence[str | Path], settings: PayloadSettings) -> Iterator[OnlineBodyState]:
    """The same block by block, as if the logs came in now."""
    reading = replace(run.settings, **settings.changed(Reading))
    return online_payload(run, logs, settings.frame, tool=_tool(settings.tool), settings=reading)


def _tool(path: str | None) -> list[float] | None:
    """Ten parameters of a tool from the JSON that an earlier payload printed."""
    if path is None:
        return None
    phi = read_json(Path(path), "file of --tool").get("phi")
    if not isinstance(phi, list) or len(phi) != 10 or not all(isinstance(value, int | float) for value in phi):
        raise InputError(f"'{path}' has no ten numbers under 'phi', expected what 'dynid payload ... --json' prints")
    return [float(value) for value in phi]


def online_payload(
    run: Run,
    logs: Sequence[str | Path],
    link: str | Frame | None = None,
    *,
    tool: ArrayLike | None = None,
    block_s: float = 1.0,
    settings: Settings | None = None,
) -> Iterator[OnlineBodyState]:
    """The load block by block, as if the logs came in now; rows are counted by the noise of each joint in the run.

    Args:
        run: identified without the load.
        logs: logs with the load.
        link: frame that carries it.
        tool: ten parameters in the same frame of what is not in the run either.
        block_s: length of a block, s.
        settings: how the logs are read; by default as those of the run were.
    """
    if not (np.isfinite(block_s) and block_s > 0.0):
        raise InputError(f"a block of {block_s:g} s was asked for, expected a positive length")
    place = frame_named(run.robot, link)
    online = OnlineBody(load_parameters(run.robot, place), np.maximum(run.estimate.residual_rms, 1e-9))
    for one in loaded_samples(run, logs, settings or run.settings)[0]:
        log = load_rows(run, one, place, tool)
        period_s = float(np.median(np.diff(log.time)))
        step = max(1, round(block_s / period_s))
        for start in range(0, len(log.time), step):
            part = slice(start, start + step)
            yield online.update_rows([block[part] for block in log.rows], float(log.time[part][-1]))
