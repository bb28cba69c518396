"""Rows of logs and the estimate from them.

    rows = row_source(plan, robot, logs)             y = W phi, the physical statement of the logs
    estimate, regression, logs = estimate_rows(...)  all rows as one triangle per channel, and the method on them

Friction that depends on load is iterated until the load is that of the estimate.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dynid.dynamics.inverse_dynamics import needs_load
from dynid.engine import Engine, Tell, silent
from dynid.errors import InputError
from dynid.estimation.friction.estimates import estimate_under_load
from dynid.estimation.methods.registry import method_from_options
from dynid.estimation.result import Estimate, Method
from dynid.model.robot import Robot
from dynid.pipeline.log import Logs, standing_joints
from dynid.pipeline.options import Settings
from dynid.pipeline.partitions import factorise_on
from dynid.pipeline.row_plan import RowPlan
from dynid.regression.factor import Regression
from dynid.regression.row_source import RowSource
from dynid.regression.static_rows import StaticRows
from dynid.signals.samples import map_samples


def estimate_rows(
    plan: RowPlan, robot: Robot, logs: Logs, method: Method, engine: Engine
) -> tuple[Estimate, Regression, Logs]:
    """Estimate from all rows, made where the engine says; the logs are returned with the load of the estimate."""
    rows = row_source(plan, robot, logs)
    found, regression, windows = estimate_under_load(rows, logs.windows, method, factor=partial(factorise_on, engine))
    if logs.poses is not None:
        found = replace(found, n_samples=logs.poses.n_samples)
    return found, regression, logs.with_window_samples(windows)


def row_source(plan: RowPlan, robot: Robot, logs: Logs) -> RowSource:
    """The rows of logs: of their filtered samples, or of their signals as recorded where the rows filter by themselves."""
    if logs.poses is not None:
        return StaticRows.of(robot, logs.poses)
    if not plan.of_recorded:
        return plan.source(robot, logs.samples)
    if needs_load(robot) and not logs.in_memory:
        raise InputError(
            "friction that depends on load and --rows polynomial together need the logs in memory: add --stream off"
        )
    raw = [log.raw_samples(one) for log, one in zip(logs.parts, logs.samples, strict=True)]
    held = standing_joints(raw).held
    return plan.source(robot, [map_samples(held, one) for one in raw])


def method_of(settings: Settings, robot: Robot, tell: Tell = silent) -> Method:
    """The method that the settings name, with the options it takes from them."""
    return method_from_options(settings.method, settings.as_dict(), robot, tell)
