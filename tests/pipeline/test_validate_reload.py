"""A loaded run with its logs read again, and one whose logs are gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

import dynid
from dynid.pipeline.folder import save_result
from dynid.pipeline.validate import with_logs

ARM = dynid.demo_robot(effects=[dynid.Viscous()])
SETTINGS = dynid.Settings(method="wls", cutoff_hz=8.0, signal_band_hz=20.0, velocity="logged", effects=("viscous",))


def test_samples_and_errors_come_back_and_the_notes_stay(tmp_path: Path) -> None:
    dynid.write_urdf(ARM, tmp_path / "arm.urdf")
    dynid.write_recording(dynid.demo_recording(ARM, seconds=8.0, torque_noise=0.05), tmp_path / "log.csv")
    run = dynid.identify(tmp_path / "arm.urdf", tmp_path / "log.csv", replace(SETTINGS, split=0.65))
    stored = dynid.load_result(save_result(run, tmp_path / "run"))
    assert stored.data is None
    again = with_logs(stored)
    assert again.notes == run.notes
    assert again.identification is not None
    assert run.identification is not None
    np.testing.assert_allclose(again.identification.rmse, run.identification.rmse, rtol=1e-6)
    for found, expected in zip((*again.samples, *again.unseen), (*run.samples, *run.unseen), strict=True):
        np.testing.assert_array_equal(found.torque, expected.torque)
    (tmp_path / "log.csv").unlink()
    assert with_logs(stored) is stored
