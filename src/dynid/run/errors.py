"""Torque errors of an estimate on the data of a run: on its samples, or on streams where these are too long to hold."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from dynid.engine import Engine, Serial
from dynid.errors import InputError
from dynid.estimation.result import Estimate
from dynid.recording.samples import Samples, SampleStream
from dynid.recording.steps.lowpass import EDGE_S
from dynid.run.gate import motion_range
from dynid.run.long_logs import Changed, UnderLoad
from dynid.run.partitions import partitioned_samples
from dynid.run.record import Run
from dynid.validation.stream import MotionRange, StreamErrors, validate_streams
from dynid.validation.torque import Validation, validate


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors on what was identified on and on what was not, and how the joints moved in the first."""

    known: Validation | None
    unseen: Validation | None
    motion: MotionRange | None


def torque_errors(run: Run, result: Estimate, engine: Engine | None = None) -> Errors:
    """Errors of an estimate on the data of a run; ``engine`` says where the passes over streams run."""
    if run.streams or run.unseen_streams:
        known, motion = judged_streams(run, result, run.streams, engine) if run.streams else (None, None)
        unseen = judged_streams(run, result, run.unseen_streams, engine)[0] if run.unseen_streams else None
        return Errors(known, unseen, motion)
    known = validate(run.robot, result, run.samples, run.judged_hz) if run.samples else None
    unseen = validate(run.robot, result, run.unseen, run.judged_hz) if run.unseen else None
    return Errors(known, unseen, motion_range(run.samples))


def judged_streams(
    run: Run, result: Estimate, streams: Sequence[Samples | SampleStream], engine: Engine | None = None
) -> tuple[Validation, MotionRange]:
    """One pass over each stream, with the load that the estimate gives."""
    carried = UnderLoad(run.robot.with_parameters(result.standard))
    loaded = [Changed(stream, carried) for stream in streams]
    work, runner = StreamErrors.of(run.robot, result, run.judged_hz), engine or Serial()
    if isinstance(runner, Serial):
        parts: list[list[Samples | SampleStream]] = [[stream] for stream in loaded]
    else:
        parts = [list(partitioned_samples(stream, run.robot, run.judged_hz)) for stream in loaded]
    found = runner.map(work, [part for log in parts for part in log])
    each = [[sums for sums in (next(found) for _ in log) if sums is not None] for log in parts]
    for log in each:
        if not log:
            raise InputError(f"samples are too short to judge torque in a band: {EDGE_S:g} s are dropped at both ends")
    return validate_streams(run.robot, [reduce(operator.add, log) for log in each])
