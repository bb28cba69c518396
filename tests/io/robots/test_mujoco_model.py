"""Robots rebuilt in MuJoCo have the inverse dynamics of the same robots rebuilt in Pinocchio."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from dynid.dynamics import pinocchio_model as reference
from dynid.errors import InputError
from dynid.io.robots import mujoco_model as adapter
from dynid.io.robots.mjcf_new import inertial_attributes, mjcf_text, mujoco_model
from dynid.io.robots.mujoco_model import compile_mjcf, from_mujoco_force, to_mujoco_motion
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.joint import Joint
from dynid.model.robot import make_robot
from messages import facts
from problems import demo_arm, random_motion, random_tree


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_inverse_dynamics_agree_with_pinocchio(seed: int, floating: bool) -> None:
    robot = random_tree(seed, 7, floating, effects=[Armature()])
    q, v, a = random_motion(robot, 10, seed)
    expected = reference.inverse_dynamics(reference.pinocchio_model(robot), reference.to_pinocchio_position(robot, q), v, a)
    model = mujoco_model(robot, limits=False)
    forces = adapter.inverse_dynamics(model, *to_mujoco_motion(robot, q, v, a))
    np.testing.assert_allclose(from_mujoco_force(robot, q, forces), expected, atol=1e-11 * np.abs(expected).max())


def test_damping_and_friction_are_handed_over() -> None:
    robot = demo_arm([Viscous(), Coulomb(), Offset(), Armature()])
    model = mujoco_model(robot)
    for field, symbol in (("dof_damping", "fv"), ("dof_frictionloss", "fc"), ("dof_armature", "Ia")):
        np.testing.assert_array_equal(getattr(model, field), [robot.parameters[f"{symbol}{i}"] for i in range(1, 8)])
    np.testing.assert_array_equal(model.jnt_range, robot.position_limits)
    np.testing.assert_array_equal(model.jnt_actfrcrange[:, 1], robot.limits("tau_max"))
    plain = mujoco_model(robot, armature=False, friction=False, limits=False)
    assert not plain.dof_damping.any()
    assert not plain.dof_frictionloss.any()
    assert not plain.dof_armature.any()
    assert not plain.jnt_limited.any()


def test_viscous_friction_enters_inverse_dynamics() -> None:
    robot = demo_arm([Viscous()])
    q, v, a = random_motion(robot, 4)
    with_friction, without = (mujoco_model(robot, friction=friction, limits=False) for friction in (True, False))
    difference = adapter.inverse_dynamics(with_friction, q, v, a) - adapter.inverse_dynamics(without, q, v, a)
    np.testing.assert_allclose(difference, v * [robot.parameters[f"fv{i}"] for i in range(1, 8)], atol=1e-10)


def test_flange_is_a_site_at_its_place() -> None:
    robot = demo_arm("none")
    model = mujoco_model(robot)
    np.testing.assert_allclose(model.site("flange").pos, [0.0, 0.0, 0.11])
    assert model.body("hand").id == model.site("flange").bodyid[0]


def test_masses_and_moments_survive_to_the_last_digits() -> None:
    robot = demo_arm("none")
    model = mujoco_model(robot)
    np.testing.assert_array_equal(model.body_mass[1:], robot.parameters.inertials[:, 0])


def one_joint(phi: list[float], screw: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)) -> str:
    robot = make_robot("r", [Joint("j", "revolute", -1, np.eye(4), np.array(screw))], [phi], links=["part"])
    mujoco_model(robot)
    return mjcf_text(robot)


def test_a_flat_body_is_taken() -> None:
    """Izz = Ixx + Iyy exactly: rounding must not push it over the triangle inequality."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        ixx, iyy = rng.uniform(0.1, 1.0, 2)
        written = one_joint([1.0, 0, 0, 0, ixx, 0, iyy, 0, 0, ixx + iyy])
        assert '"part"' in written


@pytest.mark.parametrize(
    ("phi", "sentence"),
    [
        ([0.0] * 10, facts("'r'", "part", "MuJoCo", "mass")),
        ([1.0, 0, 0, 0, 1, 0, 1, 0, 0, 3], "inertia must satisfy A . B >= C"),
        ([-1.0, 0, 0, 0, 1, 0, 1, 0, 0, 1], "MuJoCo cannot compile"),
    ],
)
def test_bodies_that_mujoco_does_not_take_get_one_sentence(phi: list[float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        one_joint(phi)
    assert "\n" not in str(caught.value)


def test_what_mujoco_does_not_have_is_refused() -> None:
    body = [1.0, 0, 0, 0, 1, 0, 1, 0, 0, 1]
    with pytest.raises(InputError, match="joint 'j' is a helical joint"):
        one_joint(body, (0.0, 0.0, 0.1, 0.0, 0.0, 1.0))
    robot = demo_arm([Viscous()]).with_parameters({"fv3": -0.1})
    with pytest.raises(InputError, match=facts("upper_arm_roll", "-0.1", "MuJoCo", "joint")):
        mujoco_model(robot)
    with pytest.raises(InputError, match=facts("'x'", "MuJoCo")):
        compile_mjcf("<mujoco><wings/></mujoco>", "file 'x'")


def test_forward_then_inverse_returns_the_torque() -> None:
    """A free-fall step of the rebuilt model: inverse dynamics of its acceleration is zero torque."""
    robot = random_tree(5, 5)
    model = mujoco_model(robot, limits=False)
    state = mujoco.MjData(model)
    q, v, _ = random_motion(robot, 1)
    state.qpos[:], state.qvel[:] = q[0], v[0]
    mujoco.mj_forward(model, state)
    force = adapter.inverse_dynamics(model, q, v, state.qacc[None, :].copy())
    np.testing.assert_allclose(force, 0.0, atol=1e-9)


@pytest.mark.parametrize("shape", ["point", "rod", "plate"])
def test_degenerate_bodies_that_rounding_pushed_over_compile(shape: str) -> None:
    """Masses of merged links are shared out again: a point, a rod or a plate comes back with errors of the last digits."""
    moments = {"point": np.zeros(3), "rod": np.array([0.0, 0.2, 0.2]), "plate": np.array([0.1, 0.2, 0.3])}[shape]
    rng = np.random.default_rng(0)
    for _ in range(50):
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        noise = 1e-17 * rng.normal(size=(3, 3))
        stated = inertial_attributes(0.1, np.array([0.0, 0.1, 0.3]), R @ np.diag(moments) @ R.T + noise + noise.T)
        words = " ".join(f'{name}="{value}"' for name, value in stated.items())
        mujoco.MjModel.from_xml_string(
            '<mujoco><worldbody><body><joint/><geom size="1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
            f"<body><inertial {words}/></body></body></worldbody></mujoco>"
        )
