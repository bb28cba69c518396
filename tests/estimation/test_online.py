"""One online estimator: batch least squares at every moment, weights that settle, memories, the same digits after a restart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import WeightedLeastSquares
from dynid.estimation.online import OnlineEstimator, online_body
from dynid.estimation.online_estimate import Columns, OnlineEstimate, RowNoise
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import torque_channels
from dynid.regression.factor import factorise
from dynid.regression.row_source import Chunk
from dynid.regression.torque_rows import TorqueRows, typical_torque_rows
from noisy_logs import exact_log, locked, noisy_log, short_arm

ARM = short_arm()
BASE = reduce_to_base(ARM)
SIGMA = np.array([0.3, 0.6, 0.1])
CHANNELS = torque_channels(ARM)
COLUMNS = Columns.of(ARM.parameters, BASE)
MAPS = [COLUMNS.select(channel.expansion) for channel in CHANNELS]
LOG = noisy_log(exact_log(), SIGMA, seed=1)
PERIOD_S = float(LOG.time[1] - LOG.time[0])


def chunks(step: int, log: Any = LOG) -> list[Chunk]:
    """The rows of a log, so many times a chunk."""
    return [
        Chunk([np.array(block[k : k + step]) for block in chunk.blocks], np.asarray(chunk.time)[k : k + step])
        for chunk in TorqueRows(ARM, (log,)).passes()
        for k in range(0, len(chunk), step)
    ]


def estimator(**options: Any) -> OnlineEstimator:
    return OnlineEstimator(COLUMNS, MAPS, typical=typical_torque_rows(ARM), **options)


def fed(online: OnlineEstimator, step: int = 7, log: Any = LOG) -> OnlineEstimator:
    for chunk in chunks(step, log):
        online.feed(chunk)
    return online


def stacked(weights: Array, rows: slice = slice(None), fade: Array | float = 1.0) -> Array:
    """``[Y y]`` of all joints over the identified columns."""
    (chunk,) = chunks(len(LOG))
    return np.vstack(
        [
            w * np.column_stack([block[rows, :-1] @ one, block[rows, -1]]) * np.reshape(fade, (-1, 1))
            for w, block, one in zip(weights, chunk.blocks, MAPS, strict=True)
        ]
    )


def least_squares(rows: Array) -> Array:
    size = np.linalg.norm(rows[:, :-1], axis=0)
    return np.linalg.lstsq(rows[:, :-1] / size, rows[:, -1], rcond=None)[0] / size


def close(found: OnlineEstimate, wanted: Array, share: float = 1e-9) -> None:
    assert (found.flags == 1).all()
    assert np.abs(found.values - wanted).max() < share * np.abs(wanted).max()


def test_one_triangle_and_one_for_each_channel_are_batch_least_squares() -> None:
    wanted = least_squares(stacked(1.0 / SIGMA))
    one, each = (fed(estimator(weights=1.0 / SIGMA, by_channel=own)).answer(RowNoise(1.0)) for own in (False, True))
    close(one, wanted)
    close(each, wanted)
    assert one.n_samples == each.n_samples == len(LOG)
    left = stacked(1.0 / SIGMA) @ np.append(-wanted, 1.0)
    assert one.residual_rms == pytest.approx(np.sqrt(np.mean(left**2)), rel=1e-9)
    assert each.residual == pytest.approx(SIGMA * np.sqrt(np.mean(left.reshape(3, -1) ** 2, axis=1)), rel=1e-9)
    assert each.measured == pytest.approx(np.sqrt((np.asarray(LOG.torque) ** 2).mean(axis=0)), rel=1e-9)


def test_digits_do_not_depend_on_how_rows_arrive() -> None:
    found = [fed(estimator(by_channel=True, settle=True), step).answer(RowNoise(2.0)) for step in (1, 7, len(LOG))]
    for one in found[1:]:
        assert np.array_equal(one.values, found[0].values)
        assert one.sigma is not None
        assert np.array_equal(one.sigma, np.asarray(found[0].sigma))


def test_weights_settle_where_iterated_weighted_least_squares_does() -> None:
    method = WeightedLeastSquares(settle=1e-12, iterations=50, covariance="classical")
    wanted = estimate(factorise(TorqueRows(ARM, (LOG,))), BASE, method)
    online = estimator(by_channel=True, settle=True)
    for k, chunk in enumerate(chunks(7)):
        online.feed(chunk)
        if k % 10 == 9:
            online.answer()  # each answer starts from the one before
    close(online.answer(), wanted.base_values)
    ratio = online.weights * np.asarray(wanted.residual_rms)
    assert ratio == pytest.approx(ratio[0], rel=0.01)


def test_standard_deviations_are_the_spread_of_the_values() -> None:
    scores = []
    truth = BASE.base_values(ARM.parameters)
    for seed in range(12):
        log = noisy_log(exact_log(), SIGMA, seed=seed)
        for options in ({"by_channel": True, "settle": True}, {"weights": 1.0 / SIGMA}):
            found = fed(estimator(**options), 50, log).answer(RowNoise(1.0))
            scores.append((found.values - truth) / found.sigma)
    assert 0.85 < float(np.sqrt(np.mean(np.square(scores)))) < 1.15


def test_rows_that_count_as_one_and_learned_noise_widen_sigma() -> None:
    online = fed(estimator(by_channel=True, settle=True))
    plain, shared = (np.asarray(online.answer(RowNoise(rows)).sigma) for rows in (1.0, 9.0))
    free = BASE.n_base / 3.0  # values that each joint's rows leave
    assert shared == pytest.approx(plain * np.sqrt((len(LOG) - free) / (len(LOG) / 9.0 - free)), rel=1e-9)
    learned = np.asarray(online.answer(RowNoise(1.0, np.array([np.nan, 10.0 * SIGMA[1], np.nan]))).sigma)
    assert (learned >= plain * (1.0 - 1e-9)).all()
    assert learned.max() > plain.max()


def test_a_window_has_the_newest_rows_and_forgetting_weighs_them() -> None:
    part = len(LOG) // 15
    window = fed(estimator(by_channel=True, window_s=10 * part * PERIOD_S, row_period_s=PERIOD_S))
    held = round(window.answer().n_samples)
    assert 9 * part < held <= 10 * part
    close(window.answer(), least_squares(stacked(np.ones(3), slice(len(LOG) - held, None))))
    forget = fed(estimator(by_channel=True, forget_s=2.0, row_period_s=PERIOD_S))
    age = np.arange(len(LOG))[::-1] * PERIOD_S
    close(forget.answer(), least_squares(stacked(np.ones(3), fade=np.exp(-age / 4.0))), 1e-8)
    assert forget.answer().n_samples == pytest.approx(np.exp(-age / 2.0).sum(), rel=1e-9)


def test_known_values_are_subtracted_first() -> None:
    known = [channel.expansion @ ARM.parameters.values for channel in CHANNELS]
    plain = fed(estimator(by_channel=True)).answer()
    change = fed(estimator(by_channel=True, known=known)).answer()
    assert np.allclose(change.values + BASE.base_values(ARM.parameters), plain.values, rtol=1e-8, atol=1e-8)


def test_flags_and_origins_of_a_joint_at_rest() -> None:
    log = noisy_log(locked(exact_log(), 1, ARM), SIGMA, seed=2)
    found = fed(estimator(weights=1.0 / SIGMA), 7, log).answer(RowNoise(1.0), origins=True)
    flags = dict(zip(found.names, found.flags.tolist(), strict=True))
    assert flags["fv2"] == 0
    assert -1 in flags.values()
    for name, flag, origin, sigma in zip(found.names, found.flags, found.origin, np.asarray(found.sigma), strict=True):
        assert (origin == "prior") == (flag != 1), name
        assert np.isfinite(sigma) == (flag == 1)
    assert "mixed" in found.origin
    assert found.as_dict()["sigma"]["fv2"] is None


def test_a_copy_answers_for_its_time_while_rows_go_on() -> None:
    online, early = estimator(by_channel=True, settle=True), estimator(by_channel=True, settle=True)
    parts = chunks(7)
    for chunk in parts[:40]:
        online.feed(chunk)
        early.feed(chunk)
    copy = online.triangles().copy()
    for chunk in parts[40:]:
        online.feed(chunk)
    assert np.array_equal(online.answer(RowNoise(1.0), copy).values, early.answer(RowNoise(1.0)).values)


@pytest.mark.parametrize("memory", [{}, {"window_s": 50 * PERIOD_S}, {"forget_s": 1.0}])
def test_goes_on_with_the_same_digits(memory: dict[str, float]) -> None:
    options: dict[str, Any] = {"by_channel": True, "settle": True, "row_period_s": PERIOD_S, **memory}
    whole, online = estimator(**options), estimator(**options)
    for k, chunk in enumerate(chunks(7)):
        whole.feed(chunk)
        online.feed(chunk)
        if k % 20 == 19:
            first, second = whole.answer(RowNoise(1.0)), online.answer(RowNoise(1.0))
            assert np.array_equal(first.values, second.values)
            stored, online = online.state() | online.answer_state(), estimator(**options)
            online.restore(stored)


def test_before_the_first_row_nothing_is_known() -> None:
    found = estimator(by_channel=True, settle=True).answer()
    assert np.array_equal(found.values, COLUMNS.initial)
    assert not found.flags.any()
    assert np.isinf(np.asarray(found.sigma)).all()


def test_wrong_rows_and_weights_are_refused() -> None:
    with pytest.raises(InputError, match="rows of 2 channels were given, expected 3"):
        estimator().feed(Chunk(chunks(5)[0].blocks[:2]))
    with pytest.raises(InputError, match="positive"):
        online_body(ARM.parameters, np.array([1.0, -1.0, 1.0]))
