"""``dynid check`` and ``dynid repair`` on every kind of model, as users type them."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from bench import Bench
from dynid.cli import main
from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits
from dynid.excitation.motion_files import write_motion
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_description
from dynid.io.robots.proof import file_parity
from dynid.io.robots.read import read_robot
from dynid.model.robot import Robot
from dynid.pipeline.folder import read_model

IMPOSSIBLE = """<mujoco model="impossible"><compiler angle="degree"/>
<!-- kept -->
<worldbody>
  <body name="stand"><inertial mass="3" pos="0 0 0.1" diaginertia="0.1 0.1 0.5"/>
    <body name="a" pos="0 0 1"><joint name="j1" axis="0 0 1" range="-90 90"/>
      <inertial mass="2" pos="0.1 0 0.02" quat="0.8 0.6 0 0" diaginertia="0.1 0.2 0.9"/>
      <body name="b" pos="0.3 0 0"><joint name="j2" axis="0 1 0" range="-90 90"/>
        <frame pos="0.1 0 0" euler="0 0 90"><inertial mass="1" pos="0.1 0 0" euler="10 20 30" diaginertia="0.05 0.06 0.09"/></frame>
        <body name="c" pos="0.3 0 0"><joint name="j3" axis="0 1 0" range="-90 90" armature="0.1"/>
          <inertial mass="0.5" pos="0.1 0 0" fullinertia="0.01 0.01 0.03 0.001 0.002 0.003"/>
          <body name="tool" pos="0.1 0 0"><inertial mass="-0.1" pos="0 0 0.1" diaginertia="0.001 0.001 0.001"/></body>
        </body>
      </body>
    </body>
  </body>
</worldbody>
<actuator><motor joint="j1" gear="3" armature="0.01"/></actuator>
</mujoco>"""
TURNTABLE = """<mujoco model="turntable"><worldbody><body name="table"><joint name="turn" axis="0 0 1"/>
  <inertial mass="2" pos="0.1 0 0" axisangle="0 0 1 0.3" diaginertia="0.1 0.2 0.9"/></body></worldbody></mujoco>"""
EMPTY = """<robot name="bare"><link name="a"/><link name="b"/>
  <joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def result(self) -> dict:
        return json.loads(self.out)


def dynid(*arguments: object) -> Done:
    """The program with these arguments, in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    logger = logging.getLogger("dynid")
    kept, before = logger.handlers[:], sys.argv
    logger.handlers.clear()
    sys.argv = ["dynid", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = before
        logger.handlers[:] = kept
    return Done(code, out.getvalue(), err.getvalue())


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def torque_change(before: Robot, after: Robot) -> float:
    """Relative difference of the rigid bodies' torque, on the states that the repair looks at."""
    rigid = before.with_effects(())
    q, v, a = random_states_within_limits(rigid, 500, 0)
    ours, theirs = (inverse_dynamics(robot.with_effects(()), q, v, a) for robot in (before, after))
    return float(np.linalg.norm(theirs - ours) / np.linalg.norm(ours))


