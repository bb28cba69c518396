"""A run undoes the errors of sensors that it was asked for: the rest of it, its settings and its files see corrected logs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from calibrated_logs import wrong_sensors
from dynid.errors import InputError
from dynid.estimation.calibration import Calibrated
from dynid.pipeline.calibrate import calibration_notes
from dynid.pipeline.folder import save_result

PLAIN = {"friction": "linear", "cutoff_hz": 8.0, "method": "ols", "split": 0.65}
ASKED = ("zero:shoulder_pitch", "zero:upper_arm_roll", "gain:upper_arm_roll", "gain:elbow")


def test_the_rest_of_a_run_sees_corrected_logs() -> None:
    made = wrong_sensors(4, zero=True, gain=True, seconds=12.0)
    robot, log = made.robot, made.recording()
    before = dynid.identify(robot, log, dynid.Settings(**PLAIN))
    asked = dynid.identify(robot, log, dynid.Settings(**PLAIN, calibrate=ASKED))
    assert asked.validation is not None
    assert before.validation is not None
    assert asked.validation.relative_error < 0.7 * before.validation.relative_error
    assert asked.settings.calibrate == ()
    assert asked.settings.zero["shoulder_pitch"] == pytest.approx(made.zero[1], abs=0.01)
    assert asked.settings.drive_gains is not None
    assert asked.settings.drive_gains[3] == pytest.approx(1.0 / made.gain[3], abs=0.03)
    given = dynid.identify(robot, log, asked.settings)
    np.testing.assert_allclose(given.estimate.base_values, asked.estimate.base_values, rtol=1e-6, atol=1e-8)
    told = asked.summary()["calibration"]
    assert [(one["joint"], one["quantity"]) for one in told] == [(text.split(":")[1], text.split(":")[0]) for text in ASKED]
    assert all(one["lower"] < one["value"] < one["upper"] for one in told)
    assert sum("95 %" in note for note in asked.notes) >= len(ASKED)


def test_no_numbers_come_first_and_logs_in_files_are_corrected_alike(tmp_path: Path) -> None:
    made = wrong_sensors(2, zero=True, seconds=12.0)
    dynid.write_recording(made.recording(), tmp_path / "log.csv")
    robot = dynid.write_urdf(made.robot, tmp_path / "arm.urdf").path
    runs = [
        dynid.identify(robot, tmp_path / "log.csv", dynid.Settings(**PLAIN, calibrate=("zero",), stream=how))
        for how in ("off", "on")
    ]
    whole, streamed = runs
    told = [note for note in whole.notes if note.startswith("zero of")]
    assert ["has no number" in note for note in told] == [True, True, False, False]
    stored = save_result(whole, tmp_path / "run")
    assert dynid.load_result(stored).calibration == whole.calibration
    again = dynid.load_result(stored).validate(made.recording(1))
    assert again.relative_error < 0.05
    assert streamed.settings.zero == pytest.approx(whole.settings.zero, abs=1e-3)
    assert streamed.validation is not None
    assert whole.validation is not None
    assert streamed.validation.relative_error == pytest.approx(whole.validation.relative_error, rel=0.1)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"calibrate": ("bias",)}, "bias"),
        ({"calibrate": ("zero:knee",)}, "knee"),
        ({"calibrate": ("zero",), "fix_bodies": "run"}, "leave out --coefficients and --fix-bodies"),
        ({"calibrate": ("zero",), "rows": "energy"}, "needs --rows torque"),
        ({"calibrate": ("offset",), "effects": ("viscous",)}, "add it to --effects"),
    ],
)
def test_what_cannot_be_sought_is_refused(settings: dict[str, object], match: str) -> None:
    made = wrong_sensors(0)
    with pytest.raises(InputError, match=match):
        dynid.identify(made.robot, made.recording(), dynid.Settings(**{"cutoff_hz": 8.0, "method": "ols", **settings}))


def test_current_beside_torque_is_refused() -> None:
    log = wrong_sensors(0).recording()
    both = log.with_(current=log.torque)
    with pytest.raises(InputError, match="current beside torque"):
        dynid.identify(wrong_sensors(0).robot, both, dynid.Settings(**PLAIN, calibrate=("gain:elbow",)))


def test_what_temperature_adds_is_taken_off_the_torque() -> None:
    log = wrong_sensors(3, seconds=12.0)
    recording = log.recording()
    warmer = recording.with_(
        torque=np.asarray(recording.torque) + 0.8 * 3.0 * recording.time[:, None] / 60.0 * recording.velocity
    )
    asked = ("temperature:shoulder_yaw", "temperature:elbow")
    run = dynid.identify(log.robot, warmer, dynid.Settings(**PLAIN, calibrate=asked))
    before = dynid.identify(log.robot, warmer, dynid.Settings(**PLAIN))
    assert run.calibration is not None
    for one in run.calibration:
        assert one.undone
        assert one.value == pytest.approx(3.0, rel=0.5)
    assert run.validation is not None
    assert before.validation is not None
    assert run.validation.relative_error < before.validation.relative_error


def test_that_encoders_must_be_at_the_motors_is_said_first() -> None:
    found = [
        Calibrated("elbow", "compliance", 1e-4, 5e-5, 2e-4, undone=True),
        Calibrated("wrist", "backlash", reason="none"),
    ]
    first, *rest = calibration_notes(found)
    assert "measured at the links neither is seen" in first
    assert ["has no number" in note for note in rest] == [True, False]
    assert calibration_notes([Calibrated("elbow", "gain", 1.0, 0.9, 1.1)])[0].startswith("gain of elbow")
