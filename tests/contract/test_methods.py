"""The contract: every method keeps the laws it declares, and for each law it does not declare there is a reason here."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import numpy as np
import pytest

import dynid.estimation
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.essential import EssentialParameters
from dynid.estimation.methods.instrumental import InstrumentalVariables
from dynid.estimation.methods.least_squares import IteratedReweighted, OrdinaryLeastSquares, Ridge, WeightedLeastSquares
from dynid.estimation.methods.recursive import RecursiveLeastSquares
from dynid.estimation.result import Method, Outcome
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from noisy_logs import exact_log, locked, noisy_log, reordered, short_arm

LAWS = ("exact", "row_order", "units", "equal_weights", "covers")

CONSTRAINED = {
    "units": "a body that is consistent in one unit of torque need not keep its margins in another",
    "equal_weights": "constraints move the values that least squares leaves inconsistent",
    "covers": "constraints distort coverage",
}
"""Why methods that return consistent bodies only are exempt."""

EXEMPT: dict[str, dict[str, str]] = {
    "wls": {"equal_weights": "weights come from the residuals, which differ a little even when the joints' noise does not"},
    "robust": {"equal_weights": "it weights rows by their residuals, which is its purpose"},
    "tls": {
        "equal_weights": "the torque is not the only thing in error, so the minimum is another one",
        "covers": "its model has errors in the regressor, which simulated torque noise lacks",
    },
    "iv": {
        "row_order": "instruments come from a simulation in time",
        "equal_weights": "instruments take the place of the regressor, and its noise does not exist in them",
    },
    "output-error": {
        "exact": "it integrates the motion, to a small error of its own",
        "row_order": "it simulates the motion in time",
        "units": "bodies are drawn to the fit to the rows in logarithms, whose margins have units",
        "equal_weights": "it fits positions, not torques",
        "covers": "its noise is that of positions, and the simulated noise is that of torques",
    },
    "ridge": {
        "exact": "a prior biases, in proportion to the noise it is weighed against",
        "units": "the size of a parameter is that of the prior's links, friction in SI units",
        "equal_weights": "a prior biases",
        "covers": "a prior biases; its intervals are those of the posterior",
    },
    "essential": {
        "row_order": "what is dropped depends on the corrected covariance, which looks at the order in time",
        "equal_weights": "parameters that the data do not support are set to zero",
        "covers": "the interval of a dropped parameter is the point zero",
    },
    **dict.fromkeys(("sdp", "bpfc", "fbpe-wls", "manifold", "logcholesky", "retrieve"), CONSTRAINED),
}
"""Method, law, and why the law does not hold for it."""


def _method_classes() -> dict[str, type[Any]]:
    """Every class of the estimation room that looks like a method, by its name."""
    found: dict[str, type[Any]] = {}
    for module in pkgutil.walk_packages(dynid.estimation.__path__, "dynid.estimation."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            own = kind.__module__ == module.name
            if own and isinstance(getattr(kind, "laws", None), frozenset) and hasattr(kind, "estimate"):
                found[kind.name] = kind
    return found


CLASSES = _method_classes()
METHODS: list[Method] = [
    *(kind() for kind in CLASSES.values()),
    OrdinaryLeastSquares(covariance="classical"),
    WeightedLeastSquares(sigma=(1.0, 2.0, 3.0)),
    IteratedReweighted(loss="tukey"),
    EssentialParameters.gaz(),
    Ridge(spread=0.1),
    RecursiveLeastSquares(over="standard"),
]


def _label(method: Method) -> str:
    text = repr(method)
    default = repr(type(method)())
    return method.name if text == default else f"{method.name}:{text.split('(', 1)[0]}#{METHODS.index(method)}"


def obeying(law: str, slow: str = "") -> list[Any]:
    """Methods that declare a law; one of them may take too long for every run of the tests."""
    marks = {slow: [pytest.mark.slow]}
    return [pytest.param(m, id=_label(m), marks=marks.get(m.name, [])) for m in METHODS if law in m.laws]


every_method = pytest.mark.parametrize("method", [pytest.param(m, id=_label(m)) for m in METHODS])

ARM = short_arm()
BASE = reduce_to_base(ARM)
TRUTH = BASE.base_values(ARM.parameters)
SIGMA = np.array([0.3, 0.6, 0.1])


def wrong_prior() -> Any:
    """Nominal parameters that are off by a few percent, so that nothing is right by accident."""
    rng = np.random.default_rng(5)
    return ARM.parameters.with_values(ARM.parameters.values * rng.uniform(0.9, 1.1, len(ARM.parameters)))


def distance(values: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference, relative to the size of the wanted values."""
    return float(np.abs(values - wanted).max() / np.abs(wanted).max())


