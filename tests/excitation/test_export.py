"""Files for controllers, read back by an independent reader; the card; the pictures."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.excitation.bspline import BSplineShape
from dynid.excitation.card import experiment_card
from dynid.excitation.design import finished_excitation
from dynid.excitation.export import (
    check_file,
    joint_trajectory_yaml,
    quintic_pieces,
    read_coefficients,
    ur_script,
    write_motion,
)
from dynid.excitation.fourier import FourierShape, random_fourier, read_trajectory
from dynid.excitation.limits import limits_of
from dynid.excitation.points import PointsTrajectory
from dynid.excitation.ramps import rest_to_rest
from dynid.excitation.shape import SequenceTrajectory, SlowedTrajectory
from dynid.excitation.sinusoids import all_joint_sinusoids
from dynid.regression.base import reduce_to_base
from dynid.report.excitation_plots import excitation_section, picture
from dynid.report.page import Verdict, figures_of, page
from messages import facts
from problems import demo_arm, planar_2r

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
        SlowedTrajectory(rest_to_rest(robot, series, limits), 0.25),
        BSplineShape(4.0, 6).trajectory(rng.normal(size=(robot.n_joints, 7))),
        PointsTrajectory([0.0, 1.0, 2.5, 3.0], q, 0.1 * q),
        all_joint_sinusoids(robot, limits, 6.0),
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


def played(script, step=0.008):
    """What a UR program commands: its syntax is Python's but for ``end`` and a dialect of names."""
    sent, log = [], []
    text = re.sub(r"^\s*end\s*$", "", script, flags=re.MULTILINE)
    names = {
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
    opened = len(re.findall(r"^\s*(def|while)\b", script, flags=re.MULTILINE))
    assert opened == len(re.findall(r"^\s*end\s*$", script, flags=re.MULTILINE))
    sent, log = played(script)
    time = 0.008 * np.arange(len(sent))
    assert time[-1] <= motion.duration_s < time[-1] + 0.02
    inside = time < motion.duration_s
    np.testing.assert_allclose(np.array([q for q, _ in sent])[inside], motion.evaluate(time[inside])[0], atol=1e-7)
    assert log[0][0] == "movej"
    np.testing.assert_allclose(log[0][1], motion.evaluate([0.0])[0][0], atol=1e-12)
    assert log[-1] == ("stopj",)


def test_piecewise_polynomials_are_exact(six):
    spline = motions(six)[3]
    pieces = quintic_pieces(spline)
    assert len(pieces) == 6
    middle = sum(piece.duration_s for piece in pieces[:2]) + 0.5 * pieces[2].duration_s
    np.testing.assert_allclose(pieces[2].derivative(0.5 * pieces[2].duration_s, 0), spline.derivative(middle, 0), atol=1e-10)


def test_refusals(six, tmp_path):
    robot = planar_2r()
    motion = random_fourier(robot, 4.0, 3)
    with pytest.raises(InputError, match=facts("UR", "6", "2", "joint")):
        write_motion(motion, tmp_path / "motion.script", robot.joint_names)
    with pytest.raises(InputError, match=r"unknown form of a motion file '\.txt'"):
        write_motion(motion, tmp_path / "motion.txt", robot.joint_names)
    with pytest.raises(InputError, match=facts("3", "2", "joint")):
        write_motion(motion, tmp_path / "motion.csv", ["a", "b", "c"])
    with pytest.raises(InputError, match="there is no folder"):
        check_file(tmp_path / "nowhere" / "motion.csv")
    with pytest.raises(InputError, match="unknown form"):
        check_file(tmp_path / "motion.bag")
    with pytest.raises(InputError, match="no sequence of polynomials"):
        quintic_pieces(motion)
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"trajectory": {"kind": "spiral"}}')
    with pytest.raises(InputError, match="unknown kind of motion 'spiral'"):
        read_coefficients(wrong)
    wrong.write_text("{}")
    with pytest.raises(InputError, match="has no 'trajectory'"):
        read_coefficients(wrong)


@pytest.fixture(scope="module")
def excitation():
    robot = planar_2r()
    motion = FourierShape(5.0, 3).trajectory(0.3 * np.random.default_rng(0).normal(size=(2, 7)))
    return finished_excitation(
        robot,
        reduce_to_base(robot),
        motion,
        limits_of(robot),
        criterion="condition",
        rest=True,
        periods=1,
        n_times=1000,
        began=0.0,
        seed=4,
        notes=("a note <b>",),
    )


def test_experiment_card(excitation):
    card = experiment_card(excitation, 500.0, ["traj.csv"])
    for text in (
        "25 % speed",
        "Warm up",
        "500 Hz",
        "`traj.csv`",
        "a note",
        "seed 4",
        "Not checked: torque; collision",
        "Play the motion 5 times without pause. It starts and ends at rest in the same pose",
    ):
        assert text in card
    for name in excitation.robot.joint_names:
        assert name in card
    assert f"{100.0 * excitation.margins.velocity.value:.2f} %" in card


def test_the_card_says_how_to_repeat(excitation):
    motion = excitation.trajectory
    open_ended = BSplineShape(5.0, 6).trajectory(np.vstack([np.linspace(0.0, 1.0, 7), np.zeros(7)]))
    for playable, core, texts in (
        (
            SequenceTrajectory((motion,) * 2),
            motion,
            ("Play the motion 3 times.", "holds 2 periods", "does not start and end at rest"),
        ),
        (
            open_ended,
            open_ended,
            ("never repeat the file without a pause", "ends 1.000 away", "back to the start pose before each"),
        ),
        (
            SequenceTrajectory((excitation.playable.pieces[0], *(motion,) * 5, excitation.playable.pieces[-1])),
            motion,
            ("Play the motion once. It holds 5 periods.",),
        ),
    ):
        card = experiment_card(replace(excitation, playable=playable, trajectory=core))
        for text in texts:
            assert text in card


def test_pictures(excitation):
    html = picture(excitation)
    assert html.count("<div id=") + html.count('id="excitation-') >= 3
    assert "scatter3d" in html
    section = excitation_section(excitation)
    figures = figures_of([section])
    assert [figure.name for figure in figures] == ["excitation_positions", "excitation_singular_values", "excitation_tool"]
    assert len(figures[0].panels) == 2
    assert {mark.value for mark in figures[0].panels[0].marks} == {-3.0, 3.0}
    assert "a note &lt;b&gt;" in page("motion", "", Verdict("good", "fine"), [section])
