"""The estimate from all rows of long logs: made while they go by here, or in partitions where an engine runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.engine import Engine, Serial
from dynid.errors import InputError
from dynid.estimation.friction.choice import estimate_under_load
from dynid.estimation.friction.fit import needs_load
from dynid.estimation.result import Estimate, Method
from dynid.estimation.spectrum import one_block_with_cells
from dynid.recording.samples import Samples, SampleStream
from dynid.regression.factor import Regression, factorise, factorise_parts
from dynid.regression.merged import merged, one_block
from dynid.regression.source import RowSource
from dynid.robot.model import Robot
from dynid.run.long_logs import Changed, LongLog, UnderLoad, held_stream
from dynid.run.partitions import partitioned
from dynid.run.rows import RowPlan
from dynid.run.signals import Filter, Standing


@dataclass(frozen=True, eq=False)
class HeldUnderLoad:
    """Samples with joints that never move held, and the load of a robot where its friction depends on it."""

    standing: Standing
    load: UnderLoad | None = None

    def __call__(self, samples: Samples) -> Samples:
        held = self.standing.held(samples)
        return held if self.load is None else self.load(held)


def estimate_streams(
    plan: RowPlan,
    robot: Robot,
    logs: Sequence[LongLog],
    streams: Sequence[SampleStream],
    filtered: Filter,
    standing: Standing,
    windows: Sequence[Samples],
    method: Method,
    engine: Engine,
) -> tuple[Estimate, Regression, tuple[Samples, ...]]:
    """Estimate from all rows; the windows are returned with their load."""
    if plan.of_recorded:
        refuse_load(robot)
        streams = [log.raw_samples() for log in logs]
    held = [held_stream(stream, standing) for stream in streams]
    load: UnderLoad | None = None

    def carrying(model: Robot) -> RowSource:
        nonlocal load
        load = UnderLoad(model)
        return plan.source(robot, [Changed(stream, load) for stream in held])

    def factor(rows: RowSource) -> Regression:
        if isinstance(engine, Serial):
            return factorise(rows)
        parts = partitioned(plan, robot, logs, streams, filtered, HeldUnderLoad(standing, load))
        timed = all(part.timed for part in parts)  # rows without a clock have no colour
        return merged(parts, engine.map, rows, one_block_with_cells if timed else one_block)

    return estimate_under_load(plan.source(robot, held), windows, method, carrying=carrying, factor=factor)


def refuse_load(robot: Robot) -> None:
    """Rows made of recorded signals know no load of a stream."""
    if needs_load(robot):
        raise InputError(
            "friction that depends on load and --rows polynomial together need the logs in memory: add --stream off"
        )


def factor_with(engine: Engine, rows: RowSource) -> Regression:
    """The triangles of rows in memory, their parts made where an engine says."""
    return factorise(rows) if isinstance(engine, Serial) else factorise_parts(rows, engine.map)
