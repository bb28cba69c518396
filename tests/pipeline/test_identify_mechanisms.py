"""Coupled wrists and counterbalances from file to model: recovered where they are stated, found where they are not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cli_program import app
from dynid.dynamics.friction import smooth_friction
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.simulate import simulate
from dynid.io.demo import demo_samples
from dynid.io.logs.read import write_recording
from dynid.io.robots.dh import with_springs
from dynid.io.robots.read import read_robot
from dynid.model.effects.effect import Motion
from dynid.model.effects.springs import PointSpring
from dynid.model.effects.wrapped import OnJoints
from dynid.model.robot import Robot
from dynid.pipeline.folder import load_result, save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.inspect import inspect_log
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.simulate import simulate_log
from dynid.signals.recording import Recording
from dynid.validation.replay import replay
from spring_forces import spring_force

ROBOTS = Path(__file__).parents[2] / "examples" / "robots"
RATIOS = (120.0, 120.0, 110.0, -100.0, 80.0, 50.0)
QUICK = Settings(method="wls", split=0.65, cutoff_hz=8.0, signal_band_hz=20.0, friction="smooth")
"""Choices that the data would also make, made here to save time."""


def log_of(robot: Robot, path: Path, *, motors: bool = False, seconds: float = 20.0, seed: int = 0) -> Path:
    """Exact motion and torque with encoder steps and torque noise, at the joints or at the motors."""
    moving = smooth_friction(robot, 0.01)
    samples = demo_samples(moving, seconds=seconds, rate_hz=250.0, seed=seed)
    assert samples.torque is not None
    noise = 0.01 * np.sqrt((samples.torque**2).mean(axis=0)) * np.random.default_rng(seed).normal(size=samples.torque.shape)
    step = 2.0 * np.pi / 2**19
    q, tau = np.round(samples.position / step) * step, samples.torque + noise
    if motors:
        assert robot.coupling is not None
        q, tau = robot.coupling.at_motors(q), robot.coupling.torque_at_motors(tau)
    return Path(write_recording(Recording(samples.time, q, robot.joint_names, torque=tau), path))


def without_table(name: str, table: str, folder: Path) -> Path:
    """A robot file cut before one of its tables."""
    path = folder / f"plain_{name}"
    path.write_text((ROBOTS / name).read_text(encoding="utf-8").split(table)[0], encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mechanisms")


@pytest.fixture(scope="module")
def plain_wrist(folder: Path) -> Path:
    return without_table("coupled_wrist.toml", "[coupling]", folder)


@pytest.fixture(scope="module")
def motor_log(folder: Path) -> Path:
    return log_of(read_robot(ROBOTS / "coupled_wrist.toml"), folder / "motors.parquet", motors=True)


@pytest.fixture(scope="module")
def coupled(plain_wrist: Path, motor_log: Path) -> IdentificationResult:
    return identify(plain_wrist, motor_log, replace(QUICK, coupling=("6:5=1",), side="motor", gear_ratios=RATIOS))


def unseen(run: IdentificationResult) -> float:
    assert run.validation is not None
    return run.validation.relative_error


def test_friction_and_inertia_of_the_motors_are_found(coupled: IdentificationResult) -> None:
    found = coupled.estimate.standard
    truth = {"fvm6": 1.6, "fcm6": 2.9, "Iam6": 0.45, "fv5": 2.4, "fc5": 3.8, "fv4": 3.0, "fc4": 4.5}
    for name, value in truth.items():
        assert found[name] == pytest.approx(value, rel=0.02), name
    assert unseen(coupled) < 0.004  # torque noise of 1 % in this band
    assert coupled.advice == ()


def test_a_stored_run_keeps_its_coupling(coupled: IdentificationResult, folder: Path) -> None:
    again = load_result(save_result(coupled, folder / "stored"))
    assert again.robot.coupling == coupled.robot.coupling
    assert again.robot.effects == coupled.robot.effects
    assert "--coupling 6:5=1" in again.command()


def test_without_the_coupling_the_advice_names_it(coupled: IdentificationResult, plain_wrist: Path, motor_log: Path) -> None:
    run = identify(plain_wrist, motor_log, replace(QUICK, side="motor", gear_ratios=RATIOS))
    assert unseen(run) > 1.5 * unseen(coupled)
    assert [one["joint"] for one in run.summary()["advice"]] == ["joint5", "joint6"]
    assert {one.option for one in run.advice} == {'--coupling "joint6:joint5=1"'}
    assert min(one.gain for one in run.advice) > 0.5


def test_a_log_of_the_joints_has_the_friction_of_the_motor_too(plain_wrist: Path, folder: Path) -> None:
    log = log_of(read_robot(ROBOTS / "coupled_wrist.toml"), folder / "joints.parquet")
    with_it = identify(plain_wrist, log, replace(QUICK, coupling=("joint6:joint5=1",)))
    without = identify(plain_wrist, log, QUICK)
    assert with_it.estimate.standard["fcm6"] == pytest.approx(2.9, rel=0.02)
    assert unseen(without) > 1.5 * unseen(with_it)
    assert [(one.joint, one.option) for one in without.advice] == [
        (f"joint{n}", '--coupling "joint6:joint5=1"') for n in (5, 6)
    ]


def moment(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Torque of the spring about axis 2."""
    effect = next(one for one in robot.effects if isinstance(one, OnJoints) and isinstance(one.effect, PointSpring))
    still = np.zeros((len(q), robot.n_joints))
    position = still.copy()
    position[:, 1] = q
    values = [robot.parameters["sk2"], robot.parameters["sf2"]]
    return np.asarray(effect.signals(Motion(position, still, still)) @ values)