@pytest.fixture(scope="module")
def run_folder(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose links are not all consistent, with its parameters written beside it."""
    folder = tmp_path_factory.mktemp("cli") / "run"
    short = ("--to", "4", "--friction", "linear")  # from so little data least squares gives no bodies
    assert dynid("identify", bench.urdf, bench.log, "-o", folder, "--method", "ols", *short).code in (0, 1)
    assert dynid("export", folder, "--to", "json").code == 0
    return folder


def parameter_file(folder: Path) -> Path:
    return next(
        path for path in folder.glob("*.json") if path.with_suffix(".npz").is_file() and path.name != "estimate.json"
    )


# MJCF that MuJoCo does not compile ------------------------------------------------------------


def test_an_impossible_mjcf_is_checked(tmp_path: Path) -> None:
    done = dynid("check", write(tmp_path, "bad.xml", IMPOSSIBLE), "--json")
    assert done.code == 1, done.err
    assert [link["name"] for link in done.result["links"] if not link["consistent"]] == ["a", "c", "stand", "tool"]
    faults = {link["name"]: link["fault"] for link in done.result["links"]}
    assert faults["a"] == "principal moments 0.1, 0.2, 0.9 kg m^2 break the triangle inequality"
    assert faults["tool"] == "mass is -0.1 kg, expected a positive one"
    assert "4 inconsistent: a, c, stand, tool" in dynid("check", tmp_path / "bad.xml").out


def test_an_impossible_mjcf_is_repaired_in_place(tmp_path: Path) -> None:
    bad = write(tmp_path, "bad.xml", IMPOSSIBLE)
    done = dynid("repair", bad, "-o", tmp_path / "good.xml", "--json")
    assert done.code == 0, done.err
    assert (done.result["feasible_before"], done.result["feasible_after"]) == (False, True)
    assert dynid("check", tmp_path / "good.xml").code == 0
    mujoco.MjModel.from_xml_path(str(tmp_path / "good.xml"))
    text = (tmp_path / "good.xml").read_text()
    assert "<!-- kept -->" in text
    assert '<motor joint="j1" gear="3" armature="0.01"/>' in text
    change = torque_change(read_robot(bad, "none"), read_robot(tmp_path / "good.xml", "none"))
    assert done.result["base_kept"] == (change < 1e-8)
    assert change == pytest.approx(done.result["torque_change"], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("suffix", [".xml", ".urdf", ".sdf", ".json"])
def test_motion_is_kept_where_it_can_be(tmp_path: Path, suffix: str) -> None:
    bad, good = write(tmp_path, "bad.xml", TURNTABLE), tmp_path / f"good{suffix}"
    assert dynid("check", bad).code == 1
    done = dynid("repair", bad, "-o", good, "--json")
    assert done.code == 0, done.err
    assert done.result["base_kept"] is True
    assert torque_change(read_model(bad), read_model(good)) < 1e-9
    assert dynid("check", good).code == 0


def test_an_inertia_of_a_rod_is_consistent_and_still_made_compilable(tmp_path: Path) -> None:
    """MuJoCo refuses a rod; no dynamics changes where it gets a hair of inertia about its axis."""
    rod = write(tmp_path, "rod.xml", TURNTABLE.replace("0.1 0.2 0.9", "0.2 0.2 0"))
    assert dynid("check", rod).code == 0
    done = dynid("repair", rod, "-o", tmp_path / "good.xml", "--json")
    assert done.code == 0, done.err
    assert any("no inertia about an axis" in note for note in done.result["notes"])
    assert file_parity("mjcf", read_robot(rod), tmp_path / "good.xml") < 1e-9


def test_an_mjcf_that_cannot_move_is_not_simulated(tmp_path: Path) -> None:
    bad = write(tmp_path, "bad.xml", TURNTABLE.replace("0.1 0.2 0.9", "0.1 0.2 -0.9"))
    robot = read_robot(bad)
    fast = replace(robot, joints=tuple(replace(joint, dq_max=1.0) for joint in robot.joints))
    motion = write_motion(random_fourier(fast, 3.0, 2, seed=1).samples(50.0), tmp_path / "motion.csv")
    done = dynid("simulate", bad, motion, "-o", tmp_path / "log.csv")
    assert done.code == 2
    assert "links that are not physically consistent: table" in done.err
    assert not (tmp_path / "log.csv").exists()


# Files of parameters ----------------------------------------------------------------------------


def test_every_file_of_a_run_gives_the_same_verdict(run_folder: Path) -> None:
    whole = dynid("check", run_folder, "--json")
    assert whole.code == 1, "least squares of this log has inconsistent links"
    parameters = parameter_file(run_folder)
    for name in ("estimate.json", "estimate.npz", "run.json", parameters.name, parameters.with_suffix(".npz").name):
        one = dynid("check", run_folder / name, "--json")
        assert (one.code, one.result) == (1, whole.result), name


def test_a_file_of_parameters_needs_no_run(run_folder: Path, tmp_path: Path) -> None:
    alone = write(tmp_path, "alone.json", parameter_file(run_folder).read_text())
    assert dynid("check", alone, "--json").result == dynid("check", run_folder, "--json").result


@pytest.mark.parametrize("suffix", [".json", ".urdf", ".xml", ".sdf"])
def test_parameters_are_repaired_into_every_format(run_folder: Path, tmp_path: Path, suffix: str) -> None:
    source, good = parameter_file(run_folder), tmp_path / f"good{suffix}"
    done = dynid("repair", source, "-o", good, "--json")
    assert done.code == 0, done.err
    assert done.result["feasible_after"] is True
    assert dynid("check", good).code == 0
    change = torque_change(read_model(source), read_model(good))
    assert change == pytest.approx(done.result["torque_change"], rel=1e-6, abs=1e-9)
    if suffix == ".json":  # friction stays as it was found
        before, after = read_model(source).parameters, read_model(good).parameters
        assert before.as_dict().keys() == after.as_dict().keys()
        np.testing.assert_array_equal(before.values[before.n_inertial :], after.values[after.n_inertial :])


def test_a_run_is_repaired_through_its_estimate(run_folder: Path, tmp_path: Path) -> None:
    for model, name in ((run_folder, "folder.urdf"), (run_folder / "estimate.json", "estimate.urdf")):
        assert dynid("repair", model, "-o", tmp_path / name).code == 0
    assert (tmp_path / "folder.urdf").read_bytes() == (tmp_path / "estimate.urdf").read_bytes()


def test_a_dh_file_is_repaired(tmp_path: Path) -> None:
    bad = write(tmp_path, "arm.toml", demo_description().replace("ixx = 0.024948", "ixx = 0.24948"))
    assert dynid("check", bad).code == 1
    for name in ("good.urdf", "good.json"):
        done = dynid("repair", bad, "-o", tmp_path / name, "--json")
        assert done.code == 0, done.err
        assert dynid("check", tmp_path / name).code == 0
    done = dynid("repair", bad, "-o", tmp_path / "good.sdf", "--json")
    assert file_parity("sdf", read_model(tmp_path / "good.json"), tmp_path / "good.sdf") < 1e-9


# What is refused --------------------------------------------------------------------------------


def test_refusals_are_one_sentence(run_folder: Path, tmp_path: Path) -> None:
    bare = write(tmp_path, "bare.urdf", EMPTY)
    bare_mjcf = write(tmp_path, "bare.xml", re.sub("<inertial[^>]*/>", "", TURNTABLE))
    other = write(tmp_path, "other.json", '{"format": "another"}')
    lone = write(tmp_path, "estimate.json", (run_folder / "estimate.json").read_text())
    (tmp_path / "arrays.npz").write_bytes(b"")
    arm, good = write(tmp_path, "arm.toml", demo_description()), tmp_path / "good.urdf"
    cases = [
        (("repair", bare, "-o", good), "nothing to repair: none of its 2 links has mass or inertia"),
        (("repair", bare_mjcf, "-o", tmp_path / "good.xml"), "nothing to repair: none of its 1 links"),
        (("repair", arm, "-o", tmp_path / "good.toml"), "expected .urdf, .xml (MJCF), .sdf or .json (parameters)"),
        (("repair", arm, "-o", tmp_path / "run.json"), "runs have files of that name"),
        (("check", other), "is no file of parameters"),
        (("check", lone), "is no file of parameters"),
        (("check", tmp_path / "missing.json"), "does not exist"),
        (("check", tmp_path / "arrays.npz"), "has no 'arrays.json' beside it"),
    ]
    before = sorted(tmp_path.iterdir())
    for arguments, said in cases:
        done = dynid(*arguments)
        assert done.code == 2, (arguments, done.out)
        assert said in done.err
        assert len([line for line in done.err.splitlines() if line.startswith("dynid: ")]) == 1
    assert sorted(tmp_path.iterdir()) == before
    nothing = dynid("check", bare_mjcf)
    assert nothing.code == 0
    assert "nothing to check" in nothing.out


def test_checking_a_description_loads_nothing_that_runs_need(bench: Bench) -> None:
    program = (
        "import sys; sys.argv = ['dynid', 'check', sys.argv[1]]\n"
        "from dynid.cli import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "heavy = [name for name in ('dynid.pipeline.identify', 'scipy.signal', 'mujoco', 'numba') if name in sys.modules]\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(bench.urdf)], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
