"""``dynid excite`` as users type it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from dynid.cli.verbs.motion import excite
from dynid.errors import InputError
from dynid.excitation import command as excite_run
from dynid.excitation.command import design_excitation
from dynid.excitation.controller_programs import read_program
from dynid.excitation.motion_files import read_trajectory
from dynid.excitation.options import ExciteSettings
from dynid.io.demo import demo_description
from dynid.io.robots.read import read_robot
from dynid.io.robots.urdf_write import write_urdf
from dynid.regression.base import reduce_to_base
from messages import facts

LOCKED = ("upper_arm_roll", "forearm_roll", "wrist_pitch", "wrist_roll")
THREE_JOINTS = tuple(f"--lock={name}=0.3" for name in LOCKED)
QUICK = ("--period", "5", "--harmonics", "3", "--starts", "1", "--seconds", "20", *THREE_JOINTS)
WAVES = ("--shape", "sinusoids", "--period", "5", *THREE_JOINTS)

app = typer.Typer()
app.command()(excite)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    path = tmp_path_factory.mktemp("robot") / "arm.toml"
    path.write_text(demo_description())
    return path


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def robot_of(arm):
    return read_robot(arm, lock=dict.fromkeys(LOCKED, 0.3))


def test_a_motion_and_its_numbers(arm, tmp_path):
    out = tmp_path / "traj.csv"
    record = json.loads(run(arm, "-o", out, "--rate", "200", *QUICK, "--json"))
    assert {"condition_number", "criterion", "seconds", "margins"} <= set(record)
    assert {"position", "velocity", "acceleration", "torque"} <= set(record["margins"])
    assert all(margin >= 0.0 for margin in record["margins"].values())
    assert record["files"] == [str(out)]
    robot = robot_of(arm)
    samples = read_trajectory(out, robot)
    np.testing.assert_allclose(np.diff(samples.time), 0.005, atol=1e-9)
    assert not samples.velocity[0].any()
    np.testing.assert_allclose(samples.position[-1], samples.position[0], atol=1e-6)  # it can be repeated as it is
    low, high = robot.position_limits.T
    assert (samples.position >= low).all()
    assert (samples.position <= high).all()
    assert (np.abs(samples.acceleration) <= robot.limits("ddq_max")).all()
    assert out.read_text().splitlines()[0].replace('"', "").split(",")[:4] == ["t", "q1", "q2", "q3"]


def test_every_file_at_once(arm, tmp_path):
    out = [tmp_path / f"traj.{suffix}" for suffix in ("parquet", "yaml", "json")]
    words = [word for path in out for word in ("-o", path)]
    text = run(
        arm,
        *words,
        *QUICK,
        "--picture",
        tmp_path / "picture.html",
        "--card",
        tmp_path / "card.md",
        "--no-rest",
        "--tool-speed",
        "1.5",
    )
    assert "condition number" in text
    assert "tool speed" in text
    for path in (*out, tmp_path / "picture.html", tmp_path / "card.md", tmp_path / "traj_dry_run.parquet"):
        assert path.exists()
        assert str(path) in text[text.index("written: ") :]
    slow = read_trajectory(tmp_path / "traj_dry_run.parquet", robot_of(arm))
    assert slow.duration_s == pytest.approx(20.0)


def test_files_for_controllers_come_with_dry_runs_and_what_they_cannot_take_is_refused_first(arm, tmp_path):
    names = ("m.src", "m.egm.csv", "m.lerobot.csv", "m.dynamixel.csv")
    words = [word for name in names for word in ("-o", tmp_path / name)]
    done = CliRunner().invoke(app, [str(word) for word in (arm, *words, *WAVES, "--card", tmp_path / "card.md")])
    assert done.exit_code == 0, done.output
    for name in (*names, "m.dat"):
        assert (tmp_path / name).exists()
        assert (tmp_path / name.replace("m.", "m_dry_run.", 1)).exists()
    unfolded = " ".join(done.output.split())
    assert all(str(tmp_path / name) in unfolded[unfolded.index("written: ") :] for name in (*names, "m.dat"))
    assert "m.egm.csv has 250 points a second, not 1000; joined by straight lines they are at most" in unfolded
    assert "RSI" in (tmp_path / "card.md").read_text()
    with pytest.raises(InputError, match=facts("m.script", "6", "3")):
        run(arm, "-o", tmp_path / "first.csv", "-o", tmp_path / "m.script", *WAVES)
    assert not (tmp_path / "first.csv").exists()


def test_distances_and_what_is_not_kept_apart_are_on_the_screen_the_card_and_the_page(arm, tmp_path):
    around = ("--box", "1.6,0,0.3,0.2,0.2,0.2", "--ceiling", "2.5", "--wall", "x=-1.9")
    card, page = tmp_path / "card.md", tmp_path / "page.html"
    out = (arm, "-o", tmp_path / "m.csv", *WAVES, *around)
    text = run(*out, "--card", card, "--picture", page)
    distances = {one["name"]: one for one in json.loads(run(*out, "--json"))["distances"]}
    assert {"to ground", "to --box", "to --ceiling", "to --wall x=-1.9"} <= set(distances)
    for name, one in distances.items():
        words = (
            name,
            f"{1e3 * one['largest']:.3g} mm",
            f"{1e3 * one['limit']:g} mm",
            f"{one['where']} at {one['time_s']:.3f} s",
        )
        assert f"| {' | '.join(words)} |" in card.read_text()
        row = next(line for line in text.splitlines() if line.startswith(f"{name}  "))
        assert [part for part in row.split("  ") if part.strip()][1].strip() == words[1]
        assert all(word in page.read_text() for word in words)
    assert "Every limit is kept, but shapes of bodies are guessed" in page.read_text()
    assert "asked 50 mm" in text
    assert "asked 50 mm" in card.read_text()
    warned = [line for line in text.splitlines() if line.startswith("warning: ")]
    assert "shapes of bodies are guessed" in warned[0]
    assert "**Warning: shapes of bodies are guessed" in card.read_text()
    assert text.index("warning: ") < text.index("start pose")


def test_axes_of_a_controller_have_their_own_signs_and_zeros(arm, tmp_path):
    sign, zero = np.array([1.0, -1.0, 1.0]), np.array([0.0, 0.5, -1.2])
    plain, turned = tmp_path / "plain.src", tmp_path / "turned.src"
    card = tmp_path / "card.md"
    text = run(arm, "-o", plain, *WAVES, "--card", card)
    assert "axes of plain.src: zeros and signs are the description's" in " ".join(text.split())
    assert "**Warning: axes of plain.src" in card.read_text()
    given = ("--axis-sign", "1,-1,1", "--axis-zero", "0,0.5,-1.2")
    text = " ".join(run(arm, "-o", turned, "-o", tmp_path / "joints.csv", *WAVES, *given).split())
    q, axes = read_program(plain, [False] * 3)[1], read_program(turned, [False] * 3)[1]
    np.testing.assert_allclose(axes, sign * q + zero, atol=1e-9)
    shown = re.search(r"must show A1 (\S+), A2 (\S+), A3 (\S+) \(deg\)", text)
    np.testing.assert_allclose([float(word) for word in shown.groups()], np.degrees(axes[0]), atol=0.006)
    np.testing.assert_allclose(read_trajectory(tmp_path / "joints.csv", robot_of(arm)).position[0], q[0], atol=1e-8)
    program = tmp_path / "horizontal.ls"
    assert "--axis-coupling 3:2=1" in " ".join(run(arm, "-o", program, *WAVES).split())
    run(arm, "-o", program, *WAVES, *given, "--axis-coupling", "3:2=1")
    together = read_program(program, [False] * 3)[1]
    np.testing.assert_allclose(together, axes + np.outer(axes[:, 1], [0.0, 0.0, 1.0]), atol=1e-9)
    for words, match in (
        (("--axis-coupling", "3:7=1"), r"--axis-coupling names joint '7', expected a number from 1 to 3"),
        (("--axis-sign", "1,-1"), r"--axis-sign has 2 numbers, expected 3"),
        (("--axis-sign", "1,2,1"), r"--axis-sign is '1,2,1', expected 1 or -1"),
    ):
        with pytest.raises(InputError, match=match):
            run(arm, "-o", plain, *WAVES, *words)
    with pytest.raises(InputError, match=r"--axis-zero is given, expected with -o of a controller's axes"):
        run(arm, "-o", tmp_path / "joints.csv", *WAVES, "--axis-zero", "0,0,0")


@pytest.mark.parametrize(
    "options",
    [
        ("--shape", "bspline", "--intervals", "6", "--period", "5", "--starts", "1"),
        ("--shape", "sinusoids", "--period", "5"),
        pytest.param(
            ("--shape", "points", "--effects", "armature", "--starts", "1", "--lock=elbow=0.3"),
            id="points",
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda options: options[1],
)
def test_other_shapes(arm, tmp_path, options):
    out = tmp_path / "traj.csv"
    record = json.loads(run(arm, "-o", out, "--rate", "100", *THREE_JOINTS, *options, "--json"))
    held = dict.fromkeys((*LOCKED, *(["elbow"] if options[1] == "points" else [])), 0.3)
    samples = read_trajectory(out, read_robot(arm, lock=held))
    assert min(margin for margin in record["margins"].values() if margin is not None) >= -1e-9
    assert np.isfinite(record["condition_number"])
    np.testing.assert_allclose(samples.velocity[0], 0.0, atol=1e-12)
    np.testing.assert_allclose(samples.position[-1], samples.position[0], atol=1e-4)
    assert record["model"] == ("energy" if options[1] == "points" else "torque")
    assert (record["knots"] is None) == (options[1] != "points")


def test_points_from_the_command_line(arm, tmp_path):
    """Weights and measure act, and both files hold the times of the points."""
    out = tmp_path / "traj.json"
    two_joints = (*THREE_JOINTS, "--lock=elbow=-0.3")
    common = (arm, "-o", out, *two_joints, "--shape", "points", "--starts", "1", "--points", "12", "--effects", "viscous")
    record = json.loads(run(*common, "--json"))
    written = json.loads(out.read_text())
    assert written["knots"] == record["knots"]
    assert len(record["knots"]) == 13
    assert record["criterion"].startswith("1 cond(W) + 0.02 S")
    robot = read_robot(arm, ("viscous",), lock=dict.fromkeys(LOCKED, 0.3) | {"elbow": -0.3})
    assert record["n_columns"] == record["n_base"] == reduce_to_base(robot).n_base
    words = (*common, "--measure", "frobenius", "--lambda1", "2", "--lambda2", "0")
    other = json.loads(run(*words, "--json"))
    assert other["criterion"] == "2 cond(W) + 0 S of the energy model, cond by frobenius"
    assert other["scaling"] > 1e3 * record["scaling"]
    text = " ".join(run(*words, "--seconds", "0.3").split())  # the counts are those of any design
    assert f"energy model (12 rows, {record['n_columns']} base parameters)" in text
    assert f"torque model ({record['n_base']} base parameters)" in text


@pytest.mark.parametrize(
    ("shape", "words", "shapes"),
    [
        ("points", ("--criterion", "trace"), "fourier or bspline"),
        ("points", ("--scaled",), "fourier or bspline"),
        ("points", ("--period", "5"), "fourier or bspline or sinusoids"),
        ("points", ("--no-rest",), "fourier or bspline or sinusoids"),
        ("points", ("--harmonics", "3"), "fourier"),
        ("fourier", ("--lambda2", "0.1"), "points"),
        ("fourier", ("--points", "30"), "points"),
        ("fourier", ("--amplitude", "1,1,1"), "sinusoids"),
        ("bspline", ("--harmonics", "3"), "fourier"),
        ("sinusoids", ("--starts", "3"), "fourier or bspline or points"),
    ],
)
def test_an_option_of_another_shape_is_refused(arm, tmp_path, shape, words, shapes):
    out = tmp_path / "traj.csv"
    with pytest.raises(InputError, match=f"{words[0]} is given with --shape {shape}, expected --shape {shapes}"):
        run(arm, "-o", out, "--shape", shape, *words)
    assert not out.exists()


def test_given_sinusoids_are_written_as_they_are(arm, tmp_path):
    out = tmp_path / "traj.csv"
    A, P, C = np.array([1.2, -0.9, 1.1]), np.array([3.7, 2.0, 2.9]), np.array([0.2, -0.1, -1.0])

    def words(values):
        return ",".join(f"{value:g}" for value in values)

    given = ("--amplitude", words(A), "--period-s", words(P), "--centre", words(C))
    record = json.loads(run(arm, "-o", out, *WAVES, *given, "--no-rest", "--rate", "200", "--json"))
    samples = read_trajectory(out, robot_of(arm))
    t = samples.time[:, None]
    np.testing.assert_allclose(samples.velocity, A * np.sin(2.0 * np.pi * t / P), atol=1e-9)
    np.testing.assert_allclose(samples.position, C - A * P / (2.0 * np.pi) * np.cos(2.0 * np.pi * t / P), atol=1e-9)
    assert samples.duration_s == pytest.approx(5.0)
    assert record["margins"]["velocity"] > 0.0
    for change, message in (
        (("--amplitude", "1,1", "--period-s", "2"), "2 amplitudes .* for the 3 joints"),
        (("--amplitude", "1,1,1"), "without --period-s"),
        (("--period-s", "2"), "without --amplitude"),
        (("--centre", "0,0,0"), "without --amplitude"),
        (("--amplitude", "1,1,1", "--period-s", "0"), "a period is 0 s"),
        (("--amplitude", "1,1,1", "--period-s", "2", "--joint", "elbow"), "--joint and --amplitude"),
        (("--amplitude", "0,1.9,0", "--period-s", "4"), r"exceed the limit of velocity by .* \(shoulder_pitch\)"),
        (("--amplitude", "1,1,1", "--period-s", "2", "--centre", "0,0,9"), r"exceed the limit of position .* \(elbow\)"),
    ):
        with pytest.raises(InputError, match=message):
            run(arm, "-o", tmp_path / "x.csv", *WAVES, *change)
    assert not (tmp_path / "x.csv").exists()


def test_refusals_come_before_the_work(arm, tmp_path):
    for words, message in (
        (("-o", tmp_path / "traj.txt"), "unknown form of a motion file '.txt'"),
        (("-o", tmp_path / "no" / "traj.csv"), "there is no folder"),
        (("--shape", "spiral"), "unknown shape of motion 'spiral'"),
        (("--ground", "0", "--no-collision"), "--ground is given with --no-collision"),
        (("--clearance", "0.01", "--no-collision"), "--clearance is given with --no-collision"),
        (("--move", "elbwo"), "elbwo"),
        (("--jerk", "fast"), "--jerk is 'fast', expected numbers"),
        (("--position", "1.5"), "--position is '1.5', expected low:high"),
        (("--rate", "1e9"), r"5 s of motion at 1e\+09 Hz are 5e\+09 samples, at most 10,000,000"),
        (("--rate", "0"), "rate is 0 Hz"),
    ):
        with pytest.raises(InputError, match=message):
            run(arm, *words, *QUICK)
    with pytest.raises(InputError, match=facts("3", "--points")):
        run(arm, "--shape", "points", "--points", "3", *THREE_JOINTS)


BARE_MJCF = """<mujoco model="two"><worldbody>
  <body name="upper"><joint name="j1" type="hinge" axis="0 1 0" limited="true" range="-90 90"/>
    <inertial pos="0.1 0 -0.2" mass="2" diaginertia="0.1 0.1 0.05"/>
    <body name="lower" pos="0 0 -0.5"><joint name="j2" type="hinge" axis="0 1 0"/>
      <inertial pos="0.05 0 -0.2" mass="1" diaginertia="0.05 0.05 0.02"/></body>
  </body></worldbody></mujoco>
