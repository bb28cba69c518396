"""Friction alone, identified anew on an existing run: the rigid bodies of the run stay (Gaz and others 2019, IV-B).

Friction changes with lubrication, temperature and from one robot to the next of the same make; masses do not. A run that
was made from a table of poses gets its friction from a motion log the same way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynid.errors import InputError
from dynid.estimation.friction.choice import friction_alone
from dynid.progress import Tell, silent
from dynid.robot.effects import friction_effects
from dynid.robot.friction import with_friction
from dynid.robot.model import Robot
from dynid.run.judged import judged
from dynid.run.log_paths import log_paths
from dynid.run.logs import read_motion_logs
from dynid.run.motion import assembled, chosen_filter, filter_memory_s, parts_of
from dynid.run.options import OF_ONE_LOG, Settings
from dynid.run.record import Run
from dynid.run.rows import RowPlan
from dynid.run.signals import FILTERING, hold_still, to_samples, with_dead_zone
from dynid.run.store import load_run


def refit_from_settings(
    robot: Robot, logs: Sequence[Path], settings: Settings, validate_on: Sequence[Path], tell: Tell = silent
) -> Run:
    """The same from settings that name the run whose bodies are kept."""
    assert settings.keep_bodies is not None
    earlier = load_run(settings.keep_bodies)
    if robot.source.sha256 != earlier.robot.source.sha256:
        raise InputError(
            f"run '{settings.keep_bodies}' was made from another description of the robot than '{robot.source.path}'"
        )
    changes = {name: value for name, value in settings.changed().items() if name not in ("friction", "keep_bodies")}
    run = refit_friction(earlier, logs, settings.friction, validate_on=validate_on, changes=changes, tell=tell)
    return replace(run, settings=replace(settings, friction=run.settings.friction))


def refit_friction(
    run: Run,
    logs: Sequence[str | Path] | str | Path,
    friction: str | None = None,
    *,
    validate_on: Sequence[str | Path] = (),
    changes: Mapping[str, Any] | None = None,
    tell: Tell = silent,
) -> Run:
    """The run with friction identified on other logs and everything else as it was.

    ``friction`` is a model or ``auto``; by default that of the run, or linear. Logs are filtered as the run's were, unless
    ``changes``, settings by name, say otherwise; they may also say how the logs are read and split.
    """
    started = time.perf_counter()
    model = friction or ("linear" if run.friction is None else run.friction.model)
    asked = dict(changes or {})
    settings = _changed_settings(run.settings, model, asked)
    paths = log_paths(logs)
    tell("reading the logs")
    found = read_motion_logs(run.identified, paths, settings, "a motion log to identify friction on")
    bodies = found.robot
    if bodies.joint_names != run.robot.joint_names:
        raise InputError(
            f"the logs move {bodies.n_joints} joints, the run identified {run.robot.n_joints}; expected the same ones"
        )
    plain = with_friction(
        bodies.with_effects([effect for effect in bodies.effects if not effect.is_friction]), friction_effects("linear")
    )
    parts = parts_of(found, plain, settings, log_paths(validate_on))
    filtered, trials = run.filter, run.trials
    if filtered is None or set(asked) & set(FILTERING):
        filtered, trials = chosen_filter(plain, parts.known, settings, tell)
    plain = with_dead_zone(plain, parts.known, filtered, settings)
    samples = hold_still([to_samples(recording, filtered, settings.max_rows) for recording in parts.known])
    tell("identifying friction")
    choice, result, regression, loaded = friction_alone(
        plain, samples, model, row_filter=filtered.row_filter, time_s=filter_memory_s(filtered)
    )
    result, verdict = judged(result, choice.robot, settings, keep=True)
    refitted = Run(
        settings=settings,
        robot=choice.robot,
        estimate=result,
        identification=None,
        validation=None,
        filter=filtered,
        rows=RowPlan("torque", filtered.row_band_hz),
        trials=trials,
        logs=tuple(zip(found.paths, found.hashes, strict=True)),
        validation_logs=parts.validation_logs,
        feasibility=verdict,
        friction=choice,
        notes=(*choice.robot.source.notes, *found.notes, *choice.notes()),
        regression=regression,
        recordings=found.recordings,
        samples=loaded,
    )
    unseen = [to_samples(recording, filtered, settings.max_rows) for recording in parts.unseen]
    return replace(assembled(refitted, unseen, parts.unseen, tell), seconds=time.perf_counter() - started)


def _changed_settings(settings: Settings, friction: str, asked: Mapping[str, Any]) -> Settings:
    """The settings of a run for other logs: these are used whole unless asked otherwise."""
    refused = [name for name in asked if name not in OF_ONE_LOG]
    if refused:
        raise InputError(
            f"setting '{refused[0]}' is that of the run whose bodies are kept and cannot be changed; expected one of "
            + ", ".join(OF_ONE_LOG)
        )
    return replace(settings, **{"friction": friction, "split": None, "from_s": None, "to_s": None, **asked})
