"""``dynid simulate`` as users type it: chosen friction, what is said, what is refused."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from dynid.cli import main
from dynid.dynamics.regressors import torque_regressor
from dynid.excitation.motion_files import write_motion
from dynid.excitation.shapes import random_fourier
from dynid.io.logs.read import read_recording
from dynid.io.robots.read import read_robot
from dynid.signals.samples import Samples
from problems import inertial_urdf

ARM = f"""<?xml version="1.0"?>
<robot name="two">
  <link name="base"/>
  <joint name="turn" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="200" velocity="3"/></joint>
  <link name="upper">{inertial_urdf(2.0)}</link>
  <joint name="bend" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="200" velocity="3"/></joint>
  <link name="lower">{inertial_urdf(1.0)}</link>
</robot>
"""


@dataclass(frozen=True)
class Bench:
    urdf: object
    motion: object
    samples: Samples


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulate")
    urdf = folder / "two.urdf"
    urdf.write_text(ARM)
    samples = random_fourier(read_robot(urdf), 4.0, 3, seed=1, fraction=0.7).samples(200.0)
    return Bench(urdf, write_motion(samples, folder / "motion.csv"), samples)


def simulate(*words):
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["dynid", "simulate", *map(str, words)]
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = before
    return int(code or 0), out.getvalue(), err.getvalue()


def friction_in(bench, log):
    """Friction that least squares finds in a log, by name of its column; links are those of the description."""
    robot = read_robot(bench.urdf)
    recording = read_recording(log, robot)
    inner = slice(40, -40)
    acceleration = np.gradient(recording.velocity, recording.time, axis=0)
    Y = torque_regressor(robot, recording.position[inner], recording.velocity[inner], acceleration[inner])
    n = robot.parameters.n_inertial
    rest = recording.torque[inner] - Y[:, :, :n] @ robot.parameters.values[:n]
    values = np.linalg.lstsq(Y[:, :, n:].reshape(-1, Y.shape[2] - n), rest.ravel(), rcond=None)[0]
    return dict(zip(robot.parameters.names[n:], values, strict=True))


def test_chosen_friction_is_in_the_log(bench, tmp_path):
    log = tmp_path / "log.csv"
    exact = ("--torque-noise", "0", "--encoder-bits", "0")
    chosen = ("--viscous", "1.5,0.5", "--coulomb", "0.8", "--offset", "-0.2,0.1", "--armature", "0.3")
    code, out, err = simulate(bench.urdf, bench.motion, "-o", log, *exact, *chosen, "--json")
    assert code == 0, err
    result = json.loads(out)
    assert result["files"] == [str(log)]
    assert result["friction"] == {
        "viscous": [1.5, 0.5], "coulomb": [0.8, 0.8], "offset": [-0.2, 0.1], "armature": [0.3, 0.3]
    }  # fmt: skip
    assert "friction simulated: viscous 0.5 to 1.5 N m s/rad, coulomb 0.8 N m, offset -0.2 to 0.1 N m" in err
    assert "rotor inertia: armature 0.3 kg m^2" in err
    found = friction_in(bench, log)
    expected = {"fv1": 1.5, "fv2": 0.5, "fc1": 0.8, "fc2": 0.8, "fo1": -0.2, "fo2": 0.1, "Ia1": 0.3, "Ia2": 0.3}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=0.05), name


def test_no_friction_is_said(bench, tmp_path):
    log = tmp_path / "log.csv"
    exact = ("--torque-noise", "0", "--encoder-bits", "0")
    code, out, err = simulate(bench.urdf, bench.motion, "-o", log, *exact)
    assert code == 0, err
    assert out.startswith("simulated 4 s of two at 1000 Hz")
    assert "friction simulated: none; rotor inertia: none (the description has no values; --viscous and --coulomb" in err
    assert max(abs(value) for value in friction_in(bench, log).values()) < 0.05
    _, _, err = simulate(bench.urdf, bench.motion, "-o", log, "--effects", "none", "--rate", "100")
    assert "rotor inertia: none (--effects none)" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rate", "1e9"), r"a log of 4 s at 1e\+09 Hz would have 4e\+09 samples .* at most 10,000,000 are simulated"),
        (("--viscous", "1,2,3"), "viscous has 3 values, expected 1, or 2: one per joint"),
        (("--coulomb", "much"), "--coulomb is 'much', expected numbers"),
        (("--armature", "-1"), "armature is -1, expected zero or more"),
        (("--coulomb", "1", "--effects", "viscous"), "values of coulomb were given, but the robot's effects are viscous"),
    ],
)
def test_refusals_are_one_sentence(bench, tmp_path, words, said):
    code, out, err = simulate(bench.urdf, bench.motion, "-o", tmp_path / "log.csv", *words)
    assert code == 2
    assert out == ""
    assert re.search(said, err)
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "log.csv").exists()


def test_a_motion_in_degrees_is_refused(bench, tmp_path):
    s = bench.samples
    path = write_motion(
        Samples(s.time, *(np.degrees(part) for part in (s.position, s.velocity, s.acceleration))), tmp_path / "degrees.csv"
    )
    code, out, err = simulate(bench.urdf, path, "-o", tmp_path / "log.csv")
    assert code == 2
    assert out == ""
    assert re.search(r"degrees\.csv' takes joint '\w+' to -?\d+\.?\d* rad at .* range is -2 to 2 rad; .*in degrees\?", err)
    assert len(err.strip().splitlines()) == 1


def test_a_motion_a_little_outside_is_simulated_and_said(bench, tmp_path):
    s = bench.samples
    shift = 2.2 - s.position[:, 0].max()
    path = write_motion(
        Samples(s.time, s.position + np.array([shift, 0.0]), s.velocity, s.acceleration), tmp_path / "wide.csv"
    )
    code, _, err = simulate(bench.urdf, path, "-o", tmp_path / "log.csv", "--rate", "100")
    assert code == 0, err
    assert "takes joint 'turn' to 2.2 rad" in err
    assert "joint stops are not simulated" in err


def test_a_motion_without_the_fingers_is_simulated_and_identified_as_it_was_designed(bench, tmp_path):
    """What ``excite`` writes of an arm with fingers: numbered columns of the other joints."""
    finger = (
        f'<joint name="finger_joint" type="prismatic"><parent link="lower"/><child link="finger"/><origin xyz="0.3 0 0"/>'
        f'<axis xyz="0 1 0"/><limit lower="0" upper="0.04" effort="20" velocity="0.2"/></joint>'
        f'<link name="finger">{inertial_urdf(0.1)}</link></robot>'
    )
    urdf = tmp_path / "hand.urdf"
    urdf.write_text(ARM.replace("</robot>", finger))
    code, _, said = simulate(urdf, bench.motion, "-o", tmp_path / "log.csv", "--viscous", "1", "--rate", "200")
    assert code == 0, said
    assert "the motion has 2 joints; held, as by excite: finger_joint" in said
    log = read_recording(tmp_path / "log.csv", ["turn", "bend"])
    assert log.n_joints == 2
    assert (tmp_path / "log.csv").read_text().replace('"', "").startswith("t,q_turn,q_bend,")
    # a motion of yet another number of columns is not taken for any joints
    write_motion(Samples(*(part[:, :1] if part.ndim == 2 else part for part in _parts(bench.samples))), tmp_path / "one.csv")
    code, _, said = simulate(urdf, tmp_path / "one.csv", "-o", tmp_path / "no.csv")
    assert code == 2
    assert "log has 1 position columns, robot has 3 joints" in said


def _parts(samples):
    return samples.time, samples.position, samples.velocity, samples.acceleration


def test_numbered_columns_are_those_of_the_joints_that_are_named(bench, tmp_path):
    samples = bench.samples
    motion, log = tmp_path / "motion.csv", tmp_path / "log.csv"
    rows = np.column_stack([samples.time, samples.position[:, ::-1], samples.velocity[:, ::-1]])
    np.savetxt(motion, rows, delimiter=",", header="t,q1,q2,dq1,dq2", comments="")
    code, _, told = simulate(bench.urdf, motion, "-o", log, "--joints", "bend,turn", "--rate", "200", "--torque-noise", "0")
    assert code == 0, told
    swapped = read_recording(log, read_robot(bench.urdf))
    assert np.abs(swapped.position - samples.position[: len(swapped.position)]).max() < 0.05
    np.savetxt(motion, rows[:, [0, 1, 3]], delimiter=",", header="t,q1,dq1", comments="")
    code, _, told = simulate(bench.urdf, motion, "-o", log)
    assert code == 2
    assert "--joints" in told
    code, _, told = simulate(bench.urdf, motion, "-o", log, "--joints", "bend", "--rate", "200")
    assert code == 0, told
    assert "; held, as --joints says: turn" in told
    assert read_recording(log, read_robot(bench.urdf).only(["bend"])).joint_names == ("bend",)
    code, _, told = simulate(bench.urdf, motion, "-o", log, "--joints", "bent")
    assert code == 2
    assert "'bent'" in told
