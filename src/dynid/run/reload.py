"""The samples of a loaded run, made again from its own logs where these are unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dynid.adapters.urls import log_path
from dynid.recording.recording import Recording
from dynid.regression.factor import factorise
from dynid.run.logs import Logs, open_logs, read_logs, unchanged
from dynid.run.long_logs import (
    held_stream,
    standing_joints,
    window_name,
)
from dynid.run.motion import assembled, parts_of, rows_of, under_load
from dynid.run.record import Run
from dynid.run.signals import Filter, hold_still, split_recording, to_samples


def with_logs(run: Run) -> Run:
    """A loaded run with its samples and regression made again from its logs; as it is where a log is gone or has changed."""
    files = [*run.logs, *run.validation_logs]
    if run.filter is None or not all(unchanged(log_path(path), digest) for path, digest in files):
        return run
    if run.logs and run.settings.stream != "off":
        found = open_logs(run.robot, [log_path(path) for path, _ in run.logs], run.settings)
        if isinstance(found, Logs) and found.long:
            return _with_long_logs(run, found)
    unseen = _recordings(run, [path for path, _ in run.validation_logs]) if run.validation_logs else ()
    if not run.logs:  # retrieved from coefficients: there is nothing to validate on but these
        others = [to_samples(recording, run.filter, run.settings.max_rows) for recording in unseen]
        return replace(run, unseen=under_load(run, others))
    return _with_short_logs(run, run.filter, unseen)


def _with_short_logs(run: Run, filtered: Filter, unseen: Sequence[Recording]) -> Run:
    """A loaded run with all samples of its logs, judged anew on the rest of them or on ``unseen``."""
    whole = known = _recordings(run, [path for path, _ in run.logs])
    if run.settings.split is not None:
        parts = [split_recording(recording, run.settings.split) for recording in known]
        known, unseen = tuple(first for first, _ in parts), tuple(rest for _, rest in parts)
    most = run.settings.max_rows
    samples = under_load(run, hold_still([to_samples(recording, filtered, most) for recording in known]))
    regression = factorise(rows_of(run.rows, run.robot, samples, known))
    notes = run.notes
    made = assembled(
        replace(run, samples=samples, recordings=whole, regression=regression),
        [to_samples(recording, filtered, most) for recording in unseen],
        unseen,
    )
    return replace(made, notes=notes)


def _with_long_logs(run: Run, found: Logs) -> Run:
    """A loaded run with windows of its logs and the streams themselves; its errors stay as they were found."""
    assert run.filter is not None
    settings = run.settings
    parts = parts_of(found, run.robot, settings, [log_path(path) for path, _ in run.validation_logs])
    samples = [to_samples(recording, run.filter, settings.max_rows) for recording in parts.known]
    streams = tuple(log.samples(run.filter, settings.max_rows) for log in parts.long)
    standing = standing_joints(parts.long, streams)
    unseen = [to_samples(recording, run.filter, settings.max_rows) for recording in parts.unseen]
    return replace(
        run,
        recordings=parts.known,
        samples=under_load(run, hold_still(samples, standing)),
        unseen=under_load(run, unseen),
        streams=tuple(held_stream(stream, standing) for stream in streams),
        unseen_streams=tuple(log.samples(run.filter, settings.max_rows) for log in parts.long_unseen),
        windows=tuple(window_name(recording) for recording in parts.known),
        unseen_windows=tuple(window_name(recording) for recording in parts.unseen),
    )


def _recordings(run: Run, paths: Sequence[str]) -> tuple[Recording, ...]:
    found = read_logs(run.robot, [log_path(path) for path in paths], run.settings)
    assert isinstance(found, Logs)
    return found.recordings
