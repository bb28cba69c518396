"""What the matrix of verbs, runs and methods works on: a two-joint arm, its short logs, and a run of every kind, each made once.

A cell is one command line. It ends in an answer (exit code 0 or 1, text or with ``--json`` valid JSON) or in one sentence (exit
code 2); anything else, a traceback above all, is a fault of the program.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli_program import Done, dynid
from dynid.apps.gains.options import METHODS as GAIN_METHODS
from dynid.dynamics.inverse_dynamics import random_states_within_limits
from dynid.dynamics.regressors import static_regressor
from dynid.engine import ENGINES
from dynid.estimation.methods.registry import method_names
from dynid.excitation.motion_files import write_motion
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_recording
from dynid.io.logs.read import write_recording
from dynid.io.robots.urdf_write import write_urdf
from dynid.io.vendors import FORMS
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.inertia import mass_com_inertia
from dynid.model.robot import Robot
from dynid.pipeline.model_files import FORMATS
from dynid.pipeline.row_plan import row_kinds
from dynid.regression.base import reduce_to_base
from dynid.signals.recording import Recording, StaticRecording
from problems import planar_2r
from sensor_logs import NOISE, sensor_log, write_log, write_shoulder

PLAIN: tuple[object, ...] = ("--cutoff-hz", 8, "--export", "json")
LINEAR: tuple[object, ...] = ("--friction", "linear", *PLAIN)
SENSOR: tuple[object, ...] = ("--frame", "ft_sensor", "--cutoff-hz", 12, "--filter-on", "signals", "--export", "json")
METHODS = method_names()
"""All that are registered."""
ENGINES_TO_TRY = tuple(name if name in ("serial", "dask") else f"{name}:2" for name in ENGINES)

DATA: dict[str, tuple[object, ...]] = {
    **{kind: ("arm.urdf", "log1.csv", "--rows", kind, *LINEAR) for kind in row_kinds()},
    "floating": ("arm.urdf", "floating.csv", "--flat-feet", "base_link", *LINEAR),
    "streamed": ("arm.urdf", "log1.csv", "--stream", "on", *LINEAR),
    "signals": ("arm.urdf", "log1.csv", "--filter-on", "signals", "--effects", "viscous,coulomb,offset", *PLAIN),
    "split": ("arm.urdf", "log1.csv", "--split", 0.6, *LINEAR),
    "poses": ("arm.urdf", "poses.csv", "--export", "json"),
    "sensor": ("shoulder.urdf", "sensor1.csv", *SENSOR),
    "coefficients": ("arm.urdf", "--coefficients", "coefficients.csv", "--export", "json"),
    "bodies kept": ("arm.urdf", "log2.csv", "--fix-bodies", "run:torque", "--export", "json"),
}
"""What ``identify`` is given for every kind of data; words that name a file stand for it, ``run:KIND`` for the run of that kind."""
RUNS = (*DATA, "store")
"""Kinds of runs; that of a store is identified from its triangles."""

ON_RUNS: dict[str, tuple[object, ...]] = {
    "validate": ("validate", "RUN", "log3.csv"),
    "validate with a filter": ("validate", "RUN", "log3.csv", "--cutoff-hz", 8),
    "validate a stream": ("validate", "RUN", "log3.csv", "--stream", "on"),
    "validate sensor": ("validate", "RUN", "sensor2.csv"),
    "predict": ("predict", "RUN", "log3.csv", "-o", "predicted.parquet"),
    "validate and replay": ("validate", "RUN", "log3.csv", "--cutoff-hz", 8, "--replay"),
    **{f"validate {rows}": ("validate", "RUN", "log3.csv", "--rows", rows) for rows in row_kinds()},
    **{f"export {name}": ("export", "RUN", "--to", name, "-o", "models") for name in (*FORMATS, *FORMS)},
    "report": ("report", "RUN", "-o", "report.html"),
    "check": ("check", "RUN"),
    "compare-runs": ("compare-runs", "RUN", "run:torque", "--on", "log3.csv"),
    "compare-runs back": ("compare-runs", "run:poses", "RUN"),
    "payload": ("payload", "RUN", "loaded.csv"),
    "payload in a vendor's form": ("payload", "RUN", "loaded.csv", "--format", "ur", "--report", "load.html"),
    "gains": ("gains", "RUN", "loaded.csv", "--mass", 2.0),
    "identify from its base values": (
        "identify", "arm.urdf", "--method", "retrieve", "--coefficients", "RUN", "--export", "json", "-o", "retrieved",
    ),
    "identify with its bodies": (
        "identify", "arm.urdf", "log3.csv", "--fix-bodies", "RUN", "--cutoff-hz", 8, "--export", "json", "-o", "kept",
    ),
    "watch": ("watch", "arm.urdf", "--against", "RUN", "--every", 2),
    "watch a load": ("watch", "arm.urdf", "--against", "RUN", "--payload", "--every", 2),
}  # fmt: skip
"""Words behind ``dynid``; RUN stands for the run."""

OTHERS: dict[str, tuple[object, ...]] = {
    "base": ("base", "arm.urdf"),
    "base floating": ("base", "arm.urdf", "--floating"),
    "check a robot": ("check", "arm.urdf"),
    "check base values": ("check", "--base", "coefficients.csv", "arm.urdf"),
    "repair": ("repair", "arm.urdf", "-o", "repaired.urdf"),
    "doctor": ("doctor",),
    "guide": ("guide", "ur", "arm.urdf", "log1.csv"),
    "init": ("init", "arm.urdf", "log1.csv", "-o", "dynid.toml", "--force"),
    "simulate": ("simulate", "arm.urdf", "motion.csv", "-o", "simulated.parquet"),
    **{
        f"data {log}": ("data", f"{log}.csv", "--robot", "arm.urdf")
        for log in ("log1", "poses", "commands", "coefficients", "floating")
    },
    "data of a sensor": ("data", "sensor1.csv", "--robot", "shoulder.urdf", "--frame", "ft_sensor"),
    "payload on a sensor": ("payload", "--sensor", "sensor1.csv", "--robot", "shoulder.urdf", "--frame", "ft_sensor"),
    "payload online": ("payload", "--sensor", "sensor1.csv", "--robot", "shoulder.urdf", "--frame", "ft_sensor", "--online"),
    **{
        f"gains {method}": ("gains", "log1.csv", "loaded.csv", "--robot", "arm.urdf", "--mass", 2.0, "--method", method)
        for method in GAIN_METHODS
    },
    "actuators": ("actuators", "arm.urdf", "commands.csv", "--kp", 50, "--kd", 2, "--method", "linear"),
    "actuators without commands": ("actuators", "arm.urdf", "log1.csv", "--kp", 50, "--kd", 2),
    "watch": ("watch", "arm.urdf", "--every", 2),
    "watch polynomial": ("watch", "arm.urdf", "--rows", "polynomial", "--every", 2),
    "watch energy": ("watch", "arm.urdf", "--rows", "energy", "--every", 2),
    "fleet": ("fleet", "STORE", "-o", "fleet.html"),
    "store list": ("store", "list", "STORE"),
    "store list where": ("store", "list", "STORE", "--where", "robot=A and tool=B"),
    "excite": ("excite", "arm.urdf", "--seconds", 1, "--starts", 1, "--period", 3, "--harmonics", 2, "-o", "excited.csv"),
    "demo": ("demo", "-o", "demo"),
}
"""Words behind ``dynid`` of the verbs that take no run."""


class Place:
    """A folder with the robot, its logs, and runs that are made when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: set[str] = set()
        _write_files(folder)

    def words(self, words: Iterable[object]) -> list[str]:
        """Words of a command line; files by their paths, and runs, which are made, by their folders."""
        return [self._word(str(word)) for word in words]

    def _word(self, word: str) -> str:
        if word.startswith("run:"):
            return str(self.run(word.removeprefix("run:")))
        if word == "STORE":
            return str(self.store())
        return str(self.folder / word) if (self.folder / word).is_file() else word

    def run(self, kind: str) -> Path:
        """The folder of the run of this kind."""
        target = self.folder / "runs" / kind.replace(" ", "_")
        if kind not in self._made:
            if kind == "store":
                done = dynid("store", "identify", self.store(), "--where", "robot=A", "-o", target, "--json")
            else:
                method = ("--method", "retrieve") if kind == "coefficients" else ()
                done = dynid("identify", *self.words(DATA[kind]), *method, "-o", target, "--json")
            assert done.returncode == 0, done.stderr
            self._made.add(kind)
        return target

    def store(self) -> Path:
        """A store with two days of a robot."""
        target = self.folder / "store"
        if not target.exists():
            for day in (1, 2):
                first = ("--cutoff-hz", 8, "--friction", "linear") if day == 1 else ()
                named = ("--robot-id", "A", "--day", f"2026-03-0{day}", "--condition", "tool=B")
                words = self.words(("arm.urdf", f"log{day}.csv", "--to", target, *named, *first, "--json"))
                done = dynid("store", "add", *words)
                assert done.returncode == 0, done.stderr
        return target

    def ends(self, *words: object, stdin: str = "") -> Done:
        """The command with these words, which must end in an answer or in one sentence."""
        given, before, here = self.words(words), sys.stdin, Path.cwd()
        out = self.folder / "work"
        out.mkdir(exist_ok=True)
        os.chdir(out)
        try:
            if stdin:
                sys.stdin = _Input(self.folder / stdin)  # type: ignore[assignment]
            done = dynid(*given)
        finally:
            os.chdir(here)
            sys.stdin = before
        _check_ending(done, " ".join(["dynid", *given]))
        return done


