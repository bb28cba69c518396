"""What every effect has: options per joint, units, parameters that are searched for."""

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.model.effects.effect import Motion, NonlinearParameter, per_joint_option, unit_on
from dynid.model.effects.linear import Viscous
from problems import random_tree


@pytest.mark.parametrize("logarithmic", [True, False])
def test_a_search_goes_there_and_back(logarithmic):
    width = NonlinearParameter("width", "rad/s", low=1e-3, high=1.0, logarithmic=logarithmic)
    values = np.array([1e-3, 0.2, 1.0])
    place = width.to_search(values)
    np.testing.assert_allclose(width.from_search(place), values)
    np.testing.assert_allclose(width.from_search(width.to_search(np.array([5.0, 0.0]))), [1.0, 1e-3])
    step = 1e-7
    change = (width.from_search(place + step) - width.from_search(place - step)) / (2.0 * step)
    np.testing.assert_allclose(width.slope(values), change, rtol=1e-6)
    assert width.key == "width"


def test_an_option_is_given_once_or_for_every_joint():
    np.testing.assert_array_equal(per_joint_option("x", "width", 2.0, 3), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(per_joint_option("x", "width", (1.0, 2.0), 2), [1.0, 2.0])
    with pytest.raises(InputError, match="2 values of width, the robot has 3 joints"):
        per_joint_option("x", "width", (1.0, 2.0), 3)


def test_units_follow_the_kind_of_joint():
    joints = {joint.kind: joint for joint in random_tree(0, 12).joints}
    assert unit_on(joints["revolute"], "N m s/rad") == "N m s/rad"
    assert unit_on(joints["prismatic"], "N m s/rad") == "N s/m"


def test_motion_of_some_joints():
    q = np.arange(6.0).reshape(2, 3)
    some = Motion(q, q + 1.0, q + 2.0).of_joints([2, 0])
    np.testing.assert_array_equal(some.velocity, [[3.0, 1.0], [6.0, 4.0]])
    assert some.load is None
    with pytest.raises(InputError, match="no option 'width'"):
        Viscous().signals_and_derivatives(Motion(q, q, q), ["width"])
