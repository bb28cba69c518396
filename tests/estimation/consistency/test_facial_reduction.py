"""Bodies that no motion shows are found where the axes of a robot are."""

from __future__ import annotations

import numpy as np

from dynid.estimation.consistency.facial_reduction import null_body
from dynid.io.demo import demo_robot
from dynid.model.inertia import PSEUDO_BASIS, pseudo_inertia
from dynid.regression.base import reduce_to_base


def test_null_bodies_of_an_arm_lie_where_its_axes_do():
    """First joint: masses on its axis; second, whose axis meets the first: at the intersection; the last: none."""
    robot = demo_robot([])
    K = reduce_to_base(robot).K
    found = [null_body(K[:, 10 * k : 10 * k + 10], "full", float(np.abs(K).max())) for k in range(robot.n_joints)]
    ranks = [0 if body is None else int(np.linalg.matrix_rank(pseudo_inertia(body), tol=1e-6)) for body in found]
    assert ranks[0] == 2
    assert ranks[1] == 1
    assert ranks[-1] == 0
    for k, body in enumerate(found):
        if body is not None:
            assert np.abs(K[:, 10 * k : 10 * k + 10] @ body).max() < 1e-9
            assert np.linalg.eigvalsh(np.einsum("a,aij->ij", body, PSEUDO_BASIS))[0] > -1e-12
