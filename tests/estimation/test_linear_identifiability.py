"""Which base parameters the data show, which hang on others, and what a prior contributes."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimation.linear import DATA_TOLERANCE, Identifiability, find_identifiable, origins_of, with_prior
from dynid.regression.channels import independent_columns

RNG = np.random.default_rng(0)


def test_independent_columns_are_seen():
    found = find_identifiable(RNG.normal(size=(20, 3)))
    assert found.rank == 3
    assert found.origin == ("data", "data", "data")


def test_a_column_of_zeros_is_not_seen_and_ties_nothing():
    A = RNG.normal(size=(20, 3)) * [1.0, 0.0, 1.0]
    assert find_identifiable(A).mask.tolist() == [True, False, True]
    assert find_identifiable(A).origin == ("data", "prior", "data")


def test_the_later_of_two_dependent_columns_is_held_and_the_earlier_mixed():
    A = RNG.normal(size=(20, 4))
    A[:, 2] = 3.0 * A[:, 0] - A[:, 1]
    found = find_identifiable(A)
    assert found.rank == 3
    assert found.origin == ("mixed", "mixed", "prior", "data")


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_the_verdict_does_not_depend_on_units(size):
    A = RNG.normal(size=(20, 3)) * [1.0, size, 1.0]
    assert find_identifiable(A).mask.all()


def test_a_triangle_says_what_its_rows_say():
    A = RNG.normal(size=(20, 4))
    A[:, 3] = A[:, 0]
    assert find_identifiable(np.linalg.qr(A, mode="r")).origin == find_identifiable(A).origin


def test_tolerance_is_relative_to_the_column():
    A = RNG.normal(size=(20, 2))
    A[:, 1] = A[:, 0] + 1e-5 * A[:, 1]
    assert find_identifiable(A, 1e-7).mask.all()
    assert find_identifiable(A, 1e-3).mask.tolist() == [True, False]


def test_share_of_the_data_names_the_origin():
    assert origins_of(np.array([1.0, 0.995, 0.5, 0.02, 0.005, 0.0])) == ("data", "data", "mixed", "mixed", "prior", "prior")


def test_a_prior_only_takes_away_from_the_data():
    seen = Identifiability(np.array([True, True, True, False]), ("data", "mixed", "data", "prior"))
    assert with_prior(seen, np.array([1.0, 1.0, 0.5, 1.0])).origin == ("data", "mixed", "mixed", "prior")
    assert with_prior(seen, np.zeros(4)).origin == ("prior",) * 4


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spoilt", [None, 0, 4, 7])
def test_the_short_cut_says_what_walking_through_the_columns_says(seed, spoilt):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(40, 8)) * 10.0 ** rng.uniform(-3.0, 3.0, 8)
    if spoilt is not None:
        A[:, spoilt] = A[:, (spoilt + 1) % 8] * 2.0 + (0.0 if seed % 2 else 1e-9) * rng.normal(size=40)
    kept = independent_columns(A, np.arange(8), DATA_TOLERANCE).kept
    assert list(np.flatnonzero(find_identifiable(A).mask)) == list(kept)
    assert (len(kept) == 8) == (spoilt is None)
