"""Files for controllers, read back by an independent reader."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.excitation.controller_programs import joint_trajectory_yaml, ur_script
from dynid.excitation.fixed_motions import largest_sinusoids
from dynid.excitation.limits import limits_of
from dynid.excitation.motion_files import (
    FORMS,
    check_file,
    form_suffix,
    played_deviation,
    read_coefficients,
    read_trajectory,
    write_motion,
)
from dynid.excitation.ramps import rest_to_rest
from dynid.excitation.shapes import BSplineShape, random_fourier
from dynid.excitation.trajectories import PolynomialTrajectory, Trajectory
from messages import facts
from problems import demo_arm, planar_2r


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_files_give_back_every_digit(tmp_path, suffix):
    robot = planar_2r()
    motion = random_fourier(robot, 3.0, 3).samples(100.0)
    path = write_motion(motion, tmp_path / f"motion.{suffix}")
    back = read_trajectory(path, robot)
    for name in ("time", "position", "velocity", "acceleration"):
        np.testing.assert_array_equal(getattr(back, name), getattr(motion, name))
    if suffix == "csv":
        assert path.read_text().splitlines()[0].replace('"', "") == "t,q1,q2,dq1,dq2,ddq1,ddq2"


def test_file_with_positions_only_is_differentiated(tmp_path):
    robot = planar_2r()
    motion = random_fourier(robot, 3.0, 3).samples(200.0)
    path = tmp_path / "positions.csv"
    table = np.column_stack([motion.time, motion.position])
    np.savetxt(path, table, delimiter=",", header="t,q1,q2", comments="", fmt="%.17g")
    back = read_trajectory(path, robot)
    np.testing.assert_allclose(back.velocity, motion.velocity, atol=1e-6)
    np.testing.assert_allclose(back.acceleration, motion.acceleration, atol=1e-3)
    assert sum("spline" in note for note in back.notes) == 2
    short = tmp_path / "short.csv"
    np.savetxt(short, table[:4], delimiter=",", header="t,q1,q2", comments="")
    with pytest.raises(InputError, match="has 4 rows, expected at least 6"):
        read_trajectory(short, robot)


SIX = ["shoulder_yaw", "shoulder_pitch", "upper_arm_roll", "elbow", "forearm_roll", "wrist_pitch"]


@pytest.fixture(scope="module")
def six():
    return demo_arm().only(SIX)


def motions(robot):
    rng = np.random.default_rng(0)
    limits = limits_of(robot)
    series = random_fourier(robot, 5.0, 3, fraction=0.7)
    q = 0.2 * rng.normal(size=(4, robot.n_joints))
    return [
        series,
        rest_to_rest(robot, series, limits),
        rest_to_rest(robot, series, limits).slowed(0.25),
        BSplineShape(4.0, 6).trajectory(rng.normal(size=(robot.n_joints, 7))),
        PolynomialTrajectory.through([0.0, 1.0, 2.5, 3.0], q, 0.1 * q),
        largest_sinusoids(robot, limits, 6.0),
    ]


@pytest.mark.parametrize("which", range(6))
def test_json_round_trip(six, tmp_path, which):
    motion = motions(six)[which]
    path = write_motion(motion, tmp_path / "motion.json", six.joint_names)
    back = read_coefficients(path)
    time = motion.grid(50)
    np.testing.assert_array_equal(back.evaluate(time), motion.evaluate(time))
    assert json.loads(path.read_text())["joints"] == SIX


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_tables_at_the_rate(six, tmp_path, suffix):
    motion = random_fourier(six, 4.0, 3)
    samples = read_trajectory(write_motion(motion, tmp_path / f"motion.{suffix}", six.joint_names, 250.0), six)
    assert len(samples) == 1001
    np.testing.assert_array_equal(samples.acceleration, motion.evaluate(samples.time)[2])


def test_joint_trajectory_as_a_yaml_reader_sees_it(six):
    motion = rest_to_rest(six, random_fourier(six, 4.0, 3, fraction=0.8), limits_of(six))
    yaml = pytest.importorskip("yaml")
    message = yaml.safe_load(joint_trajectory_yaml(motion, [*SIX[:-1], "it's"], 50.0))
    assert set(message) == {"header", "joint_names", "points"}
    assert message["joint_names"][-1] == "it's"
    times = np.array(
        [point["time_from_start"]["sec"] + 1e-9 * point["time_from_start"]["nanosec"] for point in message["points"]]
    )
    np.testing.assert_allclose(np.diff(times), 0.02, atol=1e-9)
    q, v, a = motion.evaluate(times)
    for name, expected in (("positions", q), ("velocities", v), ("accelerations", a)):
        np.testing.assert_allclose([point[name] for point in message["points"]], expected, atol=1e-8)
    assert not any(message["points"][0]["velocities"])


def played(script, at, step=0.008):
    """What a UR program commands a robot here: its syntax is Python's but for ``end``, ``halt`` and a dialect of names."""
    sent, log = [], []
    text = re.sub(r"^\s*end\s*$", "", script, flags=re.MULTILINE).replace("      halt", "      return halt()")
    names = {
        "get_actual_joint_positions": lambda: list(at),
        "norm": abs,
        "popup": lambda text, title, warning, error, blocking: log.append(("popup", error and blocking)),
        "halt": lambda: log.append(("halt",)),
        "get_steptime": lambda: step,
        "movej": lambda q, a, v: log.append(("movej", q, v)),
        "servoj": lambda q, t, lookahead_time, gain: sent.append((q, t)),
        "stopj": lambda a: log.append(("stopj",)),
        "sleep": lambda s: None,
        "sin": math.sin,
        "cos": math.cos,
    }
    exec(text, names)
    names["dynid_excitation"]()
    return sent, log