class _Input:
    """Standard input of this process, for a program that reads its file descriptor."""

    def __init__(self, path: Path) -> None:
        self.buffer = path.open("rb")

    def __del__(self) -> None:
        self.buffer.close()


def _check_ending(done: Done, command: str) -> None:
    told = f"{command}\n{done.stdout[-500:]}\n{done.stderr[-1000:]}"
    assert done.returncode in (0, 1, 2), told
    assert "Traceback" not in done.stderr, told
    if done.returncode == 2:
        sentences = [line for line in done.stderr.splitlines() if line.startswith("dynid: ")]
        assert len(sentences) == 1, told
        assert done.stderr.splitlines()[-1] == sentences[0], told
        assert len(sentences[0]) > len("dynid: ") + 10, told
        return
    assert done.stdout.strip(), told
    if "--json" not in command.split():
        return
    by_lines = command.split()[1] == "watch" or "--online" in command.split()
    for line in done.stdout.splitlines() if by_lines else [done.stdout]:
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON: {told}"))


def cell(*words: object, slow: bool = False, name: str = "") -> Any:
    """A cell of the matrix: its words, quick or slow."""
    text = name or " ".join(str(word) for word in words)
    return pytest.param(tuple(words), id=text.replace("/", "_"), marks=[pytest.mark.slow] if slow else [])


