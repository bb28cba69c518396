"""A wrench of the opposite sign is named and mended by --flip; a body that no tool can be is not to be used."""

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.errors import InputError
from dynid.model.frames import ProperAcceleration
from dynid.pipeline.data import read_sensor_logs
from dynid.pipeline.wrench import identify_sensor_body, judge_body
from dynid.signals.recording import WrenchRecording

BALL = np.array([1.2, 0.0, 0.0, 0.06, 0.006, 0.0, 0.006, 0.0, 0.0, 0.002])


def recording(sign: float) -> WrenchRecording:
    """A body moved in every direction, with noise; ``sign`` is the convention of the sensor."""
    rng = np.random.default_rng(0)
    t, (w, b, turn) = np.arange(400) / 100.0, rng.normal(size=(3, 400, 3))
    b += np.array([0.0, 0.0, 9.81])
    Y = dynid.body_regressor(ProperAcceleration(b, turn), np.hstack([0 * w, w]))
    wrench = sign * (Y @ BALL) + 0.01 * rng.normal(size=(400, 6))
    return WrenchRecording(t, wrench, angular_velocity=w, linear_acceleration=b, angular_acceleration=turn)


def test_the_usual_sign_is_not_doubted():
    found = identify_sensor_body(recording(1.0), filtered="none")
    assert not [one for one in found.findings if one.code in ("opposite_sign", "implausible_body")]
    assert found.best.mass == pytest.approx(1.2, abs=0.01)


def test_the_opposite_sign_is_refused_with_the_option_that_turns_it():
    with pytest.raises(InputError, match=r"opposite sign .* give --flip"):
        identify_sensor_body(recording(-1.0), filtered="none")


def test_a_body_that_weighs_less_than_nothing_is_not_to_be_used():
    """A few poses that lean little show no axes, but their weight is negative."""
    rng = np.random.default_rng(1)
    lean = np.repeat(rng.uniform(-0.05, 0.05, (6, 2)), 20, axis=0)
    b = 9.81 * np.column_stack([lean, np.sqrt(1.0 - (lean**2).sum(axis=1))])
    still = np.zeros_like(b)
    Y = dynid.body_regressor(ProperAcceleration(b, still), np.hstack([still, still]))
    wrench = -(Y @ BALL) + 0.1 * rng.normal(size=(len(b), 6))
    log = WrenchRecording(
        np.arange(len(b)) / 10.0, wrench, angular_velocity=still, linear_acceleration=b, angular_acceleration=still
    )
    found = identify_sensor_body(log, filtered="none", static=True)
    (finding,) = [one for one in found.findings if one.code == "opposite_sign"]
    assert "weighs -1." in finding.what
    assert "--flip" in finding.remedy
    assert judge_body(found, found.relative_error, "known").grade == "do not use"


def test_a_body_that_leaves_half_of_the_wrench_unexplained_is_not_to_be_used():
    """As where the sensor sits in another link than the one that was named."""
    found = identify_sensor_body(recording(1.0), filtered="none")
    assert [judge_body(found, error, "unseen").grade for error in (0.01, 0.2, 0.51)] == ["good", "usable", "do not use"]


def test_flip_turns_the_sign(tmp_path):
    log = recording(-1.0)
    columns = {"t": log.time, "wx wy wz": log.angular_velocity, "ax ay az": log.linear_acceleration}
    columns |= {"fx fy fz": log.wrench[:, :3], "tx ty tz": log.wrench[:, 3:]}
    names = ["t", *(name for key in list(columns)[1:] for name in key.split())]
    table = np.column_stack(list(columns.values()))
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=",".join(names), comments="")
    flipped = dynid.identify(None, tmp_path / "log.csv", dynid.Settings(filter="none", flip=True))
    assert flipped.body.best.mass == pytest.approx(1.2, abs=0.05)
    assert flipped.verdict.grade != "do not use"
    assert dynid.load_result(flipped.save(tmp_path / "run", formats=["json"])).settings.flip
    with pytest.raises(InputError, match="--flip"):
        dynid.identify(None, tmp_path / "log.csv", replace(flipped.settings, flip=False))


def test_a_table_of_poses_needs_no_angular_velocity(tmp_path):
    """One row for each pose, a second apart: weight and its moment alone, and no row is lost."""
    rng = np.random.default_rng(0)
    b = rng.normal(size=(12, 3))
    b *= 9.81 / np.linalg.norm(b, axis=1)[:, None]  # what an accelerometer reads at rest
    mass, com = 1.5, np.array([0.01, 0.02, 0.08])
    force = mass * b
    rows = np.column_stack([np.arange(12.0), b, force, np.cross(com, force)])
    path = tmp_path / "poses.csv"
    np.savetxt(path, rows, delimiter=",", header="t,ax,ay,az,fx,fy,fz,tx,ty,tz", comments="")
    (log,) = read_sensor_logs([path], None)
    assert log.time[-1] == 11.0
    assert any("is read as s" in note for note in log.source.notes)
    run = dynid.identify(None, path, dynid.Settings(static=True, split=0.65))
    assert run.judged_error < 1e-6
    again = dynid.load_result(run.save(tmp_path / "run", formats=["json"]), with_samples=True)
    assert len(again.body.samples) == 1
    found = identify_sensor_body(log, static=True)
    assert found.best.mass == pytest.approx(mass, rel=1e-6)
    np.testing.assert_allclose(found.best.com, com, atol=1e-6)
    assert len(found.samples[0]) == 12
    assert "Ixx" in found.best.unknown
    with pytest.raises(InputError, match="--static"):
        identify_sensor_body(log)
