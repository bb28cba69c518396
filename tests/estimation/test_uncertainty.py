"""Claimed uncertainty against what repeated logs do: spread, coverage, and where the classical formula fails."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation import residuals as spectrum
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import IteratedReweighted, OrdinaryLeastSquares, WeightedLeastSquares
from dynid.estimation.result import Method
from dynid.io.demo import demo_robot
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.factor import build_regression
from dynid.regression.row_filter import BandLimit, FilterAndDecimate
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples
from dynid.signals.steps.filters import Differentiate, LowPass
from messages import facts
from noisy_logs import exact_log, noisy_log, short_arm

ARM = short_arm()
BASE = reduce_to_base(ARM)
TRUTH = BASE.base_values(ARM.parameters)
SIGMA = np.array([0.3, 0.6, 0.1])
CLASSICAL = OrdinaryLeastSquares(covariance="classical")


def coverage(
    robot: Robot,
    base: BaseReduction,
    exact: Samples,
    sigma: float | Array,
    n_logs: int,
    methods: dict[str, Method],
    cutoff_nyquist: float | None,
) -> dict[str, Array]:
    """Share of logs in which the 95 % interval of each base parameter holds the truth, method by method."""
    truth = base.base_values(robot.parameters)
    hits = {name: np.zeros(base.n_base) for name in methods}
    for seed in range(n_logs):
        regression = build_regression(robot, noisy_log(exact, sigma, seed, cutoff_nyquist))
        for name, method in methods.items():
            low, high = estimate(regression, base, method).interval(0.95).T
            hits[name] += (low <= truth) & (truth <= high)
    return {name: count / n_logs for name, count in hits.items()}


def assert_covers(shares: Array) -> None:
    assert 0.90 <= shares.mean() <= 0.98
    assert shares.min() >= 0.80


@pytest.mark.parametrize("cutoff_nyquist", [None, 0.2])
def test_intervals_cover_on_white_and_on_filtered_noise(cutoff_nyquist: float | None) -> None:
    """Eighty logs of the short arm, torque noise only, every joint with its own; the slow test has two hundred."""
    methods: dict[str, Method] = {"ols": OrdinaryLeastSquares(), "wls": WeightedLeastSquares(), "classical": CLASSICAL}
    shares = coverage(ARM, BASE, exact_log(), SIGMA, 80, methods, cutoff_nyquist)
    assert_covers(shares["ols"])
    assert_covers(shares["wls"])
    if cutoff_nyquist is not None:
        assert shares["classical"].mean() < 0.75


@pytest.mark.slow
@pytest.mark.parametrize("cutoff_nyquist", [None, 0.08])
def test_intervals_cover_on_the_seven_joint_arm(cutoff_nyquist: float | None) -> None:
    arm = demo_robot()
    base = reduce_to_base(arm)
    exact = exact_log(arm, 10.0, 200.0, 0)
    sigma = np.array([1.0, 1.0, 0.8, 0.5, 0.3, 0.2, 0.1])
    methods: dict[str, Method] = {
        "ols": OrdinaryLeastSquares(),
        "wls": WeightedLeastSquares(),
        "robust": IteratedReweighted(),
        "classical": CLASSICAL,
    }
    shares = coverage(arm, base, exact, sigma, 200, methods, cutoff_nyquist)
    for name in ("ols", "wls", "robust"):
        assert_covers(shares[name])
    if cutoff_nyquist is not None:
        assert shares["classical"].mean() < 0.6


@pytest.mark.parametrize("cutoff_nyquist", [None, 0.3, 0.05])
def test_claimed_sigma_is_the_spread_of_repeated_logs(cutoff_nyquist: float | None) -> None:
    values, claimed = [], []
    for seed in range(120):
        found = estimate(
            build_regression(ARM, noisy_log(exact_log(), SIGMA, seed, cutoff_nyquist)), BASE, OrdinaryLeastSquares()
        )
        values.append(found.base_values)
        claimed.append(found.sigma)
    ratio = np.mean(claimed, axis=0) / np.std(values, axis=0)
    assert 0.9 < np.median(ratio) < 1.15
    assert ratio.min() > 0.7
    assert ratio.max() < 1.5


def test_white_noise_shared_by_all_joints_needs_no_correction() -> None:
    ratios = []
    for seed in range(10):
        found = estimate(build_regression(ARM, noisy_log(exact_log(None, 20.0), 0.3, seed)), BASE, OrdinaryLeastSquares())
        ratios.append(found.sigma / np.array(found.details["classical_sigma"]))
    mean = np.mean(ratios, axis=0)
    assert 0.95 < np.median(mean) < 1.05
    assert mean.min() > 0.85
    assert mean.max() < 1.2


def test_an_offset_is_not_certain_because_the_residual_has_no_mean() -> None:
    """The fit removes the mean of the residual; what noise does at that frequency has to come from its neighbours."""
    for cutoff in (None, 0.2):
        spread = [
            estimate(build_regression(ARM, noisy_log(exact_log(), SIGMA, seed, cutoff)), BASE, OrdinaryLeastSquares()).sigma[
                BASE.index("fo1")
            ]
            for seed in range(5)
        ]
        assert np.mean(spread) == pytest.approx(0.3 / np.sqrt(len(exact_log())), rel=0.25)


def test_rows_filtered_and_decimated_are_covered_too() -> None:
    """A row filter colours the noise of the rows although the torque itself has white noise."""
    exact, n_logs = exact_log(None, 10.0, 500.0, 2), 40
    hits = np.zeros(BASE.n_base)
    for seed in range(n_logs):
        regression = build_regression(
            ARM, noisy_log(exact, SIGMA, seed), row_filter=FilterAndDecimate(every=5, cutoff_hz=10.0)
        )
        low, high = estimate(regression, BASE, WeightedLeastSquares()).interval().T
        hits += (low <= TRUTH) & (high >= TRUTH)
    assert 0.88 <= hits.mean() / n_logs <= 0.99


def test_several_logs_add_their_information() -> None:
    logs = [noisy_log(exact_log(), SIGMA, seed, 0.2) for seed in range(4)]
    one, four = (estimate(build_regression(ARM, chosen), BASE, OrdinaryLeastSquares()) for chosen in (logs[:1], logs))
    assert np.median(one.sigma / four.sigma) == pytest.approx(2.0, rel=0.15)
    merged = estimate(build_regression(ARM, logs[:2]) + build_regression(ARM, logs[2:]), BASE, OrdinaryLeastSquares())
    assert np.allclose(merged.sigma, four.sigma, rtol=1e-9)


def unmodelled(kind: str, log: Samples, rng: np.random.Generator) -> Array:
    """A torque error of one kind that no column of the model has, over white noise."""
    n, q, v = len(log), log.position, log.velocity

    def drifting(memory: float, columns: int = 3) -> Array:
        steps = np.sqrt(1.0 - memory**2) * rng.normal(size=(n, columns))
        return np.asarray(lfilter([1.0], [1.0, -memory], steps, axis=0))

    added = {
        "drift": lambda: drifting(0.98),
        "drift of all joints together": lambda: drifting(0.98, 1),
        "ripple of position": lambda: 1.4 * np.sin(7.0 * q + rng.uniform(0.0, 2.0 * np.pi, 3)),
        "friction of the joint before": lambda: 1.4 * np.sign(np.roll(v, 1, axis=1)) * rng.uniform(0.5, 1.0, 3),
        "bursts at reversals": lambda: 4.0 * np.exp(-((v / 0.15) ** 2)) * drifting(0.95),
    }[kind]()
    return np.asarray(SIGMA * (0.3 * rng.normal(size=(n, 3)) + added))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["drift", "drift of all joints together", "ripple of position", "friction of the joint before", "bursts at reversals"],
)
def test_intervals_hold_under_errors_that_the_model_lacks(kind: str) -> None:
    """A hundred logs, each with its own motion; residuals are correlated in time, and the classical formula fails by far."""
    hits, classical, n_logs = np.zeros(BASE.n_base), np.zeros(BASE.n_base), 100
    for seed in range(n_logs):
        exact = exact_log(None, 20.0, 200.0, seed)
        assert exact.torque is not None
        log = exact.with_torque(exact.torque + unmodelled(kind, exact, np.random.default_rng(1000 + seed)))
        found = estimate(build_regression(ARM, log, row_filter=BandLimit(10.0)), BASE, WeightedLeastSquares())
        low, high = found.interval(0.95).T
        hits += (low <= TRUTH) & (high >= TRUTH)
        classical += np.abs(found.base_values - TRUTH) <= 1.96 * np.array(found.details["classical_sigma"])
    assert 0.90 <= hits.mean() / n_logs <= 0.98
    assert classical.mean() / n_logs < 0.75


def test_the_bootstrap_agrees_on_a_long_log() -> None:
    exact = exact_log(None, 20.0, 1000.0, 2)
    ratios = []
    for seed in range(4):
        regression = build_regression(ARM, noisy_log(exact, SIGMA, seed, 0.02))
        bootstrap, corrected = (
            estimate(regression, BASE, OrdinaryLeastSquares(covariance=kind)) for kind in ("bootstrap", "corrected")
        )
        ratios.append(bootstrap.sigma / corrected.sigma)
        assert bootstrap.details["degrees_of_freedom"] == regression.n_blocks - 1
    assert 0.8 < np.median(ratios) < 1.25
    assert np.median(np.abs(np.log(ratios))) < 0.3


def test_the_bootstrap_needs_blocks() -> None:
    with pytest.raises(InputError, match=facts("1", "8")):
        estimate(build_regression(ARM, exact_log()), BASE, OrdinaryLeastSquares(covariance="bootstrap"))


def test_triangles_alone_have_the_classical_formula() -> None:
    regression = build_regression(ARM, noisy_log(exact_log(), SIGMA, seed=1))
    found = estimate(regression.without_sources(), BASE, OrdinaryLeastSquares())
    assert found.details["covariance"] == "classical"
    assert np.array_equal(found.covariance, estimate(regression, BASE, CLASSICAL).covariance)


def whole_chain_coverage(effects: str, counts: int | None, n_logs: int = 40) -> Array:
    """The same with everything a user does: quantised positions, a low-pass of 15 Hz on all signals, derivatives of position."""
    arm = demo_robot(effects)
    base = reduce_to_base(arm)
    truth = base.base_values(arm.parameters)
    exact = exact_log(arm, 10.0, 500.0, 0)
    sigma = np.array([1.0, 1.0, 0.8, 0.5, 0.3, 0.2, 0.1])
    hits = np.zeros(base.n_base)
    for seed in range(n_logs):
        rng = np.random.default_rng(seed)
        position = exact.position
        if counts is not None:
            step = 2.0 * np.pi / counts
            position = np.floor(position / step + rng.uniform(size=position.shape[1])) * step
        torque = exact.torque + sigma * rng.normal(size=exact.torque.shape)
        log = Recording(time=exact.time, position=position, torque=torque, joint_names=arm.joint_names)
        samples = process(log, [LowPass(cutoff_hz=15.0), Differentiate("position")])
        low, high = estimate(build_regression(arm, samples), base, WeightedLeastSquares()).interval(0.95).T
        hits += (low <= truth) & (truth <= high)
    return hits / n_logs


@pytest.mark.slow
def test_encoders_and_corners_of_friction() -> None:
    """Intervals speak of torque noise. Encoders of 2^17 counts do not spoil them, coarse ones spoil some; filtered corners of
    Coulomb friction are a bias that no noise model covers."""
    smooth = "viscous,offset,armature"
    for counts in (None, 2**17):
        assert_covers(whole_chain_coverage(smooth, counts))
    coarse = whole_chain_coverage(smooth, 2**14)
    assert 0.85 < coarse.mean() < 0.96
    assert coarse.min() < 0.7
    assert whole_chain_coverage("viscous,coulomb,offset,armature", None).mean() < 0.88


def test_channels_after_one_another_have_the_same_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of long chains a few channels are held at a time."""
    data = build_regression(ARM, noisy_log(exact_log(), SIGMA, 0))
    together = estimate(data, BASE, WeightedLeastSquares()).covariance
    monkeypatch.setattr(spectrum, "STRETCH_NUMBERS", 1)
    np.testing.assert_allclose(estimate(data, BASE, WeightedLeastSquares()).covariance, together, rtol=1e-12)
    assert list(spectrum.channel_groups([3, 4, 5], 100)) == [slice(0, 1), slice(1, 2), slice(2, 3)]
