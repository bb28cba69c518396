"""Obstacles, planes and tools: distances by plain geometry, and designed motions held against MuJoCo's own distances."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import dynid
from closed_robots import closed_robot
from dynid.dynamics.closed_chains import closures_of, feasible_positions, tree_positions
from dynid.errors import InputError
from dynid.excitation.collision import usual_clearance
from dynid.excitation.surroundings import stated_obstacles, tool_solid
from messages import facts
from problems import demo_arm

QUICK = {"period": 5.0, "harmonics": 2, "starts": 1, "seconds": 1.5, "engine": "serial"}


def world_distance(solid, point):
    """Signed distance of a point from a box, by its definition."""
    local = solid.pose[:3, :3].T @ (np.asarray(point) - solid.pose[:3, 3])
    out = np.abs(local) - np.array(solid.sizes)
    return float(np.linalg.norm(np.maximum(out, 0.0)) + min(out.max(), 0.0))


def test_planes_walls_and_ceilings_have_their_free_side_where_they_should():
    plane, ceiling, wall, other = stated_obstacles((), ("0,0,2,-0.4",), 1.5, ("x=0.8", "y=-0.6"))
    assert world_distance(plane, [0.3, 0.1, 0.3]) == pytest.approx(0.5)
    assert world_distance(ceiling, [0.3, 0.1, 1.2]) == pytest.approx(0.3)
    assert world_distance(wall, [0.1, 0.0, 0.0]) == pytest.approx(0.7)
    assert world_distance(other, [0.1, -0.5, 0.0]) == pytest.approx(0.1)
    assert world_distance(other, [0.1, -0.7, 0.0]) < 0.0


def test_a_turned_box_and_a_file_of_obstacles(tmp_path: Path):
    (turned,) = stated_obstacles((f"0.5,0,0.2,0.4,0.2,0.1,{np.pi / 2}",))
    assert world_distance(turned, [0.5, 0.3, 0.2]) == pytest.approx(0.1)
    file = tmp_path / "cell.toml"
    file.write_text(
        "ceiling = 2.0\n[[box]]\ncentre = [0.5, 0, 0.2]\nsize = [0.4, 0.2, 0.1]\n[[plane]]\nnormal = [1, 0, 0]\ndistance = -1"
    )
    box, plane, ceiling = stated_obstacles((str(file),))
    assert world_distance(box, [0.9, 0.0, 0.2]) == pytest.approx(0.2)
    assert world_distance(plane, [0.0, 0.0, 0.0]) == pytest.approx(1.0)
    assert world_distance(ceiling, [0.0, 0.0, 1.9]) == pytest.approx(0.1)
    scene = tmp_path / "cell.xml"
    scene.write_text('<mujoco><worldbody><geom name="post" type="box" size=".1 .1 1" pos="1 0 1"/></worldbody></mujoco>')
    (post,) = stated_obstacles((str(scene),))
    assert world_distance(post, [0.5, 0.0, 1.0]) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"box": ("1,2,3",)}, ("--box", "x,y,z,sx,sy,sz")),
        ({"box": ("0,0,0,1,-1,1",)}, ("edges", "positive")),
        ({"plane": ("0,0,0,1",)}, ("--plane", "normal")),
        ({"wall": ("z=1",)}, ("--wall", "x=PLACE")),
        ({"wall": ("x=0",)}, ("--wall", "through the base")),
        ({"box": ("0,0,0.3,4,4,4",)}, ("--box", "overlaps link", "%")),
        ({"tool_sphere": 0.1, "tool_box": (0.1, 0.1, 0.1)}, ("--tool-sphere", "--tool-box")),
        ({"ceiling": 1.0, "collision": False}, ("--ceiling", "--no-collision")),
    ],
)
def test_what_cannot_be_is_one_sentence(stated, told):
    with pytest.raises(InputError, match=facts(*told)):
        dynid.design_excitation(demo_arm(effects="none"), **stated, **QUICK)


def test_a_start_pose_in_collision_is_one_sentence():
    robot = demo_arm(effects="none")
    with pytest.raises(InputError, match=facts("start pose", "collision", "--box", "--shape fourier")):
        dynid.design_excitation(robot, shape="points", seconds=5.0, box=("0.1,0,1.05,0.3,0.3,0.2",))


def test_the_tool_is_kept_clear_of_a_ceiling_that_the_arm_would_reach():
    robot = demo_arm(effects="none")
    free = dynid.design_excitation(robot, **QUICK, ceiling=1.6)
    held = dynid.design_excitation(robot, **QUICK, ceiling=1.6, tool_sphere=0.12)
    from dynid.excitation.pose_limits import tool_path

    def highest(found):
        q = found.playable.evaluate(found.playable.grid(1000))[0]
        return tool_path(found.robot, q, found.limits.tool_body, found.limits.tool_point)[:, 2].max()

    assert highest(free) < 1.6 - 0.05
    assert highest(held) <= 1.6 - 0.12 - 0.05 + 1e-6
    assert tool_solid(None, None, np.zeros(3)) is None


def test_a_box_is_kept_clear_of_by_mujocos_own_distances():
    """The capsules of the arm and the box as MuJoCo geoms, moved by MuJoCo's kinematics of the exported model."""
    robot = demo_arm(effects="none")
    found = dynid.design_excitation(robot, **QUICK, box=("0.5,0.2,0.4,0.2,0.2,0.8",))
    shapes = found.limits.clearance.shapes
    spec = mujoco.MjSpec()
    parent = spec.worldbody
    bodies = [parent]
    for i in range(1, shapes.model.njoints):
        place, above = shapes.model.jointPlacements[i], bodies[shapes.model.parents[i]]
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, np.ascontiguousarray(place.rotation).ravel())
        body = above.add_body(pos=place.translation, quat=quat)
        axis = shapes.model.joints[i].axis if hasattr(shapes.model.joints[i], "axis") else robot.joints[i - 1].screw[3:]
        body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=np.array(axis))
        bodies.append(body)
    names = []
    for k, one in enumerate(shapes.geometry.geometryObjects):
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, np.ascontiguousarray(one.placement.rotation).ravel())
        kind, size = (
            (mujoco.mjtGeom.mjGEOM_CAPSULE, [one.geometry.radius, max(one.geometry.halfLength, 1e-6), 0.0])
            if type(one.geometry).__name__ == "Capsule"
            else (mujoco.mjtGeom.mjGEOM_BOX, one.geometry.halfSide)
        )
        names.append(f"g{k}")
        bodies[one.parentJoint].add_geom(
            name=names[-1], type=kind, size=size, pos=one.placement.translation, quat=quat, mass=1
        )
    model = spec.compile()
    data = mujoco.MjData(model)
    number = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, name) for name in names]  # MuJoCo sorts geoms by body
    box = number[shapes.owners.index("--box")]
    moving = [number[k] for k, joint in enumerate(shapes.joints) if joint > 0]
    smallest = np.inf
    for q in found.playable.evaluate(found.playable.grid(300))[0]:
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        smallest = min(smallest, *(mujoco.mj_geomDistance(model, data, k, box, 10.0, None) for k in moving))
    assert smallest >= 0.05 - 1e-4