@pytest.mark.parametrize("which", range(6))
def test_ur_program_plays_the_motion(six, which):
    motion = motions(six)[which]
    script = ur_script(motion)
    opened = len(re.findall(r"^\s*(def|while|if)\b", script, flags=re.MULTILINE))
    assert opened == len(re.findall(r"^\s*end\s*$", script, flags=re.MULTILINE))
    start = motion.evaluate([0.0])[0][0]
    sent, log = played(script, start + 0.0086)
    time = 0.008 * np.arange(len(sent))
    assert time[-1] <= motion.duration_s < time[-1] + 0.02
    inside = time < motion.duration_s
    np.testing.assert_allclose(np.array([q for q, _ in sent])[inside], motion.evaluate(time[inside])[0], atol=1e-7)
    assert log[0][0] == "movej"
    np.testing.assert_allclose(log[0][1], start, atol=1e-12)
    assert log[-1] == ("stopj",)
    for j in range(6):
        for side in (0.0088, -0.0088, 2.0):
            assert played(script, start + side * (np.arange(6) == j)) == ([], [("popup", True), ("halt",)])


class Standstill(Trajectory):
    """A motion of a kind of its own."""

    n_joints, duration_s = 6, 1.0

    def derivative(self, time, order):
        return np.zeros((len(np.atleast_1d(time)), 6))

    def slowed(self, share):
        return self

    def as_json(self):
        return {}


def test_every_form_is_written_with_its_dry_run_and_says_how_it_is_recorded(six, tmp_path):
    seven = demo_arm()
    for suffix, form in FORMS.items():
        robot = seven if suffix == ".franka.csv" else six
        motion = rest_to_rest(robot, random_fourier(robot, 4.0, 3, fraction=0.6), limits_of(robot))
        held = [False] * robot.n_joints
        for name, played in (("m", motion), ("m_dry_run", motion.slowed(0.25))):
            path = write_motion(played, tmp_path / f"{name}{suffix}", robot.joint_names, 500.0)
            assert path.stat().st_size > 0
            assert form.beside is None or path.with_suffix(form.beside).exists()
            away = played_deviation(path, played, held)
            assert away is None or away < 0.03
        assert form.joins is None or form.record
    assert form_suffix("a.EGM.csv") == ".egm.csv"
    assert form_suffix("a.b.csv") == ".csv"


def test_a_form_has_the_nearest_rate_that_its_controller_takes():
    assert [FORMS[suffix].rate_hz(500.0) for suffix in (".csv", ".egm.csv", ".franka.csv", ".lerobot.csv", ".src")] == [
        500.0,
        250.0,
        1000.0,
        100.0,
        10.0,
    ]
    assert FORMS[".lerobot.csv"].rate_hz(30.0) == 30.0


def test_refusals(six, tmp_path):
    robot = planar_2r()
    motion = random_fourier(robot, 4.0, 3)
    with pytest.raises(InputError, match=facts("UR", "6", "2", "joint")):
        write_motion(motion, tmp_path / "motion.script", robot.joint_names)
    with pytest.raises(InputError, match=facts("m.ls", "6", "7", ".csv")):
        write_motion(random_fourier(demo_arm(), 5.0, 2), tmp_path / "m.ls")
    with pytest.raises(InputError, match=facts("m.lerobot.csv", "prismatic", ".csv")):
        write_motion(motion, tmp_path / "m.lerobot.csv", prismatic=[True, False])
    with pytest.raises(InputError, match=r"unknown form of a motion file '\.txt'"):
        write_motion(motion, tmp_path / "motion.txt", robot.joint_names)
    with pytest.raises(InputError, match=facts("3", "2", "joint")):
        write_motion(motion, tmp_path / "motion.csv", ["a", "b", "c"])
    with pytest.raises(InputError, match="there is no folder"):
        check_file(tmp_path / "nowhere" / "motion.csv")
    with pytest.raises(InputError, match="unknown form"):
        check_file(tmp_path / "motion.bag")
    with pytest.raises(InputError, match=facts("csv", "samples", "table")):
        write_motion(motion.samples(100.0), tmp_path / "motion.json")
    with pytest.raises(InputError, match="kind Standstill is neither a Fourier series nor a sequence of polynomials"):
        ur_script(Standstill())
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"trajectory": {"kind": "spiral"}}')
    with pytest.raises(InputError, match="unknown kind of motion 'spiral'"):
        read_coefficients(wrong)
    wrong.write_text("{}")
    with pytest.raises(InputError, match="has no 'trajectory'"):
        read_coefficients(wrong)
