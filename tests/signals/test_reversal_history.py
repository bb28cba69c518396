"""Distance since the last reversal: what friction in presliding remembers."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.model.effects.dry_friction import sliding_sign
from dynid.model.effects.mathematics import ARRAYS
from dynid.signals.reversal_history import LONG, REVERSAL, Travel, with_travel
from dynid.signals.samples import Samples


def positions(seed: int = 0, n: int = 400) -> np.ndarray:
    """Two joints that move, rest with sensor noise, and reverse."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 4.0, n)
    moving = np.column_stack([np.sin(2.0 * t), np.maximum(np.sin(3.0 * t), 0.0)])
    return moving + 0.1 * REVERSAL * rng.standard_normal(moving.shape)


def test_the_sign_is_that_of_the_last_motion() -> None:
    q = positions()
    x = Travel(2).push(q)[..., 0]
    v = np.gradient(q, axis=0)
    fast = np.abs(v) > 10.0 * REVERSAL
    assert fast.mean() > 0.3
    assert (np.sign(x)[fast] == np.sign(v)[fast]).mean() > 0.99  # but for the first steps after a reversal


def test_a_joint_at_rest_keeps_its_direction_whatever_the_noise() -> None:
    q = positions()
    x = Travel(2).push(q)[..., 0]
    rest = (np.sin(3.0 * np.linspace(0.0, 4.0, len(q))) < 0.0) & (np.arange(len(q)) > 10)
    starts = np.flatnonzero(np.diff(rest.astype(int)) == 1) + 1
    assert len(starts) == 2
    for start in starts:
        part = x[start + 2 : start + 80, 1]
        assert (part < 0.0).all()  # it came to rest moving down


def test_size_is_the_distance_from_the_reversal() -> None:
    q = np.array([0.0, 0.2, 0.5, 0.5, 0.3, -0.1, -0.1 + 0.5 * REVERSAL, -0.2])[:, None]
    made = Travel(1).push(q)[:, 0]
    np.testing.assert_allclose(made[4:, 0], [-0.2, -0.6, -0.6, -0.7], atol=1e-12)
    assert (made[1:4, 0] > LONG).all()  # a log begins with a stroke of unknown length


def test_ways_since_earlier_reversals_are_whole_ways() -> None:
    q = np.array([0.0, 1.0, 0.7, 0.8, 0.75])[:, None]  # strokes: unknown, 0.3, 0.1, then 0.05
    np.testing.assert_allclose(Travel(1).push(q)[-1, 0, :3], [-0.05, 0.15, 0.45], atol=1e-12)


def test_friction_by_ways_is_that_of_dahls_equation() -> None:
    t = np.linspace(0.0, 6.0, 60_001)
    q = 0.5 * np.sin(t) + 0.004 * np.sin(9.0 * t) + 0.002 * np.sin(31.0 * t)  # reversals inside reversals
    d, f = 0.003, np.ones_like(t)
    for k, step in enumerate(np.diff(q)):  # df/dx = (1 - f sign(dx)) / d, solved over every step
        f[k + 1] = np.sign(step) - (np.sign(step) - f[k]) * np.exp(-abs(step) / d)
    made = sliding_sign(ARRAYS, Travel(1).push(q[:, None]), d)[:, 0]
    plain = sliding_sign(ARRAYS, Travel(1).push(q[:, None])[..., :1], d)[:, 0]
    later = slice(2_000, None)
    assert np.abs(made - f)[later].max() < 0.1 < 0.5 < np.abs(plain - f)[later].max()  # REVERSAL / d is 0.03


@pytest.mark.parametrize("piece", [1, 7, 64])
def test_pieces_give_what_the_whole_log_gives(piece: int) -> None:
    q = positions(1)
    travel = Travel(2)
    made = np.concatenate([travel.push(q[k : k + piece]) for k in range(0, len(q), piece)])
    np.testing.assert_array_equal(made, Travel(2).push(q))


def test_samples_carry_it_through_a_cut() -> None:
    q = positions(2)
    zero = np.zeros_like(q)
    samples = with_travel(Samples(time=np.arange(len(q)) * 0.01, position=q, velocity=zero, acceleration=zero))
    assert samples.travel is not None
    assert with_travel(samples) is samples
    np.testing.assert_array_equal(samples[100:200].travel, samples.travel[100:200])