def test_the_room_has_the_methods_that_are_promised() -> None:
    assert {"ols", "wls", "robust", "tls", "iv", "ridge", "recursive", "essential"} <= set(CLASSES)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_law_is_declared_or_its_absence_explained(name: str) -> None:
    declared, excused = CLASSES[name].laws, set(EXEMPT.get(name, {}))
    assert declared <= set(LAWS)
    assert declared.isdisjoint(excused)
    assert declared | excused >= set(LAWS), f"{name} neither declares nor excuses {set(LAWS) - declared - excused}"


@pytest.mark.parametrize("method", obeying("exact"))
def test_exact_data_give_the_exact_values(method: Method) -> None:
    found = estimate(build_regression(ARM, exact_log()), BASE, method, wrong_prior())
    assert found.outcome is Outcome.SOLVED
    assert distance(found.base_values, TRUTH) < 1e-6
    assert found.relative_error < 1e-6


@pytest.mark.parametrize("method", obeying("row_order"))
def test_the_order_of_rows_does_not_matter(method: Method) -> None:
    log = noisy_log(exact_log(), SIGMA, seed=1)
    mixed = reordered(log, np.random.default_rng(0).permutation(len(log)))
    one = estimate(build_regression(ARM, log), BASE, method, wrong_prior())
    other = estimate(build_regression(ARM, mixed), BASE, method, wrong_prior())
    assert distance(other.base_values, one.base_values) < 1e-4 * float(one.sigma.max() / np.abs(one.base_values).max())


@pytest.mark.parametrize("method", obeying("units"))
def test_rescaled_torque_rescales_the_answer(method: Method) -> None:
    log, factor = noisy_log(exact_log(), SIGMA, seed=1), 1000.0
    assert log.torque is not None
    prior = wrong_prior()
    one = estimate(build_regression(ARM, log), BASE, method, prior)
    scaled_method = method
    if isinstance(method, WeightedLeastSquares) and method.sigma is not None:
        scaled_method = WeightedLeastSquares(sigma=tuple(factor * s for s in method.sigma))
    other = estimate(
        build_regression(ARM, log.with_torque(factor * log.torque)),
        BASE,
        scaled_method,
        prior.with_values(factor * prior.values),
    )
    assert distance(other.base_values / factor, one.base_values) < 1e-8
    assert np.allclose(other.sigma / factor, one.sigma, rtol=1e-5)


@pytest.mark.parametrize("method", obeying("equal_weights"))
def test_equally_noisy_joints_give_ordinary_least_squares(method: Method) -> None:
    regression = build_regression(ARM, noisy_log(exact_log(), 0.2, seed=3))
    ordinary = estimate(regression, BASE, OrdinaryLeastSquares(), wrong_prior())
    found = estimate(regression, BASE, method, wrong_prior())
    assert distance(found.base_values, ordinary.base_values) < 1e-9


@pytest.mark.parametrize("method", obeying("covers", slow="iv"))
def test_claimed_intervals_cover(method: Method) -> None:
    """A quick look at 40 logs with filtered torque noise; the full measure is the slow one of the uncertainty tests."""
    exact, n_logs = exact_log(), 6 if method.name == "iv" else 40  # each of its estimates simulates the arm
    hits = np.zeros(BASE.n_base)
    # the classical formula is right for white noise that all joints share, and for nothing else
    classical = getattr(method, "covariance", "corrected") == "classical"
    for seed in range(n_logs):
        log = noisy_log(exact, 0.3, seed) if classical else noisy_log(exact, SIGMA, seed, cutoff_nyquist=0.2)
        low, high = estimate(build_regression(ARM, log), BASE, method).interval(0.95).T
        hits += (low <= TRUTH) & (high >= TRUTH)
    assert 0.90 <= hits.mean() / n_logs <= 0.99
    assert hits.min() / n_logs >= 0.75