"""


def test_limits_that_a_description_lacks_are_given_by_options(tmp_path):
    """MJCF has no velocity limits at all."""
    path, out = tmp_path / "two.xml", tmp_path / "traj.csv"
    path.write_text(BARE_MJCF)
    quick = ("-o", out, "--rate", "200", "--period", "5", "--starts", "1", "--seconds", "10", "--json")
    with pytest.raises(InputError, match=facts("dq_max", "j1", "j2", "--velocity")):
        run(path, *quick)
    limits = (
        "--position",
        "-1.2:1.0,-2:2",
        "--velocity",
        "2,1.5",
        "--acceleration",
        "10",
        "--jerk",
        "300",
        "--torque",
        "20",
    )
    record = json.loads(run(path, *quick, *limits))
    assert {name for name, margin in record["margins"].items() if margin is not None} == {
        "position", "velocity", "acceleration", "jerk", "torque"
    }  # fmt: skip
    assert min(record["margins"].values()) >= 0.0
    samples = read_trajectory(out, read_robot(path))
    assert (samples.position >= [-1.2, -2.0]).all()
    assert (samples.position <= [1.0, 2.0]).all()
    assert (np.abs(samples.velocity) <= [2.0, 1.5]).all()
    assert np.abs(samples.velocity).max() > 1.0


def test_a_card_for_a_file_of_five_periods(arm, tmp_path):
    out, card = tmp_path / "traj.csv", tmp_path / "card.md"
    run(arm, "-o", out, "--rate", "100", *QUICK, "--periods", "5", "--card", card)
    assert "Play the motion once. It holds 5 periods. It starts and ends at rest in the same pose" in card.read_text()
    samples = read_trajectory(out, robot_of(arm))
    assert samples.duration_s > 25.0
    np.testing.assert_allclose(samples.position[-1], samples.position[0], atol=1e-5)


def test_sinusoids_keep_every_limit(arm, tmp_path):
    flags = (*WAVES, "--no-rest", "--json")
    free = json.loads(run(arm, "-o", tmp_path / "free.csv", *flags))
    held = json.loads(run(arm, "-o", tmp_path / "held.csv", "--tool-speed", "0.3", *flags))
    assert 0.0 <= held["margins"]["tool_speed"] < 0.05
    assert held["margins"]["velocity"] > free["margins"]["velocity"]
    record = json.loads(run(arm, "-o", tmp_path / "one.csv", "--joint", "elbow", *flags))
    assert min(value for value in record["margins"].values() if value is not None) >= 0.0
    samples = read_trajectory(tmp_path / "one.csv", robot_of(arm))
    moving = np.ptp(samples.position, axis=0) > 1e-6
    assert [name for name, moves in zip(robot_of(arm).joint_names, moving, strict=True) if moves] == ["elbow"]
    with pytest.raises(InputError, match="--joint is given with --shape fourier"):
        run(arm, "-o", tmp_path / "x.csv", "--joint", "elbow", *QUICK)
    with pytest.raises(InputError, match="even when they are 2 % as large"):
        run(arm, "-o", tmp_path / "x.csv", "--torque", "1e-3", *flags)
    assert not (tmp_path / "x.csv").exists()


def test_the_engine_reaches_the_search(arm, monkeypatch):
    asked = []
    for name in ("search_excitation", "design_points"):
        monkeypatch.setattr(f"dynid.excitation.command.{name}", lambda *_, engine=None, **__: asked.append(engine))
    monkeypatch.setattr("dynid.excitation.command.told_if_poor", lambda found: found)
    for settings in (ExciteSettings(engine="threads:2"), ExciteSettings(), ExciteSettings(shape="points", engine="serial")):
        design_excitation(arm, settings)
    assert asked == ["threads:2", None, "serial"]


def test_a_cluster_elsewhere_has_another_clock():
    with pytest.raises(InputError, match="expected serial, threads:N, processes:N, or dask without an address"):
        ExciteSettings(engine="dask:tcp://host:8786")
    with pytest.raises(InputError, match="--engine is given with --shape sinusoids"):
        ExciteSettings(shape="sinusoids", engine="serial")


def test_a_clearance_is_kept_by_capsules_where_the_description_has_no_shapes(arm, tmp_path):
    path = write_urdf(read_robot(arm), tmp_path / "arm.urdf").path
    wide = ExciteSettings(shape="sinusoids", period=5.0, lock=dict.fromkeys(LOCKED, 0.3), clearance=0.03)
    assert design_excitation(path, wide).margins.clearance >= 0.0
    with pytest.raises(InputError, match=r"clearance is -0\.01 m"):
        design_excitation(path, replace(wide, clearance=-0.01))


def test_a_clearance_that_cannot_be_kept_is_refused(monkeypatch, arm):
    monkeypatch.setattr(excite_run, "usual_clearance", lambda *_, **__: (None, ("the robot has closed loops",)))
    with pytest.raises(InputError, match=r"--clearance 0\.03 cannot be kept: the robot has closed loops"):
        design_excitation(arm, ExciteSettings(shape="sinusoids", clearance=0.03))
