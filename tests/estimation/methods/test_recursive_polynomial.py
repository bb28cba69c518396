"""Recursive least squares on rows by polynomial approximation, all at once and while the robot moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.recursive import MotionNoise, RecursiveLeastSquares
from dynid.estimation.result import Estimate
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import independent_columns
from dynid.regression.factor import factorise
from dynid.regression.polynomial_rows import OnlinePolynomialRows, PolynomialRows
from dynid.regression.row_source import Chunk
from dynid.signals.polynomial_kernels import PolynomialApproximation
from dynid.signals.samples import Samples
from noisy_logs import exact_log, locked, noisy_log, short_arm

ARM = short_arm()
BASE = reduce_to_base(ARM)
KERNELS = PolynomialApproximation()
PERIOD_S = 0.004
LOG = noisy_log(exact_log(None, 8.0, 250.0, 2), 0.2, seed=4)
ALL = BASE.K @ ARM.parameters.values


def rows_of(log: Samples, composition: str = "product") -> PolynomialRows:
    return PolynomialRows(ARM, (log,), KERNELS, composition)


def both(log: Samples) -> tuple[Estimate, Estimate]:
    regression = factorise(rows_of(log))
    return tuple(estimate(regression, BASE, method) for method in (RecursiveLeastSquares(), OrdinaryLeastSquares()))


def wide_rows(log: Samples) -> tuple[Array, Array]:
    """``W`` over base parameters and torque of all rows."""
    source = rows_of(log)
    made = Chunk.concatenate(list(source.passes()))
    wide = [block[:, :-1] @ channel.expansion for block, channel in zip(made.blocks, source.channels, strict=True)]
    tau = np.stack([block[:, -1] for block in made.blocks], axis=1)
    return np.stack(wide, axis=1).reshape(-1, len(ARM.parameters)) @ BASE.lift, tau.ravel()


def visible(log: Samples) -> Array:
    """Which base parameters these very rows can tell, by QR of all of them in base order."""
    W, _ = wide_rows(log)
    found = np.zeros(BASE.n_base, dtype=bool)
    found[independent_columns(W, np.arange(BASE.n_base), 1e-6).kept] = True
    return found


def test_a_whole_log_gives_ordinary_least_squares_of_the_same_rows() -> None:
    recursive, ordinary = both(LOG)
    np.testing.assert_allclose(recursive.base_values, ordinary.base_values, rtol=1e-9, atol=1e-9 * np.abs(ALL).max())
    assert set(recursive.details["flags"].values()) == {1}
    np.testing.assert_allclose(recursive.covariance, ordinary.covariance, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("joint", [0, 1, 2])
def test_a_locked_joint_has_the_flags_that_its_rows_deserve(joint: int) -> None:
    log = locked(exact_log(None, 8.0, 250.0, 2), joint, ARM)
    recursive, _ = both(log)
    flags = np.array([recursive.details["flags"][name] for name in BASE.names])
    np.testing.assert_array_equal(flags == 1, visible(log))
    names = dict(zip(BASE.names, flags.tolist(), strict=True))
    number = joint + 1
    assert names[f"fv{number}"] == names[f"fc{number}"] == 0  # never moves: neither is excited
    assert names[f"fv{(joint + 1) % 3 + 1}"] == 1
    hidden = flags != 1
    np.testing.assert_allclose(recursive.base_values[hidden], ALL[hidden], rtol=1e-12)  # the initial value is kept
    # what is identified is the least-squares solution with the rest held
    stacked, right = wide_rows(log)
    seen = ~hidden
    size = np.linalg.norm(stacked[:, seen], axis=0)
    solution = np.linalg.lstsq(stacked[:, seen] / size, right - stacked[:, hidden] @ ALL[hidden], rcond=1e-14)[0] / size
    np.testing.assert_allclose(recursive.base_values[seen], solution, rtol=1e-9, atol=1e-9 * np.abs(ALL).max())


@pytest.mark.parametrize("composition", ["product", "pointwise"])
@pytest.mark.parametrize("block", [1, 40])
def test_online_rows_feed_the_online_estimator(composition: str, block: int) -> None:
    log = LOG[:600]
    online = RecursiveLeastSquares().start(ARM, BASE)
    rows = OnlinePolynomialRows(ARM, KERNELS, PERIOD_S, composition=composition)
    n = 0
    for first in range(0, len(log), block):
        made = rows.push(log.position[first : first + block], log.torque[first : first + block])
        if len(made):
            found = online.update(made)
            n += len(made)
    assert found.n_samples == n == len(log) - rows.n_dropped
    assert (found.flags == 1).all()
    batch = estimate(factorise(rows_of(log, composition)), BASE, OrdinaryLeastSquares())
    np.testing.assert_allclose(found.values, batch.base_values, rtol=1e-9, atol=1e-9 * np.abs(ALL).max())


def test_flags_wake_up_with_the_joints_online() -> None:
    still = locked(exact_log(None, 3.0, 250.0, 2), 2, ARM, position=float(LOG.position[0, 2]))
    online = RecursiveLeastSquares().start(ARM, BASE)
    place = BASE.names.index("fv3")
    rows = OnlinePolynomialRows(ARM, KERNELS, PERIOD_S)
    before = online.update(rows.push(still.position, still.torque))
    assert before.flags[place] == 0
    moving = OnlinePolynomialRows(ARM, KERNELS, PERIOD_S)
    after = online.update(moving.push(LOG.position, LOG.torque))
    assert after.flags[place] == 1
    assert (after.flags == 1).sum() > (before.flags == 1).sum()


def test_bounds_clip_the_answer_on_these_rows_too() -> None:
    bounds = {"fv1": (0.0, 0.5 * ARM.parameters["fv1"])}
    regression = factorise(rows_of(LOG))
    found = estimate(regression, BASE, RecursiveLeastSquares(bounds=bounds))
    assert found.details["clipped"] == ("fv1",)
    assert found.base_values[BASE.names.index("fv1")] == bounds["fv1"][1]


def test_motion_noise_is_of_samples() -> None:
    online = replace(RecursiveLeastSquares(), motion_noise=MotionNoise(velocity=1e-3)).start(ARM, BASE)
    rows = OnlinePolynomialRows(ARM, KERNELS, PERIOD_S)
    with pytest.raises(InputError, match="motion noise is measured on samples"):
        online.update(rows.push(LOG.position[:100], LOG.torque[:100]))
