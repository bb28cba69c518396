"""The functions of a robot against Pinocchio, and what cannot be written."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import dynid
from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.errors import InputError
from dynid.io.code.c import c_compiler, compile_c, evaluate_compiled, write_c
from dynid.io.code.functions import function_gap, load_dependent, name_of, robot_functions
from dynid.model.effects.dry_friction import LoadCoulomb
from problems import demo_arm, planar_2r, random_tree

needs_compiler = pytest.mark.skipif(c_compiler() is None, reason="no C compiler on this machine")


@needs_compiler
@pytest.mark.parametrize("robot", [random_tree(6, 3), planar_2r()], ids=["tree", "planar"])
def test_functions_are_those_of_pinocchio_on_500_states(robot, tmp_path):
    """Mass matrix, Coriolis matrix, gravity and forward dynamics of rigid bodies; dM/dt - 2 C is skew."""
    joints = tuple(replace(joint, kind="revolute") if joint.kind == "continuous" else joint for joint in robot.joints)
    robot = replace(robot.with_effects(()), joints=joints)
    call = evaluate_compiled(compile_c(write_c(robot, tmp_path / "arm.c", allow_inconsistent=True).path, tmp_path))
    model, n, rng = pinocchio_model(robot), robot.n_dof, np.random.default_rng(0)
    data = model.createData()
    q, v, a = rng.uniform(-1.0, 1.0, (3, 500, n))
    M, C = call("mass_matrix", (q,), (500, n, n)), call("coriolis_matrix", (q, v), (500, n, n))
    torque = call("inverse_dynamics", (q, v, a), (500, n))
    back = call("forward_dynamics", (q, v, torque), (500, n))
    order = [int(model.joints[model.getJointId(name)].idx_v) for name in robot.joint_names]
    there = np.empty(n, dtype=int)
    there[order] = np.arange(n)
    step = 1e-6
    for k in range(500):
        mine = (q[k][there], v[k][there], a[k][there])
        theirs = pin.crba(model, data, mine[0])
        theirs = (np.triu(theirs) + np.triu(theirs, 1).T)[np.ix_(order, order)]
        np.testing.assert_allclose(M[k], theirs, atol=1e-12 * np.abs(theirs).max())
        scale = np.abs(torque[k]).max() + 1.0
        np.testing.assert_allclose(torque[k], pin.rnea(model, data, *mine)[order], atol=1e-12 * scale)
        bias = pin.nonLinearEffects(model, data, *mine[:2])[order]
        gravity = pin.computeGeneralizedGravity(model, data, mine[0])[order]
        np.testing.assert_allclose(C[k] @ v[k], bias - gravity, atol=1e-12 * scale)
    np.testing.assert_allclose(back, a, atol=1e-8)
    slope = (call("mass_matrix", (q + step * v,), M.shape) - call("mass_matrix", (q - step * v,), M.shape)) / (2.0 * step)
    skew = slope - 2.0 * C
    assert np.abs(skew + np.swapaxes(skew, 1, 2)).max() < 1e-9 * max(1.0, np.abs(M).max()) * 10.0


def test_load_dependent_friction_leaves_out_forward_dynamics(tmp_path):
    robot = planar_2r([LoadCoulomb()]).with_parameters({"flc1": 0.1, "flc2": 0.1})
    functions = robot_functions(robot)
    assert load_dependent(functions)
    assert "forward_dynamics" not in functions
    assert any("forward_dynamics is not written" in note for note in write_c(robot, tmp_path / "arm.c").notes)


def test_a_wrong_function_is_seen():
    robot = demo_arm()
    right = {name: one.shape for name, one in robot_functions(robot).items()}
    assert set(right) >= {"mass_matrix", "coriolis_matrix", "coriolis", "gravity", "friction", "forward_dynamics"}
    assert function_gap(robot, lambda name, given, shape: np.zeros(shape), 5) > 0.1


def test_names_that_every_language_takes():
    assert [name_of(name) for name in ("ur10e", "2r arm", "pan-da/1", "")] == ["ur10e", "robot_2r_arm", "pan_da_1", "robot"]


def test_closed_robots_are_refused(tmp_path):
    robot = dynid.read_robot("examples/robots/four_bar.toml")
    with pytest.raises(InputError, match="closed loops"):
        write_c(robot, tmp_path / "bar.c")
