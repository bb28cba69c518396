"""Recursive least squares: equal to batch, flags as QR finds them, and steady where the printed form drifts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.dynamics.regressors import torque_regressor
from dynid.dynamics.simulate import exact_motion
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.recursive import MotionNoise, RecursiveLeastSquares
from dynid.estimation.online_estimate import interval_product
from dynid.estimation.result import Outcome
from dynid.io.demo import demo_robot
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.parameters import Parameters
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.channels import independent_columns
from dynid.regression.factor import build_regression, matrix_regression
from dynid.signals.samples import Samples
from messages import facts
from noisy_logs import exact_log, locked, noisy_log, short_arm

ARM = short_arm()
BASE = reduce_to_base(ARM)
TRUTH = BASE.base_values(ARM.parameters)
SIGMA = np.array([0.3, 0.6, 0.1])


def off_prior(seed: int = 0) -> Parameters:
    rng = np.random.default_rng(seed)
    return ARM.parameters.with_values(ARM.parameters.values * rng.uniform(0.8, 1.2, len(ARM.parameters)))


def waking_log() -> Samples:
    """Joints begin to move one after the other, tip last: columns wake up over time."""
    exact = exact_log(None, 5.0, 100.0, 2)
    still = [locked(exact, 2, ARM), exact]
    still.insert(0, locked(locked(exact, 2, ARM), 1, ARM))
    n = len(exact)
    arrays = {
        name: np.concatenate([getattr(part, name) for part in still]) for name in ("position", "velocity", "acceleration")
    }
    return exact_motion(ARM, Samples(np.arange(3 * n) * 0.01, **arrays))


def stacked(log: Samples) -> tuple[Array, Array]:
    W = torque_regressor(ARM, log.position, log.velocity, log.acceleration).reshape(-1, len(ARM.parameters)) @ BASE.lift
    assert log.torque is not None
    return W, log.torque.ravel()


def batch(log: Samples, identified: Array, start: Array) -> Array:
    """Least squares over a set of columns with the others held: the oracle, from the full regressor."""
    W, tau = stacked(log)
    values = start.copy()
    scale = np.linalg.norm(W[:, identified], axis=0)
    right = tau - W[:, ~identified] @ start[~identified]
    values[identified] = np.linalg.lstsq(W[:, identified] / scale, right, rcond=1e-14)[0] / scale
    return values


@pytest.mark.parametrize("block", [1, 7, 500])
def test_after_the_last_block_it_is_the_batch_solution(block: int) -> None:
    log, prior = noisy_log(waking_log(), SIGMA, seed=1), off_prior()
    online = RecursiveLeastSquares().start(ARM, BASE, prior)
    for first in range(0, len(log), block):
        found = online.update(log[first : first + block])
    assert (found.flags == 1).all()
    wanted = batch(log, found.flags == 1, BASE.base_values(prior))
    assert np.abs(found.values - wanted).max() < 1e-9 * np.abs(wanted).max()
    W, tau = stacked(log)
    assert found.residual_rms == pytest.approx(np.sqrt(np.mean((tau - W @ wanted) ** 2)), rel=1e-9)
    assert found.n_samples == online.n_samples == len(log)


def test_at_every_moment_it_is_the_batch_solution_over_the_identified_set() -> None:
    log, prior = noisy_log(waking_log(), SIGMA, seed=1), off_prior()
    start = BASE.base_values(prior)
    online = RecursiveLeastSquares().start(ARM, BASE, prior)
    ranks = []
    for first in range(0, len(log), 50):
        found = online.update(log[first : first + 50])
        known = found.flags == 1
        wanted = batch(log[: first + 50], known, start)
        assert np.abs(found.values - wanted).max() < 1e-9 * np.abs(wanted).max()
        assert np.array_equal(found.values[~known], start[~known])
        ranks.append(int(known.sum()))
    assert ranks == sorted(ranks)
    assert ranks[0] < ranks[-1] == BASE.n_base


def test_flags_are_those_of_qr_in_base_order() -> None:
    """On exact motion with a joint locked: independent columns as QR finds them, zero columns told from dependent ones."""
    for joint in range(3):
        log = locked(exact_log(), joint, ARM)
        online = RecursiveLeastSquares(threshold=1e-6).start(ARM, BASE)
        for first in range(0, len(log), 20):
            found = online.update(log[first : first + 20])
        W, _ = stacked(log)
        kept = np.zeros(BASE.n_base, dtype=bool)
        kept[independent_columns(W, np.arange(BASE.n_base), 1e-6).kept] = True
        assert np.array_equal(found.flags == 1, kept)
        zero = np.abs(W).max(axis=0) < 1e-9
        assert np.array_equal(found.flags == 0, zero)
        assert np.array_equal(found.flags == -1, ~kept & ~zero)


def test_flags_depend_on_the_order_of_the_base() -> None:
    log = locked(exact_log(), 2, ARM)
    backwards = reduce_to_base(ARM, order=tuple(reversed(ARM.parameters.names)))
    sets = []
    for base in (BASE, backwards):
        found = RecursiveLeastSquares().start(ARM, base).update(log)
        sets.append(set(found.identified))
    assert len(sets[0]) == len(sets[1])
    assert sets[0] != sets[1]


@pytest.mark.parametrize("joint", [0, 1, 2])
def test_noise_on_a_locked_joint_identifies_nothing(joint: int) -> None:
    """Noisy velocity and acceleration for 20 s: what the locked joint hides keeps its initial value, without a warning."""
    velocity_noise, acceleration_noise = 2e-3, 0.05
    arm = ARM.with_effects([Viscous(), Coulomb(), Offset(), Armature()])
    base = reduce_to_base(arm)
    prior = off_prior()
    log = locked(exact_log(None, 20.0, 200.0, 2), joint, arm)
    rng = np.random.default_rng(joint)
    assert log.torque is not None
    seen = Samples(
        log.time,
        log.position,
        log.velocity + velocity_noise * rng.normal(size=log.velocity.shape),
        log.acceleration + acceleration_noise * rng.normal(size=log.velocity.shape),
        log.torque + 0.05 * rng.normal(size=log.torque.shape),
    )
    W = torque_regressor(arm, log.position, log.velocity, log.acceleration).reshape(-1, len(arm.parameters)) @ base.lift
    visible = np.zeros(base.n_base, dtype=bool)
    visible[independent_columns(W, np.arange(base.n_base), 1e-6).kept] = True
    noise = MotionNoise(velocity=velocity_noise, acceleration=acceleration_noise)
    online = RecursiveLeastSquares(motion_noise=noise).start(arm, base, prior)
    for first in range(0, len(seen), 40):
        found = online.update(seen[first : first + 40])
    hidden = ~visible
    assert (found.flags[hidden] <= 0).all()
    assert np.array_equal(found.values[hidden], base.base_values(prior)[hidden])
    number = joint + 1
    assert {f"fv{number}", f"fc{number}"} <= {base.names[i] for i in np.flatnonzero(hidden)}
    assert (found.flags == 1).sum() >= 0.8 * visible.sum()
    # one absolute threshold lets the same noise through in time
    literal = RecursiveLeastSquares(form="literal", threshold=1e-3).start(arm, base, prior)
    for first in range(0, len(seen), 40):
        printed = literal.update(seen[first : first + 40])
    assert (printed.flags[hidden] == 1).any()


def test_the_printed_update_drifts_where_columns_wake_up() -> None:
    """What a column tells before it passes the threshold is lost to the printed update for good."""
    log, prior = noisy_log(waking_log(), SIGMA, seed=2), off_prior()
    W, tau = stacked(log)
    wanted = np.linalg.lstsq(W, tau, rcond=None)[0]
    drift = {}
    for form in ("literal", "repaired"):
        online = RecursiveLeastSquares(form=form, threshold=1e-3).start(ARM, BASE, prior)  # type: ignore[arg-type]
        for first in range(0, len(log), 2):
            found = online.update(log[first : first + 2])
        assert (found.flags == 1).all()
        drift[form] = np.abs(found.values - wanted).max() / np.abs(wanted).max()
    assert drift["repaired"] < 1e-9
    assert drift["literal"] > 1e-5


def test_the_printed_update_is_batch_when_all_is_awake_from_the_start() -> None:
    log = noisy_log(exact_log(), SIGMA, seed=3)
    online = RecursiveLeastSquares(form="literal", threshold=1e-9).start(ARM, BASE, off_prior())
    for first, last in itertools.pairwise([0, 300, 400, 450, len(log)]):
        found = online.update(log[first:last])
    W, tau = stacked(log)
    wanted = np.linalg.lstsq(W, tau, rcond=None)[0]
    assert np.abs(found.values - wanted).max() < 1e-6 * np.abs(wanted).max()
    with pytest.raises(InputError, match="the literal form keeps no triangle"):
        online.regression()


def test_standard_parameters_in_the_default_order() -> None:
    """Flags over all parameters: identified ones are the base's own columns, the rest keep their initial value."""
    log, prior = noisy_log(exact_log(), SIGMA, seed=4), off_prior()
    online = RecursiveLeastSquares(over="standard").start(ARM, BASE, prior)
    found = online.update(log)
    assert set(found.identified) == set(BASE.names)
    for name, flag in zip(found.names, found.flags, strict=True):
        if flag != 1:
            assert found[name] == prior[name]
    phi = prior.updated({name: found[name] for name in found.names})
    ordinary = estimate(build_regression(ARM, log), BASE, OrdinaryLeastSquares(), prior)
    assert np.allclose(BASE.base_values(phi), ordinary.base_values, rtol=1e-8, atol=1e-9)
    full = online.estimate()
    assert np.allclose(full.base_values, ordinary.base_values, rtol=1e-8, atol=1e-9)
    assert full.standard["m1"] == prior["m1"]


