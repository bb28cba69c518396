"""Noise that neighbouring rows share: the classical covariance is too small, blocks of time tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import dynid
from dynid.estimation.block_scatter import widen_by_blocks


def spread(held: int) -> float:
    """Factor on the classical sigma for noise that stays the same for so many samples."""
    robot = dynid.demo_robot(effects="none")
    samples = dynid.demo_samples(robot)
    assert samples.torque is not None
    fresh = np.random.default_rng(0).normal(size=(len(samples) // held + 1, samples.torque.shape[1]))
    noisy = replace(samples, torque=samples.torque + np.repeat(fresh, held, axis=0)[: len(samples)])
    rows = dynid.TorqueRows(robot, (noisy,))
    method = dynid.OrdinaryLeastSquares(covariance="classical")
    found = dynid.estimate(dynid.factorise(rows), dynid.reduce_to_base(robot), method)
    wide, notes = widen_by_blocks(found, rows, [noisy])
    wider = float(np.median(wide.sigma / found.sigma))
    assert bool(notes) == (wider > 1.025)
    return wider


def test_shared_noise_widens_intervals_and_fresh_noise_hardly() -> None:
    assert 1.0 <= spread(1) < 1.15
    assert 1.5 < spread(8) < np.sqrt(8.0)
