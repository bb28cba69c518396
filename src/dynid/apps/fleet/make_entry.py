"""What is kept of logs, made from their rows in one pass: triangles, also of a held-out part, and the noise of their columns.

Logs are filtered as the run of a store was, one after the other or in parts where an engine runs them. Only triangles and the colour of
the noise are left, so that neither the length nor the number of the logs counts in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from dynid.apps.fleet.entry import Entry, Key
from dynid.arrays import freeze
from dynid.engine import Engine, Serial
from dynid.errors import InputError, NoRowsError
from dynid.estimation.linear import DATA_TOLERANCE, LinearProblem
from dynid.estimation.residuals import one_block_with_cells
from dynid.estimation.uncertainty import noise_grams
from dynid.pipeline.estimate_rows import row_source
from dynid.pipeline.log import Logs, samples_under_load
from dynid.pipeline.partitions import partitioned
from dynid.pipeline.result import IdentificationResult
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression
from dynid.regression.partitions import OwnRows, PartTriangles, merged_triangles, one_block
from dynid.regression.row_source import RowSource

HELD_OUT = 0.35
"""Share of each log, at its end, that the rest of the day's logs is judged on."""
GAP_S = 0.2
"""Rows so near to where that share begins are in neither part: filters smear what happens there."""

LogFactors: TypeAlias = tuple[Regression, Regression | None, Regression | None]
"""Triangles of all rows, of those before the held-out part of each log, and of that part; None where there are no such rows."""


def held_out_start(start_s: float, end_s: float) -> float:
    """Where the held-out part of a log between these times begins."""
    return start_s + (1.0 - HELD_OUT) * (end_s - start_s)


def factor_logs(rows: RowSource, cuts: Sequence[float], engine: Engine | None = None) -> LogFactors:
    """Triangles of logs whose held-out parts begin at these times.

    Args:
        rows: of all logs.
        cuts: one time for each log, s.
        engine: where partitions of the logs are made into triangles; None for log after log, here.
    """
    here = engine is None or isinstance(engine, Serial)
    logs = [[log] for log in rows.by_log()] if here else partitioned(rows)
    parts = [(part, cut) for own, cut in zip(logs, cuts, strict=True) for part in own]
    each = zip(*(engine or Serial()).map(partial(_factor_part, coloured=not here), parts), strict=True)
    whole, fitted, held_out = ([one for one in own if one is not None] for own in each)
    return (
        replace(merged_triangles(whole, rows), sources=(rows,)),
        merged_triangles(fitted, rows) if fitted else None,
        merged_triangles(held_out, rows) if held_out else None,
    )


def _factor_part(
    part: tuple[RowSource, float], coloured: bool
) -> tuple[PartTriangles, PartTriangles | None, PartTriangles | None]:
    """Triangles of the rows of a part, of those before a time and of those after it; ``coloured`` where its rows stay behind."""
    rows, cut_s = part

    def between(start_s: float, stop_s: float) -> PartTriangles | None:
        try:
            return one_block(OwnRows(rows, start_s, stop_s))
        except NoRowsError:
            return None

    whole = one_block_with_cells(rows) if coloured and rows.timed else one_block(rows)
    return whole, between(-np.inf, cut_s - GAP_S), between(cut_s + GAP_S, np.inf)


def entry_of_logs(
    run: IdentificationResult, found: Logs, key: Key, logs: Sequence[tuple[str, str]], engine: Engine, max_rows: int
) -> tuple[Entry, Regression]:
    """What is kept of logs filtered as a run was, and their triangles.

    Args:
        run: whose filter, rows and friction are used.
        found: the logs.
        key: robot, day and conditions.
        logs: name and hash of every log.
        engine: where triangles are made.
        max_rows: samples of a log at most.
    """
    assert run.filter is not None
    if run.robot.floating:
        raise InputError(
            f"a store keeps rows of robots that stand fixed, robot '{run.robot.name}' floats: 'dynid identify' takes its logs"
        )
    filtered = found.filtered(run.filter, max_rows, still=True)
    rows = row_source(run.rows, run.robot, filtered.under_load(run.model))
    rows = rows.with_samples(samples_under_load(run.model, rows.samples))
    cuts = [held_out_start(log.start_s, log.end_s) for log in filtered.parts]
    factors = factor_logs(rows, cuts, engine)
    seconds = sum(log.end_s - log.start_s for log in filtered.parts)
    return make_entry(key, logs, factors, run.estimate.base, seconds), factors[0]


def make_entry(key: Key, logs: Sequence[tuple[str, str]], factors: LogFactors, base: BaseReduction, seconds: float) -> Entry:
    """What is kept of the rows of some logs."""
    regression, known, unseen = factors
    problem = LinearProblem.of(regression, base, regression.parameters)
    weights, _ = problem.settled_weights()
    beta = problem.solve(weights)
    grams, noise_freedom = noise_grams(problem, beta, weights)
    rows = problem.rows()
    left = size = freeze(np.full(len(weights), np.nan))
    if known is not None and unseen is not None:  # else too short for two parts: kept without this error
        stacked = known.stacked(base, weights)
        scale = np.maximum(np.linalg.norm(stacked[:, :-1], axis=0), 1e-300)
        fitted = np.linalg.lstsq(stacked[:, :-1] / scale, stacked[:, -1], rcond=DATA_TOLERANCE)[0] / scale
        held = (unseen.channel_matrix(j, base) for j in range(len(weights)))
        missed = [own[:, -1] - own[:, :-1] @ fitted for own in held]
        left = freeze([float(one @ one) for one in missed])
        size = freeze(unseen.torque_norms**2)
    return Entry(
        key=key,
        logs=tuple(logs),
        rows=tuple(factor.n_rows for factor in regression.factors),
        triangles=tuple(factor.R for factor in regression.factors),
        noise=tuple(freeze(gram) for gram in grams),
        noise_freedom=noise_freedom,
        residual=freeze(problem.residual_norms(beta) ** 2),
        freedom=freeze(np.maximum(rows - problem.seen.rank * rows / max(rows.sum(), 1.0), 1.0)),
        torque_energy=freeze(regression.torque_norms**2),
        held_out_residual=left,
        held_out_energy=size,
        seconds=seconds,
    )
