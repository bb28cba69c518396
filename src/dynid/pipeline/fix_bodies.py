"""Friction alone, identified anew on an existing result: the rigid bodies of the result stay (Gaz and others 2019, IV-B).

Friction changes with lubrication, temperature and from one robot to the next of the same make; masses do not. A result that
was made from a table of poses gets its friction from a motion log the same way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.estimation.estimate import friction_alone
from dynid.io.logs.paths import log_paths
from dynid.model.friction import with_friction, without_friction
from dynid.model.robot import Robot
from dynid.pipeline.data import read_motion_logs, split_data
from dynid.pipeline.estimate_checks import check_feasibility
from dynid.pipeline.filter_selection import chosen_filter, filter_memory_s
from dynid.pipeline.folder import load_robot_result
from dynid.pipeline.options import OF_ONE_LOG, Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.row_plan import RowPlan
from dynid.pipeline.signal_filter import FILTERING, with_dead_zone
from dynid.pipeline.validate import with_errors


def refit_from_settings(
    robot: Robot, logs: Sequence[Path], settings: Settings, validate_on: Sequence[Path], tell: Tell = silent
) -> IdentificationResult:
    """The same from settings that name the run whose bodies are kept."""
    assert settings.fix_bodies is not None
    earlier = load_robot_result(settings.fix_bodies)
    if robot.source.sha256 != earlier.robot.source.sha256:
        raise InputError(
            f"run '{settings.fix_bodies}' was made from another description of the robot than '{robot.source.path}'"
        )
    changes = {name: value for name, value in settings.changed().items() if name not in ("friction", "fix_bodies")}
    run = refit_friction(earlier, logs, settings.friction, validate_on=validate_on, changes=changes, tell=tell)
    return replace(run, settings=replace(settings, friction=run.settings.friction))


def refit_friction(
    run: IdentificationResult,
    logs: Sequence[str | Path] | str | Path,
    friction: str | None = None,
    *,
    validate_on: Sequence[str | Path] = (),
    changes: Mapping[str, Any] | None = None,
    tell: Tell = silent,
) -> IdentificationResult:
    """The run with friction identified on other logs and everything else as it was.

    ``friction`` is a model or ``auto``; by default that of the run, or linear. Logs are filtered as the run's were, unless
    ``changes``, settings by name, say otherwise; they may also say how the logs are read and split.
    """
    started = time.perf_counter()
    model = friction or ("linear" if run.friction_choice is None else run.friction_choice.model)
    asked = dict(changes or {})
    settings = _changed_settings(run.settings, model, asked)
    paths = log_paths(logs)
    tell("reading the logs")
    found = read_motion_logs(run.model, paths, settings, "a motion log to identify friction on")
    bodies = found.robot
    if bodies.joint_names != run.robot.joint_names:
        raise InputError(
            f"the logs move {bodies.n_joints} joints, the run identified {run.robot.n_joints}; expected the same ones"
        )
    plain = with_friction(without_friction(bodies), "linear")
    data = split_data(found, plain, settings, log_paths(validate_on))
    filtered, trials = run.filter, run.trials
    if filtered is None or set(asked) & set(FILTERING):
        filtered, trials = chosen_filter(plain, data.known.recordings, settings, tell)
    plain = with_dead_zone(plain, data.known.recordings, filtered, settings)
    data = data.filtered(filtered, settings.max_rows)
    tell("identifying friction")
    choice, result, regression, loaded = friction_alone(
        plain, data.known.windows, model, row_filter=filtered.row_filter, time_s=filter_memory_s(filtered)
    )
    result, verdict = check_feasibility(result, choice.robot, settings, keep=True)
    refitted = IdentificationResult(
        settings=settings,
        robot=choice.robot,
        estimate=result,
        identification=None,
        validation=None,
        filter=filtered,
        rows=RowPlan("torque", filtered.row_band_hz),
        trials=trials,
        logs=found.files,
        validation_logs=() if data.unseen is None or settings.split is not None else data.unseen.files,
        feasibility=verdict,
        friction_choice=choice,
        notes=(*choice.robot.source.notes, *found.notes, *choice.notes()),
        regression=regression,
        data=replace(data, known=data.known.with_window_samples(loaded)),
    )
    return replace(with_errors(refitted, tell), seconds=time.perf_counter() - started)


def _changed_settings(settings: Settings, friction: str, asked: Mapping[str, Any]) -> Settings:
    """The settings of a run for other logs: these are used whole unless asked otherwise."""
    refused = [name for name in asked if name not in OF_ONE_LOG]
    if refused:
        raise InputError(
            f"setting '{refused[0]}' is that of the run whose bodies are kept and cannot be changed; expected one of "
            + ", ".join(OF_ONE_LOG)
        )
    return replace(settings, **{"friction": friction, "split": None, "from_s": None, "to_s": None, **asked})
