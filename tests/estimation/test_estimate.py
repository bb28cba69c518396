"""Estimates around chosen friction: rows are made once without load, and again under the load of the estimate."""

from __future__ import annotations

import numpy as np

from dynid.dynamics.inverse_dynamics import with_transmitted_load
from dynid.estimation.estimate import LOAD_ROUNDS, estimate_under_load
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.io.demo import demo_robot, demo_samples
from dynid.model.effects.dry_friction import LoadCoulomb
from dynid.model.effects.linear import Viscous
from dynid.regression.factor import Regression, factorise
from dynid.regression.row_source import RowSource
from dynid.regression.torque_rows import TorqueRows


def counted(made: list[RowSource]):
    def factor(rows: RowSource) -> Regression:
        made.append(rows)
        return factorise(rows)

    return factor


def test_rows_without_load_are_made_once() -> None:
    robot = demo_robot()
    samples, made = demo_samples(robot, seconds=2.0), []
    found, regression, same = estimate_under_load(
        TorqueRows(robot, (samples,)), [samples], OrdinaryLeastSquares(), factor=counted(made)
    )
    assert len(made) == 1
    assert same == (samples,)
    assert found.relative_error < 1e-6
    assert regression.n_rows == robot.n_joints * len(samples)


def test_under_load_the_samples_carry_that_of_the_estimate() -> None:
    robot = demo_robot(effects=[Viscous(), LoadCoulomb()])
    samples, made = demo_samples(demo_robot(), seconds=2.0), []
    found, _, (loaded,) = estimate_under_load(
        TorqueRows(robot, (samples,)), [samples], OrdinaryLeastSquares(), factor=counted(made)
    )
    assert 1 < len(made) <= LOAD_ROUNDS
    expected = with_transmitted_load(robot.with_parameters(found.standard), samples).load
    np.testing.assert_allclose(loaded.load, expected)