@pytest.mark.parametrize("name", ["four_bar", "delta_rl5"])
def test_distances_of_a_closed_chain_have_the_slopes_of_differences(name):
    robot = closed_robot(name)
    kept, _ = usual_clearance(robot, ground_m=None)
    q = feasible_positions(robot, 40, np.random.default_rng(1))
    q = q[(kept.distances(q) > kept.least + 1e-3).all(axis=1)][:4]
    still = np.zeros_like(q)
    slack, pullback = kept.slacks(q, still, still)
    weights = np.random.default_rng(0).normal(size=slack.shape) * (slack < 1.0)
    found = pullback(weights)[0]
    for j in range(q.shape[1]):
        step = np.zeros_like(q)
        step[:, j] = 1e-6
        up, down = (kept.slacks(q + sign * step, still, still)[0] for sign in (1.0, -1.0))
        both = (up < 1.0) & (down < 1.0)
        expected = ((up - down) * weights * both).sum(axis=1) / 2e-6
        np.testing.assert_allclose(found[:, j], expected, rtol=2e-3, atol=2e-3)


def test_a_designed_motion_of_a_closed_chain_keeps_its_passive_joints_and_distances():
    robot = closed_robot("parallelogram_arm")
    found = dynid.design_excitation(robot, **QUICK)
    q = found.playable.evaluate(found.playable.grid(800))[0]
    tree = tree_positions(robot, q)
    for j in closures_of(robot).passive:
        joint = robot.joints[int(j)]
        assert joint.q_min - 1e-9 <= tree[:, j].min() <= tree[:, j].max() <= joint.q_max + 1e-9
    kept = found.limits.clearance
    assert (kept.distances(q) >= kept.least - 1e-6).all()
    assert isinstance(found.margins.clearance, float)