@pytest.fixture(scope="module")
def balanced_log(folder: Path) -> Path:
    return log_of(read_robot(ROBOTS / "counterbalanced.toml"), folder / "balanced.parquet")


@pytest.mark.slow
def test_a_counterbalance_of_unknown_geometry_is_found(folder: Path, balanced_log: Path) -> None:
    plain = without_table("counterbalanced.toml", "[[spring]]", folder)
    truth = read_robot(ROBOTS / "counterbalanced.toml")
    length = truth.effects[-1].effect.length  # type: ignore[attr-defined]
    run = identify(plain, balanced_log, replace(QUICK, spring=({"joint": 2, "kind": "linear", "length": length},)))
    q = np.linspace(-1.3, 1.7, 60)
    expected = moment(truth, q)
    assert np.abs(moment(run.model, q) - expected).max() < 0.03 * np.abs(expected).max()
    found = next(one for one in run.model.effects if isinstance(one, OnJoints))
    spring = found.effect
    assert isinstance(spring, PointSpring)
    own = PointSpring("linear", *(float(spring.option_values(name, 6)[1]) for name in ("phase", "ratio", "length")))
    _, force = spring_force(own, np.array([run.model.parameters[name] for name in ("sk2", "sf2")]), q)
    true = truth.effects[-1].effect  # type: ignore[attr-defined]
    _, wanted = spring_force(true, np.array([8000.0, -2400.0]), q)
    assert np.abs(force - wanted).max() < 0.03 * wanted.max()
    assert unseen(run) < 0.004
    assert run.advice == ()


@pytest.mark.slow
def test_a_counterbalance_is_found_in_the_deepest_valley(folder: Path) -> None:
    """A slow motion, on which the least place of the grid lies in a wrong valley: longer logs are better, not worse."""
    truth = read_robot(ROBOTS / "counterbalanced.toml")
    log = log_of(truth, folder / "slow.parquet", seconds=60.0, seed=1)
    plain = without_table("counterbalanced.toml", "[[spring]]", folder)
    length = truth.effects[-1].effect.length  # type: ignore[attr-defined]
    run = identify(plain, log, replace(QUICK, spring=({"joint": 2, "kind": "linear", "length": length},)))
    q = np.linspace(-1.1, 1.1, 60)
    expected = moment(truth, q)
    assert np.abs(moment(run.model, q) - expected).max() < 0.01 * np.abs(expected).max()


def test_a_counterbalanced_axis_is_no_torque_without_gravity(folder: Path, balanced_log: Path) -> None:
    plain = without_table("counterbalanced.toml", "[[spring]]", folder)
    _, check = inspect_log(balanced_log, plain)
    assert {finding.level for finding in check.findings} <= {"note"}
    note = check.find("counterbalance")
    assert note is not None
    assert note.where == ("joint2",)
    assert "--spring 2=linear" in note.remedy
    _, stated = inspect_log(balanced_log, ROBOTS / "counterbalanced.toml")
    assert stated.find("counterbalance") is None
    assert {finding.level for finding in stated.findings} <= {"note"}


