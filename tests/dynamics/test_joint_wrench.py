"""What the joints carry, against torque and Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits
from dynid.dynamics.joint_wrench import joint_wrenches
from noisy_logs import short_arm

ARM = short_arm()


def test_wrench_along_the_axis_is_the_torque():
    q, v, a = random_states_within_limits(ARM, 50, seed=4)
    wrench = joint_wrenches(ARM, q, v, a)
    along = np.einsum("sjk,jk->sj", wrench, ARM.tree.screw)
    np.testing.assert_allclose(along, inverse_dynamics(ARM, q, v, a, effects=False), atol=1e-10)


def test_wrenches_are_those_of_pinocchio():
    pinocchio = pytest.importorskip("pinocchio")
    from dynid.dynamics.pinocchio_model import pinocchio_model

    model = pinocchio_model(ARM)
    data = model.createData()
    q, v, a = random_states_within_limits(ARM, 5, seed=4)
    wrench = joint_wrenches(ARM, q, v, a)
    for sample in range(5):
        pinocchio.rnea(model, data, q[sample], v[sample], a[sample])
        for joint in range(3):
            np.testing.assert_allclose(wrench[sample, joint], data.f[joint + 1].vector, atol=1e-10)
