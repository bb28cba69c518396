"""Coefficients that are known already: tables of them, and the estimate that is retrieved from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.bounds import Bounds
from dynid.estimation.methods.retrieval import PenaltyRetrieval
from dynid.estimation.result import Outcome
from dynid.pipeline.coefficients import Coefficients, read_coefficients, retrieve_estimate
from dynid.regression.base import reduce_to_base
from noisy_logs import short_arm

ARM = short_arm()
RIGID = ARM.with_effects(())
BASE = reduce_to_base(RIGID)
TRUTH = BASE.base_values(RIGID.parameters)
METHOD = PenaltyRetrieval()


def table(path: Path, header: str, *lines: str) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def by_name(path: Path, sigma: float = 1.0) -> Path:
    lines = [f"{name},{value!r},{sigma}" for name, value in zip(BASE.names, TRUTH.tolist(), strict=True)]
    return table(path, "name,value,sigma_percent", *lines)


def test_base_parameters_by_their_names(tmp_path: Path) -> None:
    found = read_coefficients(by_name(tmp_path / "c.csv"), ARM)
    assert found.robot.effects == ()  # nothing is said of them
    np.testing.assert_array_equal(found.K, BASE.K)
    np.testing.assert_array_equal(found.values, TRUTH)
    np.testing.assert_allclose(found.sigma_percent, 1.0)
    assert found.foreign(BASE) == ()


def test_effects_stay_where_the_table_names_them(tmp_path: Path) -> None:
    path = table(tmp_path / "c.csv", "name,value", "fv1,0.5", "fv2,0.25", "Ixx2,0.1")
    found = read_coefficients(path, ARM)
    assert [effect.name for effect in found.robot.effects] == ["viscous"]
    assert np.isnan(found.sigma_percent).all()


def test_combinations_give_the_same_as_the_names_they_stand_for(tmp_path: Path) -> None:
    named = read_coefficients(by_name(tmp_path / "names.csv"), ARM)
    lines = [f"p{i},{text},{value!r}" for i, (text, value) in enumerate(zip(BASE.expressions(12), TRUTH, strict=True))]
    path = table(
        tmp_path / "c.csv", "Name, Expression ,value", *[line.replace("np.float64(", "").rstrip(")") for line in lines]
    )
    written = read_coefficients(path, ARM)
    np.testing.assert_allclose(written.K, named.K, atol=1e-11)
    a, b = retrieve_estimate(METHOD, named), retrieve_estimate(METHOD, written)
    np.testing.assert_allclose(a.standard.values, b.standard.values, rtol=1e-6, atol=1e-9)
    assert np.isnan(b.sigma).all()
    assert np.isinf(b.sigma_percent).all()


def test_consistent_coefficients_come_back_with_their_uncertainty(tmp_path: Path) -> None:
    found = retrieve_estimate(METHOD, read_coefficients(by_name(tmp_path / "c.csv", 2.0), ARM))
    assert found.outcome is Outcome.SOLVED
    np.testing.assert_allclose(found.base_values, TRUTH, atol=1e-9)
    np.testing.assert_allclose(found.sigma, 0.02 * np.abs(TRUTH), rtol=1e-9)
    np.testing.assert_allclose(found.interval()[:, 1] - TRUTH, 1.96 * 0.02 * np.abs(TRUTH), rtol=1e-3, atol=1e-8)
    assert found.feasible
    assert set(found.origin) == {"data"}
    assert (found.n_samples, found.n_rows, found.rank) == (0, BASE.n_base, BASE.n_base)
    assert np.isnan([found.relative_error, found.condition_number]).all()
    assert found.details["cost"] == pytest.approx(0.0, abs=1e-15)


def test_another_grouping_carries_its_covariance_over() -> None:
    """Sums and differences of two base parameters: the covariance of the base parameters is the one they came from."""
    rng = np.random.default_rng(0)
    mix = np.eye(BASE.n_base) + 0.3 * rng.standard_normal((BASE.n_base, BASE.n_base))
    spread = rng.standard_normal((BASE.n_base, BASE.n_base))
    covariance = 1e-6 * spread @ spread.T
    names = tuple(f"p{i}" for i in range(BASE.n_base))
    given = Coefficients(RIGID, names, mix @ BASE.K, mix @ TRUTH, mix @ covariance @ mix.T)
    found = retrieve_estimate(METHOD, given)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.base_values, TRUTH, atol=1e-8)


def test_what_no_coefficient_gives_is_marked() -> None:
    first = np.zeros(BASE.n_base, dtype=bool)
    first[0] = True
    given = Coefficients(RIGID, BASE.names, BASE.K, TRUTH, np.diag(np.full(BASE.n_base, np.nan))).without(first)
    found = retrieve_estimate(METHOD, given)
    assert found.outcome is Outcome.RANK_DEFICIENT
    assert found.origin[0] == "prior"
    assert set(found.origin[1:]) == {"data"}
    assert found.rank == BASE.n_base - 1
    assert found.covariance[0, 0] == 0.0


def test_bounds_that_cannot_hold_leave_the_coefficients_as_they_are() -> None:
    given = Coefficients(RIGID, BASE.names, BASE.K, TRUTH, np.zeros((BASE.n_base, BASE.n_base)))
    found = retrieve_estimate(PenaltyRetrieval(bounds=Bounds({"m1": (5.0, 6.0), "total_mass": (0.0, 4.0)})), given)
    assert found.outcome is Outcome.INFEASIBLE
    np.testing.assert_allclose(found.base_values, TRUTH, atol=1e-9)


def test_a_combination_that_no_motion_shows_is_named() -> None:
    K = np.zeros((2, len(RIGID.parameters)))
    K[0, RIGID.parameters.index("m1")] = 1.0  # the mass of the first link of an arm on the ground
    K[1] = BASE.K[0] * (1.0 + 1e-5)  # factors as a table rounds them
    given = Coefficients(RIGID, ("mass", "first"), K, np.ones(2), np.zeros((2, 2)))
    assert given.foreign(BASE) == ("mass",)


@pytest.mark.parametrize(
    ("header", "lines", "fact"),
    [
        ("name,worth", ["Ixx2,1"], "have the columns name, worth, expected name or expression, value"),
        ("value", ["1"], "have the columns value"),
        ("name,value,value", ["a,1,2"], "have the columns name, value, value"),
        ("name,value", [], "no line below the header"),
        ("name,value", ["Ixx2,1,2"], "line 2 of .* has 3 cells, expected 2"),
        ("name,value", ["", "Ixx2,one"], "value in line 3 of .* is 'one'"),
        ("name,value", ["Ixx2,nan"], "value in line 2 of .* is 'nan'"),
        ("name,value,sigma_percent", ["Ixx2,1,-2"], "sigma_percent in line 2 of .* is -2"),
        ("name,value,sigma_percent", ["Ixx2,1,x"], "sigma_percent in line 2 of .* is 'x'"),
        ("name,value", ["m1,1"], "unknown base parameter 'm1' in line 2 of .*available: .*Ixx2"),
        ("name,value", ["I2xx,1"], "I2xx"),
        ("name,value", [",1"], "line 2 of .* has neither a name nor an expression"),
        ("expression,value", ["Ixx2 * m1,1"], "line 2 of .*character 8: it is not linear"),
        ("expression,value", ["Ixx2 + m9,1"], "unknown parameter 'm9' in line 2"),
        ("expression,value", ["__import__('os'),1"], "line 2 of .*character 12"),
        ("name,value", ["Ixx2,1", "Ixx2,2"], "'Ixx2' stands 2 times"),
    ],
)
def test_tables_that_are_refused(tmp_path: Path, header: str, lines: list[str], fact: str) -> None:
    path = table(tmp_path / "c.csv", header, *lines)
    with pytest.raises(InputError, match=fact):
        read_coefficients(path, ARM)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="are not text"):
        read_coefficients(tmp_path / "c.csv", ARM)
    with pytest.raises(InputError, match=r"none\.csv' cannot be read"):
        read_coefficients(tmp_path / "none.csv", ARM)


def test_coefficients_that_repeat_one_another_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "c.csv", "expression,value", "Ixx2 + Iyy2,1", "2 Ixx2 + 2 Iyy2,2")
    with pytest.raises(InputError, match="2 coefficients were given that are not independent"):
        retrieve_estimate(METHOD, read_coefficients(path, ARM))


def test_unknown_names_say_what_there_is(tmp_path: Path) -> None:
    path = table(tmp_path / "c.csv", "name,value", "q1,1")
    with pytest.raises(UnknownNameError) as refused:
        read_coefficients(path, ARM)
    assert refused.value.available == BASE.names