def test_without_the_spring_the_advice_names_the_axis(folder: Path, balanced_log: Path) -> None:
    run = identify(without_table("counterbalanced.toml", "[[spring]]", folder), balanced_log, QUICK)
    assert run.advice
    assert run.advice[0].joint == "joint2"
    assert run.advice[0].option is not None
    assert run.advice[0].option.startswith("--spring joint2=")


def test_a_simulated_log_is_measured_where_the_robot_says(folder: Path) -> None:
    robot = read_robot(ROBOTS / "coupled_wrist.toml")
    reference = demo_samples(robot, seconds=20.0, rate_hz=100.0)[:12]
    columns = {"t": reference.time}
    for name, values in (("q", reference.position), ("dq", reference.velocity), ("ddq", reference.acceleration)):
        columns |= {f"{name}{j + 1}": values[:, j] for j in range(6)}
    path = folder / "motion.csv"
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in np.column_stack(list(columns.values())).tolist())]
    path.write_text("\n".join(lines), encoding="utf-8")
    _, log = simulate_log(robot, path, folder / "simulated.csv", torque_noise=0.0, encoder_bits=0, rate_hz=100.0)
    assert robot.coupling is not None
    np.testing.assert_allclose(log.position[0], robot.coupling.at_motors(reference.position[:1])[0])


def test_simulated_torque_is_that_of_the_model_with_coupled_rotors_and_springs() -> None:
    robot = with_springs(
        read_robot(ROBOTS / "coupled_wrist.toml"),
        [{"joint": 5, "kind": "torsion", "rest_angle": 0.1, "stiffness": 9.0}],
        "test",
    )
    reference = demo_samples(robot, seconds=20.0, rate_hz=100.0)[:15]
    result = simulate(robot, reference, rate_hz=100.0, torque_noise=0.0, encoder_counts=None)
    truth = result.truth
    expected = inverse_dynamics(result.robot, truth.position, truth.velocity, truth.acceleration)
    np.testing.assert_allclose(truth.torque, expected, atol=1e-8 * np.abs(expected).max())


def test_replay_follows_springs_and_coupled_rotors() -> None:
    robot = with_springs(
        read_robot(ROBOTS / "coupled_wrist.toml"),
        [{"joint": 5, "kind": "torsion", "rest_angle": 0.1, "stiffness": 40.0}],
        "test",
    )
    moving = smooth_friction(robot, 0.05)
    samples = demo_samples(moving, seconds=10.0, rate_hz=500.0)[1000:1200]
    followed = replay(moving, samples, window_s=0.2, engine="own")
    slack = replay(moving.with_parameters({"ks5": 0.0, "Iam6": 0.0}), samples, window_s=0.2, engine="own")
    assert np.max(followed.position_rmse) < 1e-5
    assert np.max(slack.position_rmse[4:]) > 1e-3


@pytest.mark.slow
def test_the_command_line_alone(plain_wrist: Path, motor_log: Path, folder: Path) -> None:
    """The issue's wrist, with default options."""
    words = ["identify", str(plain_wrist), str(motor_log), "--split", "0.65", "--json", "-o"]
    side = ["--side", "motor", f"--gear-ratios={','.join(map(str, RATIOS))}"]
    with_it = CliRunner().invoke(app, [*words, str(folder / "a"), *side, "--coupling", "6:5=1"])
    assert with_it.exit_code == 0, with_it.output
    without = CliRunner().invoke(app, [*words, str(folder / "b"), *side])
    first, second = json.loads(with_it.stdout), json.loads(without.stdout)
    values = {one["name"]: one["value"] for one in first["base"]}
    assert [values[name] for name in ("fvm6", "fcm6", "Iam6")] == pytest.approx([1.6, 2.9, 0.45], rel=0.02)
    assert second["relative_error"]["validation"] > 1.5 * first["relative_error"]["validation"]
    assert first["advice"] == []
    assert {one["joint"] for one in second["advice"]} == {"joint5", "joint6"}
    assert "joint5" in (folder / "b" / "report.html").read_text(encoding="utf-8")
