"""A closed robot from the command line: simulated, identified, validated and exported like any other."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import dynid
from cli_program import app
from closed_robots import FOLDER, closed_robot
from dynid.dynamics.closed_chains import closures_of

ROBOT = FOLDER / "five_bar.toml"


def run(*words: object) -> dict:
    """The JSON of a command that must succeed."""
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Two logs of the five-bar within its limits: exact motion, fine encoders, little torque noise."""
    folder = tmp_path_factory.mktemp("five_bar")
    robot = closed_robot("five_bar", "viscous,coulomb,armature")
    closures = closures_of(robot)
    t = np.arange(0.0, 5.0, 0.005)
    paths = []
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        w = 2.0 * np.pi * np.array([0.31, 0.53, 0.97, 1.61])
        phase, size = rng.uniform(0.0, 2.0 * np.pi, (2, 4)), 0.45 * (closures.upper - closures.lower)[:, None] / 4.0
        angle = w * t[:, None, None] + phase
        q = 0.5 * (closures.lower + closures.upper) + (size * np.sin(angle)).sum(axis=2)
        v, a = (size * w * np.cos(angle)).sum(axis=2), -(size * w**2 * np.sin(angle)).sum(axis=2)
        tau = dynid.inverse_dynamics(robot, q, v, a)
        noisy = tau + 0.005 * np.abs(tau).mean(axis=0) * rng.normal(size=tau.shape)
        log = dynid.Recording(time=t, position=q, joint_names=robot.joint_names, torque=noisy)
        paths.append(dynid.write_recording(log, folder / f"log{seed}.parquet"))
    return paths


def test_base_counts_actuated_joints():
    found = run("base", ROBOT, "--effects", "viscous,coulomb,armature")
    assert found["n_base"] == 15


def test_identify_validate_and_export(tmp_path, logs):
    common = ("--effects", "viscous,coulomb,armature", "--export", "urdf,mjcf")
    identified = run("identify", ROBOT, logs[0], *common, "-o", tmp_path / "run")
    truth = closed_robot("five_bar", "viscous,coulomb,armature").parameters
    friction = {one["name"]: one["value"] for one in identified["base"] if one["name"][:2] in ("fv", "fc")}
    assert set(friction) == {"fv1", "fc1", "fv3", "fc3"}
    for name, value in friction.items():
        assert value == pytest.approx(truth[name], rel=0.02)
    assert (tmp_path / "run" / "five_bar_identified.xml").is_file()
    assert (tmp_path / "run" / "report.html").is_file()
    validated = run("validate", tmp_path / "run", logs[1])
    assert validated["relative_error"] < 0.01


def test_energy_and_polynomial_rows_identify_it_too(tmp_path, logs):
    robot = closed_robot("five_bar", "viscous,coulomb,armature")
    base = dynid.reduce_to_base(robot)
    truth = dict(zip(base.names, base.base_values(robot.parameters), strict=True))
    common = ("--effects", "viscous,coulomb,armature", "--method", "wls", "--export", "json")
    for rows in ("energy", "polynomial"):
        found = run("identify", ROBOT, logs[0], "--rows", rows, *common, "-o", tmp_path / rows)
        values = {one["name"]: one["value"] for one in found["base"]}
        assert values["fv1"] == pytest.approx(truth["fv1"], rel=0.1), rows
        assert values["Izz1"] == pytest.approx(truth["Izz1"], rel=0.1), rows


def test_friction_is_chosen_on_the_actuated_joints(logs):
    robot = closed_robot("five_bar", "viscous,coulomb,armature")
    samples = dynid.process(dynid.read_recording(logs[0], robot), [dynid.SavitzkyGolay(11, 2, velocity="position")])
    chosen = dynid.choose_friction(robot, [samples], "smooth")
    assert {column.number for column in chosen.robot.parameters.columns if column.kind == "friction"} == {1, 3}


def test_methods_are_compared_on_it(logs):
    words = (
        "compare",
        ROBOT,
        logs[0],
        "--effects",
        "viscous,coulomb,armature",
        "--methods",
        "wls,retrieve",
        "--cutoff-hz",
        "20",
    )
    assert [one["method"] for one in run(*words)["methods"]] == ["wls", "retrieve"]


def test_a_load_on_a_forearm_is_found_as_far_as_a_plane_shows_it(tmp_path, logs):
    robot = closed_robot("five_bar", "viscous,coulomb,armature")
    identified = run(
        "identify", ROBOT, logs[0], "--effects", "viscous,coulomb,armature", "--export", "json", "-o", tmp_path / "run"
    )
    assert identified["n_base"] == 15
    number, mass, place = robot.links.index("left_forearm") + 1, 0.3, 0.4
    added = {"m": mass, "mx": mass * place, "Iyy": mass * place**2, "Izz": mass * place**2}
    heavy = robot.with_parameters({f"{k}{number}": robot.parameters[f"{k}{number}"] + x for k, x in added.items()})
    bare = dynid.read_recording(logs[1], robot)
    motion = dynid.process(bare, [dynid.LowPass(cutoff_hz=20.0), dynid.Differentiate()])
    tau = dynid.inverse_dynamics(heavy, motion.position, motion.velocity, motion.acceleration)
    log = dynid.Recording(time=motion.time, position=motion.position, joint_names=robot.joint_names, torque=tau)
    path = dynid.write_recording(log, tmp_path / "loaded.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run("payload", tmp_path / "run", path, "--frame", "left_forearm")
    assert found["mass"] == pytest.approx(mass, rel=0.05)
    assert found["com"][0] == pytest.approx(place, abs=0.02)