def test_bounds_clip_what_is_returned_and_not_the_state() -> None:
    log = noisy_log(exact_log(), SIGMA, seed=5)
    bounds = {"fv1": (0.0, 0.5 * ARM.parameters["fv1"])}
    clipped, free = (RecursiveLeastSquares(bounds=b).start(ARM, BASE) for b in (bounds, {}))
    for first in range(0, len(log), 50):
        one, other = clipped.update(log[first : first + 50]), free.update(log[first : first + 50])
    index = BASE.index("fv1")
    assert one.values[index] == bounds["fv1"][1]
    assert one.clipped[index]
    assert one.clipped.sum() == 1
    rest = np.arange(BASE.n_base) != index
    assert np.array_equal(one.values[rest], other.values[rest])
    found = estimate(build_regression(ARM, log), BASE, RecursiveLeastSquares(bounds=bounds))
    assert found.details["clipped"] == ("fv1",)
    assert found.base_values[index] == bounds["fv1"][1]


def test_boxes_on_parameters_become_boxes_on_base_parameters() -> None:
    """Interval arithmetic against every corner of the box."""
    rng = np.random.default_rng(0)
    K = rng.normal(size=(4, 5)) * (rng.random((4, 5)) < 0.7)
    low, high = -rng.random(5), rng.random(5)
    corners = np.array([K @ np.where(choice, high, low) for choice in itertools.product((True, False), repeat=5)])
    lowest, highest = interval_product(K, low, high)
    assert np.allclose(lowest, corners.min(axis=0))
    assert np.allclose(highest, corners.max(axis=0))
    low[1] = -np.inf
    lowest, highest = interval_product(K, low, high)
    assert np.array_equal(np.isinf(lowest) | np.isinf(highest), K[:, 1] != 0.0)


