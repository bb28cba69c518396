"""Robots on a floating base from log to result, on walks that MuJoCo simulated."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.estimation.result import Outcome
from dynid.finding import BASE
from dynid.io.robots.read import read_robot
from dynid.io.robots.urdf_write import write_urdf
from dynid.pipeline.folder import load_result
from dynid.pipeline.identify import identify
from dynid.pipeline.joint_grades import GOOD
from dynid.pipeline.options import Settings
from dynid.validation.prediction import predict
from legged_robots import HUMANOID_FEET, QUADRUPED, QUADRUPED_FEET, robot_file
from legged_simulation import Logging, World, described_wrong, humanoid, quadruped, stand, walk

QUICK = Settings(feet=QUADRUPED_FEET, cutoff_hz=12.0, signal_band_hz=40.0, foot_radius=0.015, friction="linear", boxes=False)


@cache
def walked(noise: float = 0.0, seed: int = 0, hanging: bool = False) -> dict[str, Any]:
    made = walk(quadruped(), 8.0, seed=seed, torque_noise=0.02 * noise, motion_noise=noise, hanging=hanging)
    return made.columns


def columns(without: str = "", **options: Any) -> dict[str, Any]:
    stems = without.split()
    return {name: x for name, x in walked(**options).items() if not any(name.startswith(stem) for stem in stems)}


def stuck() -> dict[str, Any]:
    """A robot that stands in one pose: positions as at first, no velocity, torque as it was."""
    held = ("q", "base_x", "base_y", "base_z", "base_q", "imu_a", "contact_")
    return {
        name: x if name == "t" or name.startswith("tau") else np.full_like(x, x[0] if name.startswith(held) else 0.0)
        for name, x in columns().items()
    }


def wrong() -> Any:
    return described_wrong(read_robot(robot_file(QUADRUPED), "viscous,coulomb,offset,armature", floating=True))


def mass_of(run: Any) -> float:
    return float(run.model.parameters.inertials[:, 0].sum())


def test_a_walk_with_a_wrong_description_is_predicted_and_its_mass_is_found() -> None:
    run = identify(wrong(), columns(), replace(QUICK, split=0.65))
    assert run.rows.kind == "floating"
    assert run.rows.acceleration == "logged"
    assert run.validation is not None
    assert run.validation.relative_error < 0.01
    assert run.verdict is not None
    assert run.verdict.description_error > 0.1
    assert run.consistency.feasible
    truth = float(quadruped().parameters.inertials[:, 0].sum())
    assert mass_of(run) == pytest.approx(truth, rel=0.01)


def test_joints_and_base_are_judged_each_by_its_own_rows() -> None:
    clean, noisy = (identify(wrong(), columns(noise=noise), replace(QUICK, split=0.65)) for noise in (0.0, 1.0))
    states = clean.samples[0]
    truth = clean.robot.with_parameters(
        quadruped().parameters.as_dict() | {name: 0.01 for name in clean.robot.parameters.names if name.startswith("fv")}
    )
    needed = predict(truth, states)[:, 6:]
    for run, good in ((clean, True), (noisy, False)):
        assert run.verdict is not None
        names = [joint.name for joint in run.verdict.joints]
        assert names == [*BASE, *(joint.name for joint in run.robot.driven_joints)]
        assert all(joint.unseen is not None for joint in run.verdict.joints)
        off = np.linalg.norm(predict(run.model, states)[:, 6:] - needed, axis=0) / np.linalg.norm(needed, axis=0)
        graded = [joint.grade == "good" for joint in run.verdict.joints[2:]]
        assert max(off[graded], default=0.0) < 2.0 * GOOD
        assert (sum(graded) > 10) == good
        assert (run.verdict.grade == "good") == all(joint.grade == "good" for joint in run.verdict.joints)


@pytest.mark.parametrize(
    ("without", "source"),
    [
        ("imu_ base_a ddq", "the twist of the base"),
        ("base_ ddq", "the accelerometer and the gyroscope"),
        ("imu_ base_v base_w base_a ddq", "the pose of the base"),
    ],
)
def test_the_base_moves_as_an_imu_a_twist_or_a_pose_says(without: str, source: str) -> None:
    run = identify(wrong(), columns(without), replace(QUICK, signal_band_hz=30.0, split=0.65))
    assert any(source in note for note in run.notes)
    assert run.rows.acceleration == "derived"
    assert run.validation is not None
    assert run.validation.relative_error < 0.06
    assert mass_of(run) == pytest.approx(2.5, rel=0.05)


def test_forces_that_are_measured_give_every_row() -> None:
    settings = replace(QUICK, feet=(), force_frames=QUADRUPED_FEET, split=0.65)
    run = identify(wrong(), columns(), settings)
    assert run.rows.feet == ()
    assert run.validation is not None
    assert run.validation.relative_error < 0.05


def test_a_log_without_noise_ends_at_the_best_consistent_model() -> None:
    clean = {name: column for name, column in walk(quadruped()).columns.items() if not name.startswith("imu")}
    run = identify(wrong(), clean, Settings(force_frames=QUADRUPED_FEET, split=0.65))
    assert run.estimate.outcome is Outcome.SOLVED
    assert run.verdict is not None
    assert run.verdict.grade == "good"


def test_a_robot_on_a_vehicle_has_the_rows_of_its_joints() -> None:
    robot = quadruped("viscous,armature")
    run = identify(robot, columns(hanging=True), replace(QUICK, feet=(), flat_feet=(robot.links[0],), split=0.65))
    assert run.validation is not None
    assert run.validation.relative_error < 0.02
    assert not run.estimate.residual_rms[:6].any()


def test_flags_that_are_wrong_cost_little_and_inverted_ones_are_named() -> None:
    rng = np.random.default_rng(0)
    good = identify(wrong(), columns(), replace(QUICK, split=0.65))
    flipped = columns()
    for name in [name for name in flipped if name.startswith("contact_")]:
        flips = rng.random(len(flipped[name])) < 0.05
        flipped[name] = np.where(flips, 1.0 - flipped[name], flipped[name])
    run = identify(wrong(), flipped, replace(QUICK, split=0.65))
    assert run.validation is not None
    assert good.validation is not None
    assert run.validation.relative_error < 1.5 * good.validation.relative_error
    inverted = columns() | {"contact_FL": 1.0 - walked()["contact_FL"]}
    checks = identify(wrong(), inverted, QUICK).checks
    assert ("FL_FOOT",) in [one.where for one in checks[0] if one.code == "contact_inverted"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({f"imu_a{k}": ("scale", 1 / 9.81) for k in "xyz"}, "imu_unit"),
        ({f"imu_a{k}": ("scale", -1.0) for k in "xyz"}, "gravity_sign"),
        ({"imu_az": ("as", "imu_ax"), "imu_ax": ("as", "imu_az")}, "imu_axes"),
        ({"imu_ax": ("as", "imu_ay"), "imu_ay": ("as", "imu_ax")}, "imu_axes"),
        ({"imu_wx": ("as", "imu_wy"), "imu_wy": ("as", "imu_wx")}, "imu_axes"),
        ({"imu_wz": ("scale", -1.0)}, "imu_axes"),
        ({}, None),
        ({f"base_q{k}": ("as", f"base_q{by}") for k, by in zip("xyzw", "wxyz", strict=True)}, "quaternion_order"),
    ],
)  # fmt: skip
def test_the_data_check_names_what_is_wrong_with_the_base(change: dict[str, tuple[str, Any]], code: str | None) -> None:
    own = columns("base_a ddq")
    for name, (how, by) in change.items():
        own[name] = walked()[name] * by if how == "scale" else walked()[by]
    run = identify(wrong(), own, replace(QUICK, signal_band_hz=30.0, method="wls"))
    about_base = {"imu_unit", "imu_axes", "gravity_sign", "quaternion_order", "base_turns"} & set(run.checks[0].codes)
    assert about_base == ({code} if code else set())


@pytest.mark.parametrize(
    ("own", "settings", "sentence"),
    [
        (lambda: columns("base_ imu_"), QUICK, "does not say how the base of robot 'solo' moves"),
        (lambda: columns() | {"base_qw": 2.0 * walked()["base_qw"]}, QUICK, "quaternion of the base has length"),
        (lambda: columns(), replace(QUICK, feet=("FL_FOOT", "nowhere")), "has no frame 'nowhere' for a foot"),
        (lambda: columns("contact_HR"), QUICK, "no column says when foot 'HR_FOOT' touches the ground"),
        (lambda: columns("imu_ base_q base_x base_y base_z"), QUICK, "neither an accelerometer"),
        (lambda: stuck(), QUICK, "never leaves one pose"),
        (lambda: {n: x for n, x in stuck().items() if not n.startswith("base_a")}, QUICK, "never leaves one pose"),
        (lambda: columns(), replace(QUICK, feet=(*QUADRUPED_FEET, "FL_FOOT")), "'FL_FOOT' is named twice among --feet"),
        (lambda: columns(), replace(QUICK, force_frames=("HR_FOOT",)), "'HR_FOOT' is named twice"),
        (lambda: columns() | {"contact_FL": 2.0 * walked()["contact_FL"] - 1.0}, QUICK, "column contact_FL holds -1, expected 1"),
        (lambda: columns("FL_FOOT_f"), replace(QUICK, feet=(), force_frames=("FL_FOOT",)), "no force is measured at frame 'FL_FOOT'"),
        (lambda: columns(), replace(QUICK, rows="energy"), "for robots that stand fixed"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_a_sentence(own: Any, settings: Settings, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        identify(wrong(), own(), settings)


def test_feet_that_never_lift_are_told() -> None:
    standing = columns()
    for name in [name for name in standing if name.startswith("contact_")]:
        standing[name] = np.ones_like(standing[name])
    run = identify(wrong(), standing, QUICK)
    assert "feet_always" in run.checks[0].codes
    assert not run.estimate.residual_rms[6:].any()  # joints have no rows left
    free = identify(wrong(), columns(), QUICK)
    assert np.median(run.estimate.sigma / free.estimate.sigma) > 1.2


@pytest.mark.parametrize("joints", [None, quadruped().joint_names[1:12]])
def test_joints_that_a_log_lacks_or_that_are_not_asked_for_are_locked(joints: tuple[str, ...] | None) -> None:
    named = columns("q dq ddq tau")
    for k, name in enumerate(quadruped().joint_names[1:12]):
        named |= {f"{stem}_{name}": walked()[f"{stem}{k + 1}"] for stem in ("q", "dq", "tau")}
    run = identify(robot_file(QUADRUPED), named, replace(QUICK, signal_band_hz=30.0, method="wls", joints=joints))
    assert run.robot.n_dof == 17
    assert any("locked at neutral and merged" in note and "HR_KFE" in note for note in run.notes)


def test_a_known_total_mass_is_kept() -> None:
    assert mass_of(identify(wrong(), columns(), replace(QUICK, mass=2.6))) == pytest.approx(2.6, rel=1e-4)


def test_a_run_from_files_is_loaded_validated_and_exported(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    from cli_program import dynid

    robot, log, other = tmp_path / "robot.urdf", tmp_path / "walk.parquet", tmp_path / "other.parquet"
    write_urdf(described_wrong(read_robot(robot_file(QUADRUPED), "none")), robot)
    parquet.write_table(pa.table(columns()), log)
    parquet.write_table(pa.table(walked(seed=1)), other)
    flags = ["--feet", ",".join(QUADRUPED_FEET), "--cutoff-hz", "12", "--signal-band-hz", "40", "--foot-radius", "0.015"]
    place = tmp_path / "run"
    told = dynid("identify", robot, log, *flags, "--split", "0.65", "-o", place, "--json")
    found = json.loads(told.stdout)
    assert found["rows"]["kind"] == "floating"
    assert found["relative_error"]["validation"] < 0.01
    loaded = load_result(place, with_samples=True)
    assert loaded.robot.floating
    assert loaded.samples
    judged = json.loads(dynid("validate", place, other, "--json").stdout)
    assert judged["relative_error"] < 0.01
    assert "<freejoint" in (place / "solo_identified.xml").read_text()


def test_legs_of_both_sides_are_mirrored_where_they_are_tied() -> None:
    settings = replace(QUICK, symmetric=("FL_* FR_*", "HL_* HR_*"), split=0.65)
    run = identify(quadruped("viscous,coulomb,offset,armature"), columns(noise=1.0), settings)
    links = dict(zip(run.robot.links, run.model.parameters.inertials, strict=True))
    mirror = np.array([1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0])  # y turns its sign: my, Ixy, Iyz
    for left, right in (("FL_UPPER_LEG", "FR_UPPER_LEG"), ("HL_LOWER_LEG", "HR_LOWER_LEG")):
        np.testing.assert_allclose(links[left], mirror * links[right], atol=1e-6 * links[left][0])
    assert run.consistency.feasible


@pytest.mark.parametrize("noise", [1.0, 4.0])
def test_a_free_base_with_a_noisy_motion_does_not_shrink_masses(noise: float) -> None:
    made = walk(quadruped(), 8.0, seed=2, gravity=0.0, torque_noise=0.03 * noise, motion_noise=noise).columns
    settings = replace(QUICK, feet=(), cutoff_hz=8.0, signal_band_hz=20.0, gravity=(0.0, 0.0, 0.0), split=0.65)
    run = identify(wrong(), made, settings)
    assert any("rows of the base are left out" in note and "--mass" in note for note in run.notes)
    assert "imu_axes" not in run.checks[0].codes
    truth = run.robot.with_parameters(
        {
            name: 0.01 if name.startswith("fv") else quadruped().parameters.as_dict().get(name, 0.0)
            for name in run.robot.parameters.names
        }
    )
    beta, (low, high), seen = run.estimate.base.base_values(truth.parameters), run.intervals.T, run.estimate.seen
    assert np.mean(((low <= beta) & (beta <= high))[seen]) > 0.88
    assert run.verdict is not None
    assert run.verdict.grade != "good"
    assert "The rows of the base were left out" in run.verdict.sentence
    assert not {joint.name for joint in run.verdict.joints} & set(BASE)


@pytest.mark.slow
def test_two_kilograms_on_the_trunk_are_found_within_their_interval() -> None:
    bare = quadruped()
    x, y, z = place = np.array([0.05, -0.02, 0.03])
    inertia = 2.0 * (place @ place * np.eye(3) - np.outer(place, place))
    values = bare.parameters.values.copy()
    values[:10] += [2.0, 2.0 * x, 2.0 * y, 2.0 * z, *inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]
    loaded = bare.with_parameters(bare.parameters.with_values(values))
    held = []
    for seed in range(4):
        made = walk(loaded, 15.0, stiffness=14.0, damping=0.3, torque_noise=0.03, motion_noise=1.0, seed=seed)
        run = identify(wrong(), made.columns, Settings(feet=QUADRUPED_FEET))
        found = run.estimate
        masses = np.zeros(len(found.standard))
        masses[: found.standard.n_inertial : 10] = 1.0
        weights = np.linalg.lstsq(found.base.K.T, masses, rcond=None)[0]
        np.testing.assert_allclose(found.base.K.T @ weights, masses, atol=1e-8)  # the whole mass is one of what is known
        mass, sigma = float(weights @ found.base_values), float(np.sqrt(weights @ found.covariance @ weights))
        truth = float(bare.parameters.inertials[:, 0].sum()) + 2.0
        assert mass == pytest.approx(truth, rel=0.005)
        held.append(abs(mass - truth) < 1.96 * sigma)
        known = dict.fromkeys(run.robot.parameters.names, 0.0) | dict(zip(bare.parameters.names, values, strict=True))
        own = found.base.base_values(run.robot.with_parameters(known).parameters)
        places = [found.base.names.index(name) for name in ("mx1", "my1", "mz1")]
        held += [low < own[k] < high for k, (low, high) in zip(places, run.intervals[places], strict=True)]
    assert np.mean(held) > 0.8  # of 16 intervals of 95 %


def share_held(run: Any, truth: Any, viscous: float) -> float:
    """Share of the intervals of what is known that hold the parameters that were simulated."""
    own = truth.parameters.as_dict()
    known = {name: own.get(name, viscous if name.startswith("fv") else 0.0) for name in run.robot.parameters.names}
    beta, (low, high) = run.estimate.base.base_values(run.robot.with_parameters(known).parameters), run.intervals.T
    return float(np.mean(((low <= beta) & (beta <= high))[run.estimate.seen]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "logging",
    [
        Logging(accelerations="central"),
        Logging(World(contact={"solref": "0.04 1"}, radius=0.02, step_s=0.002, integrator="implicitfast"), "none"),
        Logging(World(after=True, step_s=0.002), "backward", late=1),
    ],
)
def test_a_clean_walk_of_somebody_else_has_intervals_that_hold(logging: Logging) -> None:
    made = walk(quadruped(), seed=7, logging=logging)
    clean = {name: column for name, column in made.columns.items() if not name.startswith("imu")}
    run = identify(wrong(), clean, Settings(feet=QUADRUPED_FEET, split=0.65))
    assert share_held(run, made.truth, 0.01) > 0.9
    assert mass_of(run) == pytest.approx(2.5, rel=0.005)


@pytest.mark.slow
def test_a_humanoid_squats_on_flat_feet() -> None:
    made = stand(seed=0, torque_noise=0.5, motion_noise=1.0)
    described = described_wrong(humanoid("viscous,coulomb,offset,armature"))
    run = identify(described, made.columns, Settings(flat_feet=HUMANOID_FEET, split=0.65))
    assert run.rows.feet == tuple(f"{name}:flat" for name in HUMANOID_FEET)
    assert run.validation is not None
    assert run.validation.relative_error < 0.05
    assert run.consistency.feasible
    assert share_held(run, made.truth, 0.5) > 0.9
    assert mass_of(run) == pytest.approx(float(made.truth.parameters.inertials[:, 0].sum()), rel=0.05)