@every_method
def test_using_a_method_changes_nothing_and_repeats_to_the_digit(method: Method) -> None:
    regression, prior = build_regression(ARM, noisy_log(exact_log(), SIGMA, seed=4)), wrong_prior()
    triangles, values = [factor.R.copy() for factor in regression.factors], prior.values.copy()
    first = estimate(regression, BASE, method, prior)
    second = estimate(regression, BASE, method, prior)
    assert np.array_equal(first.base_values, second.base_values)
    assert np.array_equal(first.covariance, second.covariance)
    assert np.array_equal(prior.values, values)
    assert all(np.array_equal(factor.R, R) for factor, R in zip(regression.factors, triangles, strict=True))


@every_method
def test_the_result_is_one_consistent_whole(method: Method) -> None:
    found = estimate(build_regression(ARM, noisy_log(exact_log(), SIGMA, seed=4)), BASE, method, wrong_prior())
    assert np.allclose(BASE.base_values(found.standard), found.base_values, atol=1e-9 * np.abs(TRUTH).max())
    assert found.method == method.name
    assert np.linalg.eigvalsh(found.covariance / np.abs(found.covariance).max()).min() > -1e-9
    assert found.rank == found.seen.sum() or found.method == "ridge"
    assert found.relative_error < 0.1
    assert not found.base_values.flags.writeable


@every_method
def test_data_that_cannot_show_everything_give_an_outcome(method: Method) -> None:
    """The second joint stands still: its friction and some inertias cannot be known."""
    log, prior = noisy_log(locked(exact_log(), 1, ARM), 0.01, seed=6), wrong_prior()
    found = estimate(build_regression(ARM, log), BASE, method, prior)
    assert found.outcome is not Outcome.SOLVED
    assert np.isfinite(found.base_values).all()
    assert found.base_values[BASE.index("fv2")] == pytest.approx(BASE.base_values(prior)[BASE.index("fv2")], rel=1e-6)
    assert found.origin[BASE.index("fv2")] == "prior"
    assert not np.isfinite(found.sigma_percent[BASE.index("fv2")])


@every_method
def test_triangles_without_rows_are_used_or_refused_in_words(method: Method) -> None:
    regression = build_regression(ARM, noisy_log(exact_log(), SIGMA, seed=4)).without_sources()
    try:
        found = estimate(regression, BASE, method, wrong_prior())
    except InputError as refusal:
        assert "row" in str(refusal)  # noqa: PT017
        assert method.name in ("robust", "iv", "output-error")
    else:
        assert found.relative_error < 0.1


def test_instruments_are_a_method() -> None:
    assert "iv" in CLASSES
    assert CLASSES["iv"] is InstrumentalVariables


@every_method
def test_torque_of_zero_is_refused(method: Method) -> None:
    """By one sentence; a warning of NumPy would be an error here."""
    with pytest.raises(InputError, match=r"the right-hand side \(torque\) is zero in all \d+ rows"):
        estimate(build_regression(ARM, exact_log().with_torque(np.zeros((501, 3)))), BASE, method, wrong_prior())


@every_method
def test_a_joint_without_torque_spoils_no_number(method: Method) -> None:
    log = noisy_log(exact_log(), SIGMA, seed=1)
    assert log.torque is not None
    torque = np.array(log.torque)
    torque[:, 0] = 0.0
    found = estimate(build_regression(ARM, log.with_torque(torque)), BASE, method, wrong_prior())
    assert np.isfinite(found.base_values).all()
    assert np.isfinite(found.standard.values).all()
    assert np.isfinite(found.relative_error)
