"""How close the demonstration came to the truth it knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench import Bench
from dynid.pipeline.demo import AgainstTruth, against_truth
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult


@pytest.fixture(scope="module")
def run(bench: Bench) -> IdentificationResult:
    """A run whose friction has values that the true arm lacks."""
    return identify(bench.urdf, bench.log, Settings(friction="polynomial"))


def judged(run: IdentificationResult, bench: Bench, **other: float) -> AgainstTruth:
    """The comparison where the estimate is the truth, but for some values."""
    own = {name: bench.truth.parameters[name] for name in bench.truth.parameters.names if name in run.robot.parameters.names}
    standard = run.robot.with_parameters(own | other).parameters
    estimate = replace(run.estimate, standard=standard, base_values=run.estimate.base.base_values(standard))
    return against_truth(bench.truth, replace(run, estimate=estimate))


def test_the_truth_is_off_by_nothing_and_every_interval_holds_it(run: IdentificationResult, bench: Bench) -> None:
    found = judged(run, bench)
    assert found.largest == pytest.approx(0.0, abs=1e-12)
    assert found.inside == found.n_intervals


def test_one_wrong_value_is_named_and_its_interval_is_counted_out(run: IdentificationResult, bench: Bench) -> None:
    right = judged(run, bench)
    found = judged(run, bench, fc2=1.5 * bench.truth.parameters["fc2"])
    assert (found.where, found.largest) == ("fc2", pytest.approx(0.5))
    assert found.median == pytest.approx(0.0, abs=1e-12)
    assert found.inside == right.n_intervals - 1


def test_friction_that_the_true_arm_lacks_is_not_compared(run: IdentificationResult, bench: Bench) -> None:
    lacking = [name for name in run.robot.parameters.names if name not in bench.truth.parameters.names]
    found = judged(run, bench)
    assert lacking
    assert found.n_intervals == run.estimate.base.n_base - len(lacking)
    assert found.n_friction == 2 * bench.truth.n_joints + sum(name.startswith("Ia") for name in run.estimate.base.names)
