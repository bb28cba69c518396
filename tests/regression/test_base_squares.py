"""Normal equations against the triangles of the same rows."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimation.linear import LinearProblem
from dynid.io.demo import demo_robot, demo_samples
from dynid.regression.base import Squares, reduce_to_base
from dynid.regression.factor import factorise
from dynid.regression.torque_rows import TorqueRows


def test_base_values_and_errors_are_those_of_the_triangles() -> None:
    robot, samples = demo_robot(), demo_samples(seconds=6.0)
    assert samples.torque is not None
    noise = 0.1 * np.random.default_rng(0).normal(size=samples.torque.shape)
    rows = TorqueRows(robot, (samples.with_torque(samples.torque + noise),))
    base = reduce_to_base(robot)
    whole = factorise(rows)
    beta = LinearProblem.of(whole, base, robot.parameters).solve(np.ones(7))
    squares = Squares.of(rows)
    np.testing.assert_allclose(squares.solve(base), beta, rtol=1e-5, atol=1e-6 * np.abs(beta).max())
    left = np.concatenate([m[:, -1] - m[:, :-1] @ beta for m in (whole.channel_matrix(j, base) for j in range(7))])
    assert squares.error(base, beta) == pytest.approx(np.linalg.norm(left) / np.linalg.norm(whole.torque_norms), rel=1e-9)
