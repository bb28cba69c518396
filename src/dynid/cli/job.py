"""What a verb of the main path works on: robot, logs and settings, from its arguments and the file of ``--config``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.cli.options import constraints_table
from dynid.errors import InputError

if TYPE_CHECKING:
    from dynid.run.options import Settings
    from dynid.run.runfile import RunFile

_DESCRIPTIONS = (".urdf", ".xml", ".mjcf", ".xacro", ".sdf", ".toml")


def _robot_and_logs(robot: Path | None, logs: Sequence[str] | None, file: RunFile) -> tuple[Path | None, list[Path]]:
    """Robot and logs where the first word may be a log.

    The robot is then that of the run file; without one it is a log of a sensor whose own motion is logged, which needs no robot.
    """
    from dynid.run.log_paths import log_paths

    if robot is None or robot.suffix.lower() in _DESCRIPTIONS or robot.suffix == "" or not robot.is_file():
        return robot or file.robot, log_paths(logs or file.logs)
    behind = [Path(word) for word in logs or () if Path(word).suffix.lower() in _DESCRIPTIONS]
    if behind:
        raise InputError(
            f"'{robot}' is no robot description, and '{behind[0]}' is no log: the robot comes first, then the logs"
        )
    return file.robot, [robot, *log_paths(logs or ())]


@dataclass(frozen=True)
class Job:
    """Robot, logs and settings; ``output`` is the folder that the file names."""

    robot: Path | None
    logs: list[Path]
    unseen: list[Path]
    settings: Settings
    output: Path | None

    @property
    def of_sensor_alone(self) -> bool:
        """Logs without a robot: those of a sensor whose own motion is logged."""
        return self.robot is None and bool(self.logs)

    def described(self, *, needs_logs: bool = True) -> Path:
        """The robot's description; a job without one, or without the logs it needs, is refused."""
        if self.robot is None or (needs_logs and not self.logs):
            raise InputError("expected a robot and at least one log, as arguments or in the file of --config")
        return self.robot


def job_of(
    robot: Path | None,
    logs: Sequence[str] | None,
    unseen: Sequence[str] | None,
    *,
    config: Path | None,
    constraints: Path | None,
    given: Mapping[str, Any] | None,
) -> Job:
    """The job of these arguments; what they leave open is taken from the file."""
    from dynid.run.log_paths import log_paths
    from dynid.run.runfile import RunFile, read_run_file

    file = RunFile() if config is None else read_run_file(config)
    known = constraints_table(constraints)
    settings = file.settings({**(given or {}), **({"constraints": known} if known else {})})
    description, recordings = _robot_and_logs(robot, logs, file)
    return Job(description, recordings, log_paths(unseen or file.validate), settings, file.output)
