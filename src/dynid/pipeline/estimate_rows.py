"""Rows of logs and the estimate from them.

    rows = row_source(plan, robot, logs)             y = W phi, the physical statement of the logs
    estimate, regression, logs = estimate_rows(...)  all rows as one triangle per channel, and the method on them

Friction that depends on load is iterated until the load is that of the estimate.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from dynid.engine import Engine, Tell, engine_from, silent
from dynid.estimation.estimate import estimate_under_load
from dynid.estimation.friction.fit import widen_covariance
from dynid.estimation.friction.selection import FrictionChoice
from dynid.estimation.result import Estimate, Method
from dynid.model.robot import Robot
from dynid.pipeline.log import Logs
from dynid.pipeline.options import Settings
from dynid.pipeline.partitions import factorise_on
from dynid.pipeline.robot_setup import method_of
from dynid.pipeline.row_plan import RowPlan
from dynid.regression.factor import Regression
from dynid.regression.row_source import RowSource
from dynid.regression.static_rows import StaticRows


def estimate_logs(
    plan: RowPlan, logs: Logs, friction: FrictionChoice | None, settings: Settings, tell: Tell = silent
) -> tuple[Estimate, Regression, Logs, tuple[str, ...]]:
    """Estimate from all rows by the method of the settings, with intervals as wide as the choices before it leave them.

    Filtered rows beside a stop hold less than others, nonlinear friction was fitted before, and channels of a walking robot share what
    their rows have wrong.

    Returns:
        the estimate, the triangles, the logs with the load of the estimate, and what is to be told.
    """
    robot, method = logs.robot, method_of(settings, logs.robot, tell)
    found, regression, logs = estimate_rows(plan, robot, logs, method, engine_from(settings.engine))
    if friction is not None:
        found = widen_covariance(found, friction.moves, friction.misfit)
    found = widen_by_weights(found, logs)
    if not robot.floating:
        return found, regression, logs, ()
    from dynid.estimation.block_scatter import widen_by_blocks
    from dynid.pipeline.floating_log import floating_parts

    torque = regression.torque_norms / np.sqrt([max(factor.n_rows, 1) for factor in regression.factors])
    share = sum(map(len, logs.windows)) / sum(log.n_rows for log in logs.parts)  # of the rows that windows show
    found, notes = widen_by_blocks(found, plan.source(robot, logs.windows), logs.windows, torque, min(share, 1.0))
    moves = floating_parts(logs)[0].setup.moves
    if moves is not None:
        found = replace(found, covariance=found.covariance + moves @ moves.T)
    return found, regression, logs, notes


def widen_by_weights(found: Estimate, logs: Logs) -> Estimate:
    """The estimate with its intervals as wide as the rows that were used make them: filtered rows beside a stop hold less than others."""
    weights = [one.weight for one in logs.windows if one.weight is not None]
    if not weights:
        return found
    used = np.mean(np.concatenate(weights), axis=0)
    least = float(used[used > 0.0].min(initial=1.0))
    return found if least == 1.0 else replace(found, covariance=found.covariance / least)


def estimate_rows(
    plan: RowPlan, robot: Robot, logs: Logs, method: Method, engine: Engine
) -> tuple[Estimate, Regression, Logs]:
    """Estimate from all rows, made where the engine says; the logs are returned with the load of the estimate."""
    rows = row_source(plan, robot, logs)
    found, regression, windows = estimate_under_load(rows, logs.windows, method, factor=partial(factorise_on, engine))
    if logs.poses is not None:
        found = replace(found, n_samples=logs.poses.n_samples)
    elif robot.floating:
        found = replace(found, n_samples=sum(map(len, windows)))
    return found, regression, logs.with_window_samples(windows)


def row_source(plan: RowPlan, robot: Robot, logs: Logs) -> RowSource:
    """The rows of logs: of their filtered samples, or of their signals as recorded where the rows filter by themselves."""
    if logs.poses is not None:
        return StaticRows.of(robot, logs.poses)
    return plan.source(robot, logs.recorded(robot) if plan.of_recorded else logs.samples)
