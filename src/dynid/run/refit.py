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
from dynid.estimation.friction.choice import FILTER_MEMORY, friction_alone
from dynid.estimation.friction.fit import with_transmitted_load
from dynid.recording.recording import StaticRecording
from dynid.recording.samples import Samples
from dynid.regression.base import reduce_to_base
from dynid.robot.effects import friction_effects
from dynid.robot.friction import with_friction
from dynid.run.identify import Run
from dynid.run.prepare import hold_still, read_logs, read_unseen, refuse_repeats, to_samples, with_dead_zone
from dynid.run.tune import choose_filter
from dynid.validation.torque import validate

FILTERING = ("velocity", "cutoff_hz", "torque_cutoff_hz", "filter_order")
CHANGEABLE = (*FILTERING, "dead_zone", "from_s", "to_s", "drive_gains", "preset", "mapping", "max_rows")
"""Settings that another log may have of its own."""


def refit_friction(
    run: Run,
    logs: Sequence[str | Path] | str | Path,
    friction: str | None = None,
    *,
    validate_on: Sequence[str | Path] = (),
    changes: Mapping[str, Any] | None = None,
) -> Run:
    """The run with friction identified on other logs and everything else as it was.

    ``friction`` is a model or ``auto``; by default that of the run, or linear. Logs are filtered as the run's were, unless
    ``changes``, settings by name, say otherwise; they may also say how the logs are read.
    """
    started = time.perf_counter()
    model = friction or ("linear" if run.friction is None else run.friction.model)
    asked = dict(changes or {})
    refused = [name for name in asked if name not in CHANGEABLE]
    if refused:
        raise InputError(
            f"setting '{refused[0]}' is that of the run whose bodies are kept and cannot be changed; expected one of "
            + ", ".join(CHANGEABLE)
        )
    settings = replace(run.settings, **{"friction": model, "split": None, "from_s": None, "to_s": None, **asked})
    paths = [Path(path) for path in ([logs] if isinstance(logs, (str, Path)) else logs)]
    found = read_logs(run.identified, paths, settings)
    if isinstance(found, StaticRecording):
        raise InputError(f"{paths[0]} is a table of poses, expected a motion log to identify friction on")
    bodies = found.robot
    if bodies.joint_names != run.robot.joint_names:
        raise InputError(
            f"the logs move {bodies.n_joints} joints, the run identified {run.robot.n_joints}; expected the same ones"
        )
    plain = with_friction(
        bodies.with_effects([effect for effect in bodies.effects if not effect.is_friction]), friction_effects("linear")
    )
    filtered, trials = run.filter, run.trials
    if filtered is None or set(asked) & set(FILTERING):
        filtered, trials = choose_filter(plain, reduce_to_base(plain), list(found.recordings), settings)
    plain = with_dead_zone(plain, list(found.recordings), filtered, settings)
    samples = hold_still([to_samples(recording, filtered, settings.max_rows) for recording in found.recordings])
    memory_s = FILTER_MEMORY / filtered.torque_cutoff_hz
    choice, result, loaded = friction_alone(plain, samples, model, time_s=memory_s)
    robot = choice.robot
    files = [Path(path) for path in validate_on]
    hashes = refuse_repeats(files, seen=found.hashes)
    unseen: tuple[Samples, ...] = ()
    if files:
        others = read_unseen(robot, files, settings)
        identified = robot.with_parameters(result.standard)
        unseen = tuple(
            with_transmitted_load(identified, to_samples(recording, filtered, settings.max_rows))
            for recording in others.recordings
        )
    return Run(
        settings=settings,
        robot=robot,
        estimate=result,
        identification=validate(robot, result, loaded).total,
        validation=validate(robot, result, unseen) if unseen else None,
        filter=filtered,
        trials=trials,
        logs=tuple(zip(found.paths, found.hashes, strict=True)),
        validation_logs=tuple(zip((str(path) for path in files), hashes, strict=True)),
        friction=choice,
        notes=(*robot.source.notes, *found.notes, *choice.notes(), *result.notes),
        seconds=time.perf_counter() - started,
        samples=loaded,
        unseen=unseen,
    )
