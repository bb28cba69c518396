"""Prediction errors: one sum over pieces, whatever the pieces; partitions and logs add up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest

import dynid
from dynid.errors import InputError
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.butterworth import filter_window
from dynid.signals.samples import OwnSamples, Samples
from dynid.validation.prediction import (
    ErrorSums,
    PredictionError,
    band_limited,
    beyond_rows,
    predict,
    row_error,
    row_error_of,
    sum_errors,
    validate,
)


class Pieces:
    """Samples as a stream of pieces of some length."""

    def __init__(self, samples: Samples, rows: int) -> None:
        self.samples, self.rows = samples, rows

    def __iter__(self) -> Iterator[Samples]:
        for start in range(0, len(self.samples), self.rows):
            yield self.samples[start : start + self.rows]


def noisy(seconds: float = 12.0, gap: slice | None = None) -> Samples:
    samples = dynid.demo_samples(seconds=seconds)
    rng = np.random.default_rng(0)
    assert samples.torque is not None
    shape = samples.torque.shape
    samples = replace(
        samples, torque=samples.torque + 0.3 * rng.normal(size=shape), raw_torque=samples.torque + rng.normal(size=shape)
    )
    if gap is None:
        return samples
    return samples[np.delete(np.arange(len(samples)), np.arange(len(samples))[gap])]


def errors(samples: Samples | OwnSamples | Pieces, band_hz: float | None) -> ErrorSums:
    robot = dynid.demo_robot()
    found = sum_errors(robot, band_hz, samples)
    assert found is not None
    return found


def test_errors_are_those_of_the_residual() -> None:
    robot, samples = dynid.demo_robot(), noisy()
    found = validate(robot, robot.parameters, samples)
    residual = samples.torque - predict(robot, samples)
    assert samples.torque is not None
    assert found.relative_error == pytest.approx(np.linalg.norm(residual) / np.linalg.norm(samples.torque), rel=1e-12)
    np.testing.assert_allclose(found.rmse, np.sqrt((residual**2).mean(axis=0)), rtol=1e-12)
    assert found.total.n_samples == len(samples)


@pytest.mark.parametrize("band_hz", [None, 4.0, 48.0])
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_pieces_do_not_change_an_error(band_hz: float | None, rows: int) -> None:
    samples = noisy(6.0 if rows == 1 else 12.0, slice(250, 290))
    whole, pieces = errors(samples, band_hz).error(), errors(Pieces(samples, rows), band_hz).error()
    assert pieces.n_samples == whole.n_samples
    assert pieces.relative_error == pytest.approx(whole.relative_error, rel=1e-12)
    assert pieces.relative_error_raw == pytest.approx(whole.relative_error_raw, rel=1e-12)
    np.testing.assert_allclose(pieces.rmse, whole.rmse, rtol=1e-12)


@pytest.mark.parametrize("band_hz", [None, 4.0])
def test_partitions_add_up(band_hz: float | None) -> None:
    samples, middle = noisy(), 6.005
    spare = beyond_rows(band_hz, 0.01)
    row = int(np.searchsorted(samples.time, middle))
    parts = [
        OwnSamples(Pieces(samples[: row + spare], 130), -np.inf, middle),
        OwnSamples(Pieces(samples[row - spare :], 130), middle, np.inf),
    ]
    whole, summed = errors(samples, band_hz), reduce(add, [errors(part, band_hz) for part in parts])
    assert summed.error().n_samples == whole.error().n_samples
    np.testing.assert_allclose(summed.residual, whole.residual, rtol=1e-11)
    assert whole.motion is not None
    assert summed.motion is not None
    np.testing.assert_array_equal(summed.motion.lowest, whole.motion.lowest)
    np.testing.assert_array_equal(summed.motion.fastest, whole.motion.fastest)


def test_a_partition_without_a_row_of_its_own_has_no_error() -> None:
    robot = dynid.demo_robot()
    assert sum_errors(robot, 4.0, OwnSamples(noisy(), 100.0, 200.0)) is None


def test_band_is_the_zero_phase_filter_on_both_torques() -> None:
    robot, samples = dynid.demo_robot(), noisy()
    prediction = predict(robot, samples)
    judged, predicted = band_limited(samples, prediction, 4.0)
    assert samples.torque is not None
    inner = slice(30, len(samples) - 30)
    np.testing.assert_allclose(
        judged.torque, filter_window(samples.torque, 4, 0.08, True, True)[inner], rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(predicted, filter_window(prediction, 4, 0.08, True, True)[inner], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(judged.raw_torque, samples.raw_torque[inner])  # type: ignore[index]
    np.testing.assert_array_equal(judged.time, samples.time[inner])


def test_short_samples_and_motion_without_torque_are_refused() -> None:
    robot, samples = dynid.demo_robot(), noisy()
    with pytest.raises(InputError, match=r"samples of 0\.49 s are too short to judge torque in a band: 0\.3 s"):
        validate(robot, robot.parameters, samples[:50], 4.0)
    with pytest.raises(InputError, match="no torque"):
        validate(robot, robot.parameters, replace(samples, torque=None))
    with pytest.raises(InputError, match="at least one set"):
        validate(robot, robot.parameters, [])


def test_rows_and_their_triangle_have_one_error() -> None:
    robot, samples = dynid.demo_robot(), noisy()
    source = TorqueRows(robot, (samples,))
    rows, triangle = row_error(source, robot.parameters), row_error_of(dynid.factorise(source), robot.parameters)
    torque = validate(robot, robot.parameters, samples)
    for error in (rows, triangle):
        assert error.kind == "torque"
        assert error.channel_names == robot.dof_names
        assert error.n_samples == robot.n_dof * len(samples)
        assert error.relative_error == pytest.approx(torque.relative_error, rel=1e-9)
        np.testing.assert_allclose(error.rmse, torque.rmse, rtol=1e-9)


def test_errors_come_back_from_json() -> None:
    robot, samples = dynid.demo_robot(), noisy()
    torque = validate(robot, robot.parameters, samples).total
    rows = row_error(TorqueRows(robot, (samples,)), robot.parameters)
    assert {"relative_error_per_joint", "rmse", "n_samples"} < torque.as_dict().keys()
    assert {"relative_error_per_channel", "rms", "n_rows", "kind", "channels"} < rows.as_dict().keys()
    for error in (torque, rows):
        assert PredictionError.from_dict(error.as_dict()).as_dict() == error.as_dict()
    empty = PredictionError.from_dict({**torque.as_dict(), "relative_error": None, "rmse": [None, 1.0]})
    assert np.isnan(empty.relative_error)
    np.testing.assert_array_equal(empty.rmse, [np.nan, 1.0])
