from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dynid.apps.fleet.identify import _identify_robot, identify_store
from dynid.apps.fleet.row_query import RowQuery, on_robot
from dynid.errors import InputError
from dynid.estimation.methods.least_squares import WeightedLeastSquares
from dynid.pipeline.estimate_rows import row_source
from dynid.pipeline.folder import load_result
from dynid.pipeline.log import hold_still
from dynid.pipeline.options import Settings
from dynid.pipeline.validate import unseen_logs
from dynid.regression.factor import factorise
from small_fleet import Shop, make_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return make_shop(tmp_path_factory.mktemp("shop"))


def rows_again(shop: Shop, log: int):  # type: ignore[no-untyped-def]
    """The rows of a log made from the log itself, by the way that validation goes."""
    run = replace(shop.store.run, logs=())
    unseen = unseen_logs(run, [shop.logs[log]])
    return row_source(run.rows, run.robot, unseen.logs.with_window_samples(hold_still(unseen.samples)))


def test_base_values_are_those_of_the_logs(shop: Shop) -> None:
    found = identify_store(shop.store, settings=Settings(method="wls"))
    whole = factorise(rows_again(shop, 0)) + factorise(rows_again(shop, 1))
    direct = WeightedLeastSquares().estimate(whole, shop.store.base, whole.parameters)
    own = found.robots[0].run.estimate
    assert own.n_rows == direct.n_rows
    np.testing.assert_allclose(own.base_values, direct.base_values, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(own.relative_error, direct.relative_error, rtol=1e-8)


def test_intervals_know_the_colour_of_the_noise(shop: Shop) -> None:
    """One log: what the store keeps of the noise gives the covariance that the rows give, to the precision it is kept with."""
    (found,) = identify_store(shop.store, to_day="2026-03-01", settings=Settings(method="wls")).robots
    rows = factorise(rows_again(shop, 0))
    direct = WeightedLeastSquares().estimate(rows, shop.store.base, rows.parameters)
    assert direct.details["covariance"] == "corrected"
    np.testing.assert_allclose(found.run.estimate.sigma, direct.sigma, rtol=1e-4)
    classical = np.array(direct.details["classical_sigma"])
    assert np.abs(direct.sigma / classical - 1.0).max() > 0.02  # the two do differ here


def test_held_out_error_is_that_of_the_other_days(shop: Shop) -> None:
    (found,) = identify_store(shop.store, settings=Settings(method="wls")).robots
    for day, (known, unseen) in zip(found.days, ((1, 0), (0, 1)), strict=True):
        fit = factorise(rows_again(shop, known))
        beta = WeightedLeastSquares().estimate(fit, shop.store.base, fit.parameters).base_values
        rows = factorise(rows_again(shop, unseen))
        left = np.concatenate(
            [m[:, -1] - m[:, :-1] @ beta for m in (rows.channel_matrix(j, shop.store.base) for j in range(2))]
        )
        expected = np.linalg.norm(left) / np.linalg.norm(rows.torque_norms)
        assert day["held_out"] == pytest.approx(expected, rel=0.02)  # weights of all days there, of the known ones here
        assert day["held_out"] > day["relative_error"]


def test_a_single_row_has_the_error_of_its_last_part(shop: Shop) -> None:
    (found,) = identify_store(shop.store, where="tool=B").robots
    assert len(found.days) == 1
    assert np.isnan(found.days[0]["held_out"])
    assert found.run.estimate.relative_error < found.held_out_error < 3.0 * found.run.estimate.relative_error
    assert found.alarm is None


def test_runs_are_written_and_read_again(shop: Shop, tmp_path) -> None:  # type: ignore[no-untyped-def]
    found = identify_store(shop.store)
    (folder,) = found.save(tmp_path / "run")
    again = load_result(folder)
    np.testing.assert_allclose(again.estimate.base_values, found.robots[0].run.estimate.base_values)
    assert again.estimate.method == "sdp"
    assert again.estimate.feasible


def test_a_method_that_needs_rows_says_so(shop: Shop) -> None:
    with pytest.raises(InputError, match="need every row again, and this regression holds only its triangles"):
        identify_store(shop.store, settings=Settings(method="robust"))


def test_an_engine_identifies_the_same_robots(shop: Shop) -> None:
    one, other = (
        identify_store(shop.store, settings=Settings(method="wls", engine=name)) for name in ("serial", "threads:2")
    )
    assert [robot.id for robot in other.robots] == [robot.id for robot in one.robots]
    for a, b in zip(one.robots, other.robots, strict=True):
        np.testing.assert_array_equal(a.run.estimate.base_values, b.run.estimate.base_values)
        assert a.held_out_error == b.held_out_error
    settings = replace(shop.store.run.settings, method="wls")
    of_one = partial(on_robot, partial(_identify_robot, settings=settings), shop.store.folder, RowQuery())
    work = pickle.loads(pickle.dumps(of_one))  # noqa: S301
    found, _ = pickle.loads(pickle.dumps(work(one.robots[0].id)))  # noqa: S301
    np.testing.assert_array_equal(found.run.estimate.base_values, one.robots[0].run.estimate.base_values)
    assert work("nobody") is None
    with pytest.raises(InputError, match="has no robot 'nobody'"):
        identify_store(shop.store, robots=["nobody"], settings=Settings(engine="threads:2"))
