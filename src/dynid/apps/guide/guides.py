"""Guides: for each kind of user the commands from his or her files to the goal, with what the files themselves say filled in."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dynid.apps.guide.logged_gains import LoggedGains, logged_gains
from dynid.errors import UnknownNameError
from dynid.pipeline.inspect import inspect_any
from dynid.pipeline.options import Settings
from dynid.pipeline.robot_setup import described_robot
from dynid.signals.recording import Recording

STILL = 1e-3
"""rad or m: a joint that moves less over a whole log stands still."""


@dataclass(frozen=True)
class Step:
    """One command, and what it is for; one that needs a file that was not given is not ready to run."""

    why: str
    words: tuple[str, ...]
    ready: bool = True

    @property
    def command(self) -> str:
        return shlex.join(["dynid", *self.words])

    def as_dict(self) -> dict[str, Any]:
        return {"why": self.why, "command": self.command, "ready": self.ready}


@dataclass(frozen=True)
class Files:
    """What a user has: files, and what they say about how to read them.

    Args:
        robot: description, or a name in its place.
        log: log, or a name in its place.
        given: whether both are files.
        flags: options that the log needs.
        notes: sentences for the user.
        current: whether the log has motor current, and no torque.
        quantities: what the log has of each joint.
        feet: feet of a walking robot that the log has contacts of.
    """

    robot: str = "robot.urdf"
    log: str = "log.csv"
    given: bool = False
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    current: bool = False
    quantities: tuple[str, ...] = field(default=())
    feet: tuple[str, ...] = ()

    def step(self, why: str, *words: str, ready: bool = True) -> Step:
        return Step(why, words, ready and self.given)


def look_into(robot: str | Path, log: str | Path, without_torque: bool = False) -> Files:
    """What a description and a log say: still joints to lock, drive gains, what is missing.

    Args:
        robot: description.
        log: log of its motion.
        without_torque: whether the user's commands need no torque in the log.
    """
    recording, check = inspect_any(log, robot)
    needless = ("no_torque", "current_only") if without_torque else ()
    notes = [
        f"{finding.level}: {finding.what}; {finding.remedy}"
        for finding in check.findings
        if (finding.level == "error" or finding.code == "no_torque") and finding.code not in needless
    ]
    flags: list[str] = []
    current = False
    if isinstance(recording, Recording):
        for name, column in zip(recording.joint_names, recording.position.T, strict=True):
            if np.ptp(column) < STILL and recording.n_joints > 1:
                flags += ["--lock", f"{name}={float(np.median(column)):.4g}"]
                notes.append(f"{name} stands still in this log: it is locked, and nothing is learnt about it")
        current = recording.torque is None and recording.current is not None
        if current:
            model = described_robot(robot, Settings())
            gains = logged_gains(log, model.only(recording.joint_names))
            flags += _gain_flags(gains)
            notes.append(_gain_note(gains))
    feet = tuple(check.facts.get("feet", ()))
    if feet:
        flags += ["--feet", ",".join(feet)]
        notes.append("the log has contacts of feet: the base is taken to move (--feet)")
    return Files(str(robot), str(log), True, tuple(flags), tuple(notes), current, tuple(recording.quantities), feet)


OPEN_GAIN = "K"
"""Stands, with the number of its joint, for a drive gain that the user has to fill in."""


def _lacks_gains(files: Files) -> bool:
    return any(flag == "--drive-gains" and OPEN_GAIN in value for flag, value in pairwise(files.flags))


def _gain_flags(gains: LoggedGains | None) -> list[str]:
    if gains is None:
        return ["--drive-gains", OPEN_GAIN + "1,K2,.."]
    told = (f"{value:.4g}" if np.isfinite(value) else f"{OPEN_GAIN}{k}" for k, value in enumerate(gains.values, start=1))
    return ["--drive-gains", ",".join(told)]


def _gain_note(gains: LoggedGains | None) -> str:
    if gains is None:
        return "the log has motor current and no torque: drive gains are needed, from the data sheet or from dynid gains"
    pairs = zip(gains.joints, gains.values, gains.sigma, strict=True)
    told = ", ".join(
        f"{name} {value:.4g} +- {1.96 * spread:.2g}" if np.isfinite(value) else f"{name} not shown"
        for name, value, spread in pairs
    )
    fill_in = "" if gains.complete else "; fill in those that are not shown, from the data sheet or from dynid gains"
    return f"drive gains by the controller's own {gains.columns[0]} and {gains.columns[1]}, N m/A: {told}{fill_in}"


def _start(files: Files, *more: str) -> list[Step]:
    """Every guide begins with a look at the log and ends up with a run."""
    ready, reading = not _lacks_gains(files), list(files.flags)
    looked = [] if not ready else reading[: reading.index("--feet")] if "--feet" in reading else reading
    return [
        files.step("what is in the log, and what is wrong with it", "data", files.log, "--robot", files.robot, *looked),
        files.step(
            "the model, its error on the last third of the log, files and report",
            "identify", files.robot, files.log, "--split", "0.65", *files.flags, *more, "-o", "run", ready=ready,
        ),
    ]  # fmt: skip


OTHER = "other_log.csv"
LOADED = "loaded_log.csv"


def _ur(files: Files) -> list[Step]:
    first, identify = _start(files)
    steps = [first]
    if files.current and _lacks_gains(files):
        words = ("gains", files.log, LOADED, "--robot", files.robot, "--mass", "KG")
        steps.append(files.step("drive gains from a second log with a known load", *words, ready=False))
    return [
        *steps,
        identify,
        files.step("prediction of another motion", "validate", "run", OTHER, ready=False),
        files.step(
            "the load on the flange, as the teach pendant takes it", "payload", "run", LOADED, "--format", "ur", ready=False
        ),
        files.step("files for simulators and controllers", "export", "run", "--to", "urdf,mjcf,c"),
    ]


def _franka(files: Files) -> list[Step]:
    return [
        *_start(files),
        files.step("prediction of another motion", "validate", "run", OTHER, ready=False),
        files.step("the load, as setLoad takes it", "payload", "run", LOADED, "--format", "franka", ready=False),
        files.step("inverse dynamics in C for the controller, and a model for MuJoCo", "export", "run", "--to", "c,mjcf"),
    ]


def _ros2(files: Files) -> list[Step]:
    return [
        *_start(files),
        files.step("the URDF with identified bodies and friction, and SDF for Gazebo", "export", "run", "--to", "urdf,sdf"),
        files.step("does the simulated robot move as the real one did?", "validate", "run", OTHER, "--replay", ready=False),
        files.step("a motion that shows more than this log", "excite", files.robot, "-o", "motion.yaml"),
    ]


def _legged(files: Files) -> list[Step]:
    steps = [files.step("are all links physically possible?", "check", files.robot)]
    if "torque" in files.quantities or not files.given:
        steps += _start(files)
        if not files.feet:
            words = ("identify", files.robot, files.log, "--feet", "FOOT,FOOT,..", "--split", "0.65", "-o", "walk")
            steps.append(files.step("the same where the base moves, with the frames of its feet", *words, ready=False))
    feet = ("--feet", ",".join(files.feet) or "FOOT,FOOT,..")
    moves, trial = (files.robot, *feet, "-o", "motion.csv"), (files.robot, "motion.csv", *feet, "-o", "trial.parquet")
    steps.append(files.step("safe motions on its feet that show more", "excite", *moves, ready=False))
    if files.feet:
        steps.append(files.step("the same tried in a simulation with contacts", "simulate", *trial, ready=False))
    return [
        *steps,
        files.step(
            "joints without torque: armature, friction and delay from commands and positions; KP and KD are the controller's gains, one "
            "number or one for each joint, N m/rad and N m s/rad",
            "actuators", files.robot, files.log, "--kp", "KP", "--kd", "KD", "--delay", "auto", "--split", "0.65", "--export",
            "mjcf,isaac", "--report", ready=False,
        ),
    ]  # fmt: skip


def _servo(files: Files) -> list[Step]:
    words = ("actuators", files.robot, files.log, "--split", "0.65", "--export", "mjcf", "--report", "-o", "actuators")
    return [
        files.step("what is in the log, and what is wrong with it", "data", files.log, "--robot", files.robot),
        files.step("armature, friction, delay and gains from commands and positions", *words),
        files.step("the same on another motion", *words[:3], "--validate", OTHER, ready=False),
        files.step("a motion within limits that shows more", "excite", files.robot, "-o", "motion.csv"),
    ]


def _fleet(files: Files) -> list[Step]:
    return [
        files.step("what is in a log, and what is wrong with it", "data", files.log, "--robot", files.robot),
        files.step(
            "the logs of all robots and days, by their names",
            "store", "add", files.robot, "logs/", "--to", "store", "--pattern", "{robot}_{day}.parquet", ready=False,
        ),
        files.step("what the store has", "store", "list", "store", ready=False),
        files.step("which robot changed, since when, by how much", "fleet", "store", "--max-change", "0.2", ready=False),
        files.step(
            "one robot while it moves", "watch", files.robot, "--source", "tcp://127.0.0.1:9000", "--page", "8000", ready=False
        ),
    ]  # fmt: skip


def _sensor(files: Files) -> list[Step]:
    return [
        files.step("axes, units and gravity of the sensor's log", "data", files.log, "--robot", files.robot),
        files.step(
            "the body on the sensor, and the sensor's offsets", "payload", "--sensor", files.log, "--robot", files.robot
        ),
        files.step("the same as a run with a report", "identify", files.robot, files.log, "--split", "0.65", "-o", "run"),
        files.step("the body for a controller", "export", "run", "--to", "ur", "-o", "tool"),
    ]


def _paper(files: Files) -> list[Step]:
    as_papers = ("--filter-on", "signals", "--friction", "linear", "--cutoff-hz", "5")
    return [
        files.step("base parameters and their expressions", "base", files.robot),
        files.step("a motion with a small condition number", "excite", files.robot, "-o", "motion.csv", "--period", "20"),
        files.step(
            "least squares as papers do it, every base parameter with its standard deviation",
            "identify", files.robot, files.log, "--method", "wls", *as_papers, *files.flags, "--split", "0.65", "--table", "-o", "paper",
        ),
        files.step("every estimator on the same rows", "compare", files.robot, files.log, *as_papers, *files.flags),
        files.step("the defaults, to compare with", "identify", files.robot, files.log, *files.flags, "--split", "0.65", "-o", "run"),
        files.step("the two runs side by side", "compare-runs", "paper", "run"),
    ]  # fmt: skip


GUIDES: Mapping[str, tuple[str, Callable[[Files], list[Step]]]] = {
    "ur": ("Universal Robots arm, RTDE log with motor current", _ur),
    "franka": ("Franka arm with joint torque sensors", _franka),
    "ros2": ("ROS 2 robot, bag of joint states", _ros2),
    "legged": ("legged robot on a stand or under position control", _legged),
    "servo": ("position-controlled servos without torque", _servo),
    "fleet": ("many robots of one model, day by day", _fleet),
    "sensor": ("force/torque sensor that carries a tool", _sensor),
    "paper": ("a table for a paper", _paper),
}
"""Kinds of users: what they have, and their commands."""


def guide_for(user: str, robot: str | Path | None = None, log: str | Path | None = None) -> tuple[Files, list[Step]]:
    """The commands for one kind of user.

    Args:
        user: one of :data:`GUIDES`.
        robot: description; names stand in its place without it.
        log: its log.

    Returns:
        what the files say, and the steps.
    """
    if user not in GUIDES:
        raise UnknownNameError("guide", user, GUIDES)
    files = Files() if robot is None or log is None else look_into(robot, log, user in ("servo", "legged"))
    return files, GUIDES[user][1](files)
