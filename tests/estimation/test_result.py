"""What an estimate says about its own values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.estimation.estimate import estimate
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from noisy_logs import exact_log, noisy_log, short_arm


def test_sigma_is_told_in_percent_unless_it_is_far_larger_than_the_value() -> None:
    arm = short_arm()
    base = reduce_to_base(arm)
    found = estimate(build_regression(arm, noisy_log(exact_log(), np.array([0.3, 0.6, 0.1]), seed=1)), base)
    values, origin = found.base_values.copy(), list(found.origin)
    values[0], values[1] = 0.0, 1e-12
    origin[2] = "prior"
    told = replace(found, base_values=values, origin=tuple(origin)).sigma_texts
    assert told[0] == f"± {found.sigma[0]:.2g}"
    assert told[1] == f"± {found.sigma[1]:.2g}"
    assert told[2] == "–"
    assert told[3] == f"{100.0 * found.sigma[3] / abs(values[3]):.2g} %"
