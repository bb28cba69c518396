"""Logs into triangles: an entry of a store, filtered as the store's run was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dynid.engine import Serial, engine_from
from dynid.fleet.entry import Entry, Key, make_entry
from dynid.fleet.made import CutRows, Made, cut_of, made_by, made_here
from dynid.recording.samples import SampleStream
from dynid.run.logs import Logs, open_unseen
from dynid.run.long_logs import Changed, UnderLoad, standing_joints, with_interval
from dynid.run.misread import UNLIKE, misread_logs
from dynid.run.motion import rows_of, under_load
from dynid.run.options import Settings
from dynid.run.partitions import partitioned
from dynid.run.record import Run
from dynid.run.signals import hold_still, to_samples
from dynid.run.stream_estimate import HeldUnderLoad, refuse_load
from dynid.validation.rows import row_error_of


def entry_of(
    run: Run, paths: Sequence[Path], key: Key, settings: Settings
) -> tuple[Entry, Any, tuple[str, ...], tuple[str, ...]]:
    """The logs filtered as the store's run was, as an entry; with the channels of its triangles, notes and warnings on the logs."""
    found = open_unseen(run.robot, paths, settings)
    made = _made_of_streams(run, found, settings) if found.long else _made_in_memory(run, found, settings)
    logs = [(path.name, digest) for path, digest in zip(paths, found.hashes, strict=True)]
    channels = [factor.channel for factor in made.regression.factors]
    return make_entry(key, logs, made, run.estimate.base), channels, found.notes, _warnings(run, found, made)


def _warnings(run: Run, found: Logs, made: Made) -> tuple[str, ...]:
    """What speaks against logs: the triangles show at no cost how far they are from the store's run, and only then they are checked."""
    error = row_error_of(made.regression, run.estimate).relative_error
    if error <= UNLIKE:
        return ()
    unlike = (
        f"the run that made the store leaves {100.0 * error:.0f} % of the torque of these logs unexplained: another load, another "
        "robot or another unit; 'dynid data' with the same flags looks into a log"
    )
    return misread_logs(run, found.recordings, loaded=True) or (unlike,)


def _made_in_memory(run: Run, found: Logs, settings: Settings) -> Made:
    assert run.filter is not None
    samples = hold_still([to_samples(recording, run.filter, settings.max_rows) for recording in found.recordings])
    rows = rows_of(run.rows, run.robot, under_load(run, samples), found.recordings)
    cuts = [cut_of(float(one.time[0]), float(one.time[-1])) for one in found.recordings]
    engine = engine_from(settings.engine)
    if isinstance(engine, Serial):
        return made_here(rows, cuts)
    return made_by(
        engine, [CutRows(log, k, cut) for k, (log, cut) in enumerate(zip(rows.by_log(), cuts, strict=True))], rows
    )


def _made_of_streams(run: Run, found: Logs, settings: Settings) -> Made:
    """Logs that are read piece by piece; an engine works on partitions of them."""
    assert run.filter is not None
    logs, robot, filtered = found.long, run.robot, run.filter
    streams: list[SampleStream] = [log.samples(filtered, settings.max_rows) for log in logs]
    change = HeldUnderLoad(standing_joints(logs, streams), UnderLoad(run.identified))
    plan = with_interval(run.rows, robot, logs)
    if plan.of_recorded:
        refuse_load(robot)
        streams = [log.raw_samples() for log in logs]
    rows = plan.source(robot, [Changed(stream, change) for stream in streams])
    cuts = [cut_of(log.start_s, log.end_s) for log in logs]
    engine = engine_from(settings.engine)
    if isinstance(engine, Serial):
        return made_here(rows, cuts)
    parts = [
        CutRows(part, k, cuts[k])
        for k, (log, stream) in enumerate(zip(logs, streams, strict=True))
        for part in partitioned(plan, robot, [log], [stream], filtered, change)
    ]
    return made_by(engine, parts, rows)
