"""What logs decide before an estimate: bands of a motion, nothing of poses, and no advice where a log was misread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.engine import silent
from dynid.errors import InputError
from dynid.finding import DataCheck, Finding
from dynid.io.logs.paths import log_paths
from dynid.pipeline.choices import Choices, choose_filter, choose_model, correct_sensors, find_advice
from dynid.pipeline.data import check_data, read_data
from dynid.pipeline.estimate_rows import estimate_logs
from dynid.pipeline.log import Data, Logs
from dynid.signals.recording import StaticRecording

ARM = dynid.demo_robot(effects=[dynid.Viscous()])
SETTINGS = dynid.Settings(method="wls", cutoff_hz=8.0, signal_band_hz=20.0, velocity="logged", effects=("viscous",))


def of_motion(settings: dynid.Settings = SETTINGS) -> Choices:
    recording = dynid.demo_recording(ARM, seconds=8.0)
    return Choices(*check_data(read_data(ARM, log_paths(recording), settings, ()), settings))


def of_poses(settings: dynid.Settings = SETTINGS) -> Choices:
    n = ARM.n_dof
    poses = StaticRecording(np.zeros((1, n)), ARM.joint_names, gravity=np.zeros((1, n)))
    logs = Logs(ARM.with_effects(()), (), ("poses.csv",), ("",), poses=poses)
    return Choices(Data(logs, logs), settings, ())


def test_a_motion_has_a_filter_then_samples_and_rows_in_its_band() -> None:
    found = choose_model(correct_sensors(choose_filter(of_motion(), silent), silent), silent)
    assert found.filter is not None
    assert found.filter.row_band_hz == found.plan.band_hz == 8.0
    assert found.plan.kind == "torque"
    assert found.data.known.windows[0].torque is not None


def test_poses_have_no_filter_and_cannot_be_searched() -> None:
    found = choose_model(choose_filter(of_poses(), silent), silent)
    assert (found.filter, found.plan.kind, found.data.known.windows) == (None, "static", ())
    with pytest.raises(InputError, match="need logs of motion"):
        correct_sensors(of_poses(replace(SETTINGS, torque_delay="auto")), silent)


def test_a_log_that_was_misread_gets_no_advice() -> None:
    found = choose_model(choose_filter(of_motion(), silent), silent)
    _, regression, _, told = estimate_logs(found.plan, found.data.known, found.friction, SETTINGS)
    assert told == ()
    wrong = DataCheck((Finding("error", "the unit of torque is another one"),), {})
    assert find_advice(replace(found, checks=(wrong,)), regression) == ()