def test_what_was_seen_online_serves_other_methods() -> None:
    log = noisy_log(exact_log(), SIGMA, seed=6)
    online = RecursiveLeastSquares().start(ARM, BASE)
    with pytest.raises(InputError, match="no sample has been given yet"):
        online.regression()
    for first in range(0, len(log), 100):
        online.update(log[first : first + 100])
    ordinary = estimate(build_regression(ARM, log), BASE, OrdinaryLeastSquares(covariance="classical"))
    again = estimate(online.regression(), BASE, OrdinaryLeastSquares(covariance="classical"))
    assert np.allclose(again.base_values, ordinary.base_values, rtol=1e-9, atol=1e-10)
    assert np.allclose(again.sigma, ordinary.sigma, rtol=1e-8)
    full = online.estimate()
    assert np.allclose(full.base_values, ordinary.base_values, rtol=1e-9, atol=1e-10)
    assert np.allclose(full.sigma, ordinary.sigma, rtol=1e-8)


def test_torque_noise_weights_the_joints() -> None:
    from dynid.estimation.methods.least_squares import WeightedLeastSquares

    log = noisy_log(exact_log(), SIGMA, seed=7)
    found = RecursiveLeastSquares(sigma=tuple(SIGMA)).start(ARM, BASE).update(log)
    weighted = estimate(build_regression(ARM, log), BASE, WeightedLeastSquares(sigma=tuple(SIGMA)))
    assert np.allclose(found.values, weighted.base_values, rtol=1e-9, atol=1e-10)