def every_other(names: Sequence[str], first: int = 0) -> Callable[[str], bool]:
    """Whether a name is one of every second: what the quick half takes, so that all are met in some row of it."""
    chosen = set(names[first % 2 :: 2])
    return lambda name: name in chosen


def arm() -> Robot:
    """Two joints with friction and rotors."""
    robot = planar_2r([Viscous(), Coulomb(), Offset(), Armature()])
    values = {"fv1": 1.0, "fv2": 0.5, "fc1": 0.8, "fc2": 0.4, "fo1": 0.1, "fo2": -0.1, "Ia1": 0.05, "Ia2": 0.02}
    return robot.with_parameters(values)


def _write_files(folder: Path) -> None:
    robot = arm()
    write_urdf(robot, folder / "arm.urdf")
    for seed in (1, 2, 3):
        write_recording(_log(robot, seed), folder / f"log{seed}.csv")
    _add_base(folder / "log1.csv", folder / "floating.csv")
    heavy = robot.with_parameters({"m2": robot.parameters["m2"] + 2.0})
    write_recording(_log(heavy, 4), folder / "loaded.csv")
    log = _log(robot, 5)
    still = {"torque": None, "reference_position": log.position}
    write_recording(log.with_(**still), folder / "commands.csv")
    rigid = robot.with_effects(())
    q, _, _ = random_states_within_limits(rigid, 40)
    inertia, gravity = (Y @ rigid.parameters.values for Y in static_regressor(rigid, q))
    write_recording(StaticRecording(q, rigid.joint_names, inertia=inertia, gravity=gravity), folder / "poses.csv")
    base = reduce_to_base(rigid)
    pairs = zip(base.names, base.base_values(rigid.parameters).tolist(), strict=True)
    (folder / "coefficients.csv").write_text("name,value,sigma_percent\n" + "".join(f"{n},{v!r},2\n" for n, v in pairs))
    mass = mass_com_inertia(rigid.parameters.inertials)[0]
    rows = "".join(f"m{i},{0.5 * m},{2.0 * m}\n" for i, m in enumerate(mass, start=1))
    (folder / "bounds.csv").write_text("name,lower,upper\n" + rows)
    write_motion(random_fourier(robot, 3.0, 3, seed=3).samples(100.0), folder / "motion.csv")
    (folder / "mapping.toml").write_text('position = ["q1", "q2"]\n')
    (folder / "limits.toml").write_text(
        "[joint_limits]\n" + "".join(f"{name} = {{ max_acceleration = 5.0 }}\n" for name in robot.joint_names)
    )
    (folder / "constraints.toml").write_text("[constraints]\ntotal_mass = { lower = 0.1, upper = 100.0 }\n")
    write_shoulder(folder)
    for seed in (1, 2):
        write_log(sensor_log(1.0, seed, noise=0.1 * NOISE, duration_s=8.0), folder / f"sensor{seed}.csv")


def _add_base(log: Path, target: Path) -> None:
    """The same log with columns of a base that stands."""
    names = [f"base_{name}" for name in ("x", "y", "z", "qx", "qy", "qz", "qw", "vx", "vy", "vz", "wx", "wy", "wz")]
    rest = ",".join("1" if name == "base_qw" else "0" for name in names)
    head, *rows = log.read_text().splitlines()
    target.write_text("\n".join([f"{head},{','.join(names)}", *(f"{row},{rest}" for row in rows)]) + "\n")


def _log(robot: Robot, seed: int) -> Recording:
    found = demo_recording(robot, seconds=6.0, torque_noise=0.02, seed=seed)
    assert np.isfinite(found.position).all()
    return found
