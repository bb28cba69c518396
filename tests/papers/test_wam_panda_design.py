"""Motions designed for the robots of Sousa and Cortesao 2014 and of Gaz and others 2019, against the published ones."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.excitation.excitation_result import base_regressor
from dynid.excitation.limits import limits_of, margins_of
from dynid.excitation.search import search_excitation
from dynid.excitation.shapes import FourierShape, random_fourier
from dynid.excitation.trajectories import FourierTrajectory
from dynid.io.robots.read import DEFAULT_EFFECTS
from dynid.regression.base import reduce_to_base
from published import gaz_bodies, published_robot, tables


def spread(robot, base, motion):
    """``sqrt(trace((W^T W)^-1))``: standard error of all base parameters together per unit of torque noise."""
    singular = np.linalg.svd(base_regressor(robot, base, motion), compute_uv=False)
    return float(np.sqrt((1.0 / singular**2).sum()))


@pytest.fixture(scope="module")
def wam():
    return published_robot("wam7", DEFAULT_EFFECTS)


@pytest.fixture(scope="module")
def random_spread(wam):
    base = reduce_to_base(wam)
    motions = [random_fourier(wam, 20.0, 5, seed=seed, fraction=1.0) for seed in range(20)]
    return float(np.median([spread(wam, base, motion) for motion in motions]))


def published():
    motion = tables("sousa2014")["motion"]
    table = np.array(motion["table_5"])
    return FourierTrajectory(motion["period_s"], table[:, :5], table[:, 5:10], table[:, 10])


def test_published_wam_motion(wam, random_spread):
    """Condition number 96.7 from the printed decimals, its own envelope as limits, 1.9 times better than random motion."""
    base = reduce_to_base(wam)
    assert np.linalg.cond(base_regressor(wam, base, published())) == pytest.approx(96.7, abs=0.3)
    assert 0.0 <= margins_of(wam, published(), limits_of(wam), 4000).smallest < 0.01  # limits have three digits
    assert random_spread / spread(wam, base, published()) == pytest.approx(1.9, abs=0.05)


@pytest.mark.slow
def test_wam_within_a_quarter_of_the_time(wam):
    """Four starts already come below two thirds of the published condition number, with every margin kept."""
    found = search_excitation(wam, None, FourierShape(20.0, 5), starts=4, seconds=60.0, rest=True, limits=limits_of(wam))
    assert found.base.n_base == 69
    assert found.condition_number < 64.0
    assert found.margins.smallest >= 0.0
    assert margins_of(wam, found.playable, found.limits, 40_000).smallest >= 0.0


@pytest.mark.slow
def test_wam_at_most_58_within_a_minute(wam):
    found = search_excitation(wam, None, FourierShape(20.0, 5), seconds=60.0, limits=limits_of(wam), rest=False)
    assert found.seconds <= 60.0
    assert found.condition_number <= 58.0
    assert found.margins.smallest >= 0.0


@pytest.mark.slow
def test_panda_at_most_half_of_the_published_condition_number():
    panda = published_robot("panda", "viscous,coulomb,offset")
    found = search_excitation(
        panda, None, FourierShape(13.33, 5), seconds=60.0, starts=6, limits=limits_of(panda), rest=False
    )
    assert found.condition_number <= 61.0
    assert found.margins.smallest >= 0.0
    bodies = gaz_bodies(tables("gaz2019")["tables_8_9"]["p_hat"])  # with them, torque limits count
    described = panda.with_parameters(dict(zip(published_robot("panda").parameters.names, bodies.ravel(), strict=True)))
    held = search_excitation(
        described,
        None,
        FourierShape(13.33, 5),
        seconds=60.0,
        starts=4,
        limits=limits_of(described, acceleration=7.5),
        rest=False,
    )
    assert held.margins.torque >= 0.0
    assert held.condition_number <= 61.0


@pytest.mark.slow
def test_wam_motion_for_accuracy_is_twice_as_good_as_random(wam, random_spread):
    """Designed for the parameters' variances, and what that does to the errors of estimates from noisy torque."""
    base = reduce_to_base(wam)
    found = search_excitation(
        wam, base, FourierShape(20.0, 5), criterion="trace", starts=12, seconds=60.0, limits=limits_of(wam), rest=False
    )
    gain = random_spread / found.trace_of_inverse
    assert gain >= 2.0
    assert found.margins.smallest >= 0.0
    rng = np.random.default_rng(0)
    errors = {}
    middle = min(
        (random_fourier(wam, 20.0, 5, seed=seed, fraction=1.0) for seed in range(20)),
        key=lambda motion: abs(spread(wam, base, motion) - random_spread),
    )
    for name, motion in (("designed", found.trajectory), ("random", middle)):
        W = base_regressor(wam, base, motion)
        noise = rng.normal(size=(100, len(W)))
        errors[name] = np.sqrt((np.linalg.lstsq(W, noise.T, rcond=None)[0] ** 2).sum(axis=0).mean())
    assert errors["random"] / errors["designed"] == pytest.approx(gain, rel=0.15)
