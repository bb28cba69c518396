"""The interior-point method reaches the same value from any start."""

from __future__ import annotations

import numpy as np
import pytest

from consistent_problems import KNOWN, fit_of_three_links
from dynid.estimation.consistency.block_program import BlockProgram, RowSystem
from dynid.estimation.consistency.interior_point import interior_point, start_inside


def test_a_start_outside_is_no_obstacle():
    fit = fit_of_three_links(2, constraints=KNOWN)
    program = BlockProgram.of(fit.consistent)
    system = RowSystem(program, np.vstack([fit.F, np.diag(np.sqrt(fit.pull))]), np.zeros(len(fit.F) + program.n))
    rng = np.random.default_rng(0)
    values = []
    for size in (1.0, 100.0):
        found = interior_point(system, start_inside(program, size * rng.normal(size=program.n), 1.0))
        assert found.end == "solved"
        values.append(system.value(found.x))
    assert values[0] == pytest.approx(values[1], rel=1e-6)
