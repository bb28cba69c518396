"""Logs of floating robots: contact with its margins, parts in time, forces as torque."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from dynid.errors import InputError
from dynid.pipeline.data import read_options
from dynid.pipeline.floating_log import FloatingFile, FloatingLog, FloatingSetup, read_floating_log
from dynid.pipeline.options import Settings
from dynid.pipeline.signal_filter import Filter
from dynid.signals.samples import Samples
from legged_robots import QUADRUPED_FEET
from legged_simulation import quadruped, walk

SETTINGS = Settings(feet=QUADRUPED_FEET)


def read(folder: Path, settings: Settings = SETTINGS) -> tuple[FloatingSetup, FloatingLog]:
    path = folder / "walk.parquet"
    parquet.write_table(pa.table(walk(quadruped(), 2.5).columns), path)
    setup = FloatingSetup.of(quadruped(), settings)
    return setup, read_floating_log(path, setup, settings, read_options(settings))


def test_contact_begins_before_its_flag_and_ends_after_it(tmp_path: Path) -> None:
    _, log = read(tmp_path)
    time = log.base.time
    for margin_s, reach in ((0.0, 0), (0.03, 3)):
        wide = np.array([log.contact[max(0, k - reach) : k + reach + 1].max(axis=0) for k in range(len(time))])
        np.testing.assert_array_equal(log.touches(time, margin_s), wide)


def test_parts_hold_the_same_rows_of_joints_and_base(tmp_path: Path) -> None:
    _, log = read(tmp_path)
    first, rest = log.split(0.6)
    assert first.joints.n_samples + rest.joints.n_samples == log.joints.n_samples
    for part in (first, rest, log.between(0.5, 1.5)):
        np.testing.assert_array_equal(part.joints.time, part.base.time)
        assert len(part.contact) == part.base.n_samples
    assert log.has_accelerations


def test_measured_forces_balance_the_rows_of_the_truth(tmp_path: Path) -> None:
    settings = Settings(force_frames=QUADRUPED_FEET)
    setup, log = read(tmp_path, settings)
    filtered = Filter(45.0, 12.0, 4, "logged", row_band_hz=12.0)
    samples = setup.filtered(filtered, logged=True).samples(log, filtered)
    assert samples.contact is None
    assert samples.torque is not None
    weight = 9.81 * quadruped().parameters.inertials[:, 0].sum()
    # the feet carry the robot
    assert abs(float(samples.torque[:, 2].mean()) / weight - 1.0) < 0.1


def test_rates_at_100_hz_keep_the_size_of_a_fast_motion(tmp_path: Path) -> None:
    columns = walk(quadruped(), 2.5).columns
    w, t = 2.0 * np.pi * 8.0, columns["t"]
    columns |= {"dq1": 0.1 * np.sin(w * t), "base_vz": 0.1 * np.sin(w * t)}
    parquet.write_table(pa.table({name: x for name, x in columns.items() if name[:3] != "imu"}), tmp_path / "fast.parquet")
    setup = FloatingSetup.of(quadruped(), SETTINGS)
    log = read_floating_log(tmp_path / "fast.parquet", setup, SETTINGS, read_options(SETTINGS))
    as_logged = Filter(50.0, 12.0, 0, "logged", row_band_hz=12.0)
    samples, made = setup.filtered(as_logged, logged=False).samples(log, as_logged), log.filtered_base(as_logged)
    for rate in (samples.acceleration[5:-5, 6], made.velocity[5:-5, log.columns["velocity"]][:, 2]):
        assert np.abs(rate).max() == pytest.approx(0.1 * w, rel=0.01)  # over three rows it would be 4 % less


@pytest.mark.parametrize("feet", [("FL", "FR", "HL", "HR"), ("fl_foot", "FR_F", "HL", "hr_foot")])
def test_feet_are_named_by_a_beginning_that_no_other_foot_has(feet: tuple[str, ...]) -> None:
    assert FloatingSetup.of(quadruped(), Settings(feet=feet)).plan.feet == QUADRUPED_FEET


def test_a_beginning_of_several_feet_is_refused() -> None:
    with pytest.raises(InputError, match="no frame 'F' for a foot, expected one of FL_SHOULDER"):
        FloatingSetup.of(quadruped(), Settings(feet=("F",)))


def test_flags_may_be_words_of_a_text_table(tmp_path: Path) -> None:
    setup, numbers = read(tmp_path)
    table = parquet.read_table(tmp_path / "walk.parquet").to_pandas()
    flags = [name for name in table if name.startswith("contact_")]
    table[flags] = table[flags] > 0.0
    path = tmp_path / "walk.csv"
    table.to_csv(path, index=False)
    words = read_floating_log(path, setup, SETTINGS, read_options(SETTINGS))
    np.testing.assert_array_equal(words.contact, numbers.contact)


def test_contacts_without_feet_are_refused_with_the_feet_to_give(tmp_path: Path) -> None:
    """Their forces would be taken for none: the robot would weigh nothing."""
    names = ",".join(QUADRUPED_FEET)
    with pytest.raises(
        InputError, match=f"has contacts with the ground .contact_FL, .* --feet {names} \\(points\\) or --flat-feet {names}"
    ):
        read(tmp_path, Settings(floating=True))


def test_a_log_in_its_file_gives_the_samples_of_one_in_memory(tmp_path: Path) -> None:
    columns = dict(walk(quadruped(), 45.0, seed=0, torque_noise=0.03, motion_noise=1.0).columns)
    file = tmp_path / "walk.parquet"
    parquet.write_table(pa.table(columns), file)
    settings = Settings(feet=QUADRUPED_FEET)
    setup = FloatingSetup.of(quadruped("viscous"), settings)
    held, left = (
        read_floating_log(file, setup, settings, read_options(settings), streamed=streamed) for streamed in (False, True)
    )
    assert isinstance(left, FloatingFile)
    filtered = Filter(20.0, 8.0, 4, "logged", row_band_hz=8.0)
    whole, pieces = held.samples(filtered), list(left.samples(filtered))
    assert isinstance(whole, Samples)
    assert len(pieces) > 1
    np.testing.assert_allclose(np.concatenate([one.time for one in pieces]), whole.time, atol=1e-9)
    for name in ("position", "velocity", "acceleration", "torque", "contact"):
        made = np.concatenate([getattr(one, name) for one in pieces])
        np.testing.assert_allclose(made, getattr(whole, name), atol=1e-6 * np.abs(getattr(whole, name)).max())
    first, rest = left.split(0.65)
    assert sum(map(len, first.samples(filtered))) > 1.5 * sum(map(len, rest.samples(filtered)))
