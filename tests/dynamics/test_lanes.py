"""Lane rows: three values of a lane, and rotations that take them there and back."""

import numpy as np

from dynid.dynamics.lanes import LANES, cross, get, kernel, put, turn, turn_back
from problems import random_rotation


@kernel
def turned_there_and_back(x, lanes):
    """Rows 0 to 8 a rotation, 9 to 11 a vector; its turn to 12, the way back to 15, the product of both to 18."""
    for s in range(lanes):
        a0, a1, a2 = get(x, 9, s)
        b0, b1, b2 = turn(x, 0, s, a0, a1, a2)
        put(x, 12, s, b0, b1, b2)
        c0, c1, c2 = turn_back(x, 0, s, b0, b1, b2)
        put(x, 15, s, c0, c1, c2)
        d0, d1, d2 = cross(a0, a1, a2, b0, b1, b2)
        put(x, 18, s, d0, d1, d2)


def test_lanes_are_turned_each_by_its_own_rotation():
    rng = np.random.default_rng(0)
    R, a = np.array([random_rotation(rng) for _ in range(LANES)]), rng.normal(size=(LANES, 3))
    x = np.zeros((21, LANES))
    x[:9], x[9:12] = R.reshape(LANES, 9).T, a.T
    turned_there_and_back(x.reshape(-1), LANES - 1)
    turned = np.einsum("sij,sj->si", R, a)
    np.testing.assert_allclose(x[12:15, :-1].T, turned[:-1], atol=1e-14)
    np.testing.assert_allclose(x[15:18, :-1].T, a[:-1], atol=1e-14)
    np.testing.assert_allclose(x[18:21, :-1].T, np.cross(a, turned)[:-1], atol=1e-14)
    np.testing.assert_array_equal(x[12:, -1], 0.0)  # a lane that no sample fills is left alone