def test_a_published_grouping_works_as_well() -> None:
    """A grouping that is no choice of columns: the same prediction, in its own combinations."""
    rng = np.random.default_rng(1)
    mixing = np.eye(BASE.n_base) + 0.1 * rng.normal(size=(BASE.n_base, BASE.n_base))
    mixed = BaseReduction.from_matrix(mixing @ BASE.K, BASE.parameter_names)
    assert mixed.independent is None
    log = noisy_log(exact_log(), SIGMA, seed=8)
    found = RecursiveLeastSquares().start(ARM, mixed).update(log)
    ordinary = estimate(build_regression(ARM, log), BASE, OrdinaryLeastSquares())
    assert np.allclose(found.values, mixing @ ordinary.base_values, rtol=1e-7, atol=1e-8)


def test_as_a_method_it_goes_through_the_time_blocks() -> None:
    log, prior = noisy_log(waking_log(), SIGMA, seed=9), off_prior()
    found = estimate(build_regression(ARM, log), BASE, RecursiveLeastSquares(), prior)
    assert found.outcome is Outcome.SOLVED
    assert np.allclose(found.base_values, batch(log, np.ones(BASE.n_base, dtype=bool), TRUTH), rtol=1e-9, atol=1e-10)
    hidden = estimate(build_regression(ARM, locked(exact_log(), 1, ARM)), BASE, RecursiveLeastSquares(), prior)
    assert hidden.outcome is Outcome.RANK_DEFICIENT
    assert hidden.details["flags"]["fv2"] == 0
    assert any(note.startswith("not excited, initial value kept: ") and "fv2" in note for note in hidden.notes)


def test_rows_without_a_robot_have_thresholds_of_their_own() -> None:
    log = exact_log()
    W, tau = stacked(log)
    matrix = np.column_stack([W @ BASE.K, tau])
    found = estimate(matrix_regression(ARM.parameters, ["rows"], [matrix]), BASE, RecursiveLeastSquares(), off_prior())
    assert np.allclose(found.base_values, TRUTH, rtol=1e-7, atol=1e-8)


def test_seven_joints_one_sample_at_a_time() -> None:
    arm = demo_robot()
    base = reduce_to_base(arm)
    assert base.n_base == 69
    log = exact_log(arm, 10.0, 50.0, 0)
    online = RecursiveLeastSquares().start(arm, base)
    for k in range(len(log)):
        found = online.update(log[k : k + 1])
    wanted = base.base_values(arm.parameters)
    assert np.abs(found.values - wanted).max() < 1e-9 * np.abs(wanted).max()


def test_wrong_options_are_refused_in_words() -> None:
    with pytest.raises(InputError, match=facts("-1", "threshold")):
        RecursiveLeastSquares(threshold=-1.0)
    with pytest.raises(InputError, match=facts("repaired", "literal", "printed")):
        RecursiveLeastSquares(form="printed")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=facts("m1", "2", "1", "bounds")):
        RecursiveLeastSquares(bounds={"m1": (2.0, 1.0)})
    with pytest.raises(InputError, match="unknown parameter 'm9'"):
        RecursiveLeastSquares(bounds={"m9": (0.0, 1.0)}).start(ARM, BASE)
    with pytest.raises(InputError, match=facts("2", "3", "torque")):
        RecursiveLeastSquares(sigma=(1.0, 1.0)).start(ARM, BASE)
    with pytest.raises(InputError, match=facts("2", "3", "velocity")):
        RecursiveLeastSquares(motion_noise=MotionNoise(velocity=(1.0, 1.0))).start(ARM, BASE)
    motion = exact_log()
    with pytest.raises(InputError, match="no torque"):
        RecursiveLeastSquares().start(ARM, BASE).update(
            Samples(motion.time, motion.position, motion.velocity, motion.acceleration)
        )
