"""Energy rows: intervals by time and by knots, across pieces, gaps and logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.regression.base import reduce_to_base
from dynid.regression.energy_rows import EnergyRows, chosen_interval_s, energy_matrix, energy_regression
from dynid.regression.factor import factorise
from problems import random_tree

ALL_EFFECTS = (Viscous(), Coulomb(), Offset(), Armature())


class Pieces:
    """A stream of samples in pieces of one size."""

    def __init__(self, samples, size):
        self.samples, self.size = samples, size

    def __iter__(self):
        return (self.samples[k : k + self.size] for k in range(0, len(self.samples), self.size))


def gathered(source):
    return np.vstack([chunk.blocks[0] for chunk in source.passes()])


@pytest.fixture(scope="module")
def robot():
    return random_tree(28, 3, effects=ALL_EFFECTS)


@pytest.fixture
def samples(robot, sampled):
    return sampled(robot, n=801, rate_hz=400.0)


def test_intervals_follow_one_another(robot, samples):
    rows = gathered(EnergyRows(robot, (samples,), interval_s=0.1))
    ends = np.arange(0, 801, 40)
    np.testing.assert_allclose(rows, energy_matrix(robot, samples, np.column_stack([ends[:-1], ends[1:]])), atol=1e-9)


def test_a_period_that_does_not_divide_the_interval_drifts_by_no_more_than_half_a_sample(robot, samples):
    source = EnergyRows(robot, (samples,), interval_s=0.0337)
    times = np.concatenate([chunk.time for chunk in source.passes()])
    expected = samples.time[0] + 0.0337 * (np.arange(len(times)) + 0.5)
    assert np.abs(times - expected).max() <= 1.01 * 0.5 / 400.0
    assert len(times) == int(2.0 / 0.0337)


@pytest.mark.parametrize("size", [1, 7, 100, 400])
def test_pieces_do_not_change_the_rows(robot, samples, size):
    whole = gathered(EnergyRows(robot, (samples,), interval_s=0.05))
    cut = gathered(EnergyRows(robot, (Pieces(samples, size),), interval_s=0.05))
    np.testing.assert_allclose(cut, whole, rtol=0, atol=1e-9 * np.abs(whole).max())


def test_knots_choose_the_intervals(robot, samples):
    knots = tuple(samples.time[[10, 90, 400, 790]])
    rows = gathered(EnergyRows(robot, (samples,), knots_s=knots))
    np.testing.assert_allclose(rows, energy_matrix(robot, samples, [[10, 90], [90, 400], [400, 790]]), atol=1e-9)
    assert not EnergyRows(robot, (samples,), knots_s=knots).timed


def test_no_interval_spans_a_gap(robot, samples):
    late = replace(samples, time=np.where(np.arange(801) < 300, samples.time, samples.time + 3.0))
    rows = gathered(EnergyRows(robot, (late,), interval_s=0.1))
    first, second = (gathered(EnergyRows(robot, (part,), interval_s=0.1)) for part in (samples[:300], samples[300:]))
    np.testing.assert_allclose(rows, np.vstack([first, second]), atol=1e-9)


def test_logs_are_stacked_without_a_jump(robot, samples, sampled):
    other = sampled(robot, n=500, rate_hz=400.0, seed=9)
    both = EnergyRows(robot, (samples, other), interval_s=0.1)
    apart = [gathered(log) for log in both.by_log()]
    np.testing.assert_allclose(gathered(both), np.vstack(apart), atol=1e-12)


def test_base_values_come_back_with_their_uncertainty(sampled):
    robot = random_tree(24, 3, effects=ALL_EFFECTS)
    logs = [sampled(robot, n=8001, rate_hz=2000.0, seed=s) for s in range(3)]
    base = reduce_to_base(robot)
    found = estimate(energy_regression(robot, logs), base, OrdinaryLeastSquares())
    truth = base.base_values(robot.parameters)
    np.testing.assert_allclose(found.base_values, truth, rtol=0, atol=2e-3 * np.abs(truth).max())
    assert found.details["covariance"] == "corrected"
    assert found.rank == base.n_base


def test_effects_can_be_changed(robot, samples):
    source = EnergyRows(robot, (samples,), interval_s=0.1)
    rigid = replace(source, robot=robot.with_effects(()))
    assert len(rigid.parameters) == 30
    np.testing.assert_allclose(gathered(rigid)[:, :-1], gathered(source)[:, :30], atol=1e-12)


def test_chosen_intervals_are_ten_per_parameter_and_ten_samples_long():
    assert chosen_interval_s(30, [100.0], [0.001]) == pytest.approx(100.0 / 300.0)
    assert chosen_interval_s(30, [1.0, 2.0], [0.004, 0.01]) == pytest.approx(0.1)


def test_typical_rows_have_the_size_of_rows(robot, samples):
    source = EnergyRows(robot, (samples,), interval_s=0.1)
    (typical,) = source.typical_rows()
    rows = gathered(source)[:, :-1]
    ratio = np.sqrt((typical**2).mean(axis=0)) / np.maximum(np.sqrt((rows**2).mean(axis=0)), 1e-12)
    assert np.median(ratio[ratio < 1e6]) < 100.0
    assert typical.shape[1] == len(robot.parameters)


def test_wrong_requests_are_refused(robot, samples):
    for options in ({}, {"interval_s": 0.1, "knots_s": (0.0, 1.0)}):
        with pytest.raises(InputError, match="either the length"):
            EnergyRows(robot, (samples,), **options)
    with pytest.raises(InputError, match="interval of the energy rows is -1"):
        EnergyRows(robot, (samples,), interval_s=-1.0)
    with pytest.raises(InputError, match="1 knots, expected at least 2 rising"):
        EnergyRows(robot, (samples,), knots_s=(1.0,))
    with pytest.raises(InputError, match="no interval of 7 s"):
        factorise(EnergyRows(robot, (samples,), interval_s=7.0))
    with pytest.raises(InputError, match="at least one set of samples"):
        EnergyRows(robot, (), interval_s=1.0)
