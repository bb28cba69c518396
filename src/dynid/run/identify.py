"""The main job: robot and logs in, estimate and validation out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dynid.adapters.blas import one_blas_thread
from dynid.adapters.memory import give_back
from dynid.errors import InputError
from dynid.progress import Tell, silent
from dynid.recording.recording import StaticRecording
from dynid.robot.model import Robot
from dynid.run.described import described_robot
from dynid.run.log_paths import log_paths
from dynid.run.logs import open_logs
from dynid.run.motion import identify_motion, identify_poses, method_of
from dynid.run.option import flag_of, options_of
from dynid.run.options import Sensor, Settings
from dynid.run.record import Run
from dynid.run.verdict import with_verdict


def identify(
    robot: Robot | str | Path,
    logs: Sequence[str | Path] | str | Path = (),
    settings: Settings | None = None,
    *,
    validate_on: Sequence[str | Path] = (),
    tell: Tell = silent,
) -> Run:
    """Identify a robot from logs of its motion (or a table of poses), and validate on unseen logs or a held-out part.

    Args:
        robot: the robot, or the path of its description.
        logs: one log or several, folders, patterns and URLs among them; several are stacked. Where the settings name
            coefficients, logs are not needed and validate.
        settings: the options; by default those of the command line.
        validate_on: unseen logs.
        tell: called with a short text before each step.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> run.estimate.method, run.identification.relative_error < 0.05
        ('wls', True)
    """
    started = time.perf_counter()
    with one_blas_thread():  # its matrices are small: threads would wait for one another, longer still beside other work
        run = _identified(robot, logs, settings or Settings(), validate_on, _tidy(tell))
        tell("judging the model")
        run = with_verdict(run)
    give_back()
    return replace(run, seconds=time.perf_counter() - started)


def _tidy(tell: Tell) -> Tell:
    """What a step has freed is given back before the next one."""

    def told(text: str) -> None:
        give_back()
        tell(text)

    return told


def _identified(
    robot: Robot | str | Path,
    logs: Sequence[str | Path] | str | Path,
    chosen: Settings,
    validate_on: Sequence[str | Path],
    tell: Tell,
) -> Run:
    if chosen.split is not None and validate_on:
        raise InputError("a split and validation logs were both given, expected one of the two")
    paths, unseen = log_paths(logs), log_paths(validate_on)
    model = described_robot(robot, chosen)
    if chosen.coefficients is not None:
        from dynid.run.retrieval import retrieve_run  # it loads much that other runs do not need

        return retrieve_run(model, [*paths, *unseen], chosen, tell)
    if chosen.drop_above is not None:
        raise InputError("--drop-above leaves out given coefficients, none were given: name them with --from RUN|CSV")
    if chosen.keep_bodies is not None:
        from dynid.run.refit import refit_from_settings

        return refit_from_settings(model, paths, chosen, unseen, tell)
    if chosen.friction is None:
        method_of(
            replace(chosen, boxes=False), model
        )  # bounds and constraints that the robot does not have are refused before any work
    tell("reading the logs")
    found = open_logs(model, paths, chosen)
    _refuse_sensor_options(chosen, paths[0])
    if isinstance(found, StaticRecording):
        return identify_poses(model, found, paths[0], chosen, unseen, tell)
    return identify_motion(found, chosen, unseen, tell)


def _refuse_sensor_options(settings: Settings, path: Path) -> None:
    """Refuse what means nothing for logs of joint torque, rather than leave it without effect."""
    changed = settings.changed()
    for one in options_of(Sensor):
        if one.name in changed:
            raise InputError(
                f"{flag_of(one)} belongs to logs of a force/torque sensor, {path} has joint torque or poses: leave it out"
            )
