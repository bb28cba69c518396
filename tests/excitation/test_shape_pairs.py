"""Shapes of MJCF and SDF kept apart: distances against MuJoCo's own, which shapes and pairs count, and capsules where there are none."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import mujoco
import numpy as np
import pytest

from cli_program import dynid
from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.errors import InputError
from dynid.excitation import shape_pairs
from dynid.excitation.collision import Clearance, clearance_of, usual_clearance
from dynid.excitation.shape_pairs import ShapePairs, capsule_shapes, capsule_to
from dynid.io.robots.read import read_robot
from dynid.io.robots.shapes import link_shapes
from dynid.model.robot import Robot
from messages import facts
from problems import arm_with_hand_urdf

MUJOCO_TOLERANCE_M = 1e-5
"""Both iterate: coal to about 1e-6 m, MuJoCo to 1e-6 m relative to the size of the bodies."""


WEDGE = np.array([[-0.05, -0.05, 0.0], [0.05, -0.05, 0.0], [0.0, 0.07, 0.0], [0.0, 0.0, 0.2]])


HAND = '<geom type="ellipsoid" size=".03 .06 .07" pos="0 0 .07"/><geom type="mesh" mesh="wedge" pos=".02 0 .1"/>'


ARM = """<mujoco model="arm">
  <compiler angle="degree"/>
  <default><geom density="1500"/><default class="look"><geom contype="0" conaffinity="0" group="2"/></default></default>
  <asset><mesh name="wedge" file="wedge.stl" scale="1 1.5 1"/></asset>
  <worldbody>
    {world}
    <body name="base" pos="0 0 .02">
      <geom type="cylinder" size=".09 .1" pos="0 0 .1"/>
      <body name="shoulder" pos="0 0 .25">
        <joint name="pan" axis="0 0 1" range="-170 170" ref="20"/>
        <geom type="sphere" size=".06"/>
        <body name="upper" pos="0 0 .05" euler="0 0 30">
          <joint name="lift" axis="0 1 0" pos=".01 0 .02" range="-120 120"/>
          <geom type="capsule" size=".05" fromto="0 0 0 .1 0 .35"/>
          <geom class="look" type="box" size=".3 .3 .3"/>
          <body name="fore" pos="0 0 .4">
            <joint name="elbow" axis="0 1 0" range="-150 150"/>
            <geom type="box" size=".04 .04 .12" pos="0 0 .14"/>
            <body name="hand" pos="0 0 .3">
              <joint name="wrist" axis="1 0 0" range="-110 110"/>
              {hand}
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <contact>{contact}</contact>
</mujoco>"""


TABLE = '<geom name="table" type="box" size=".1 .3 .1" pos=".55 0 .1"/>'


def stl(path: Path, points: np.ndarray = WEDGE) -> None:
    """A closed wedge as a binary STL."""
    faces = points[[[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]]
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *face.ravel(), 0) for face in faces)
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(faces)) + body)


def mjcf(folder: Path, hand: str = HAND, world: str = TABLE, contact: str = "") -> Path:
    stl(folder / "wedge.stl")
    path = folder / "arm.xml"
    path.write_text(ARM.format(hand=hand, world=world, contact=contact))
    return path


def poses(robot: Robot, count: int = 60) -> np.ndarray:
    low, high = robot.position_limits.T
    return np.random.default_rng(3).uniform(low, high, (count, robot.n_joints))


def by_names(clearance: Clearance, q: np.ndarray) -> dict[frozenset[str], np.ndarray]:
    """Smallest distance of any shapes of two owners in every pose."""
    found: dict[frozenset[str], np.ndarray] = {}
    for pair, distance in zip(clearance.pairs, clearance.distances(q).T, strict=True):
        names = frozenset(pair)
        found[names] = np.minimum(found.get(names, np.inf), distance)
    return found


def by_mujoco(path: Path, q: np.ndarray) -> dict[frozenset[str], np.ndarray]:
    """The same of all colliding geoms, by MuJoCo on the file itself; joints of the file are in the robot's order."""
    model = mujoco.MjModel.from_xml_path(str(path))
    state, segment = mujoco.MjData(model), np.zeros(6)
    hard = [g for g in range(model.ngeom) if model.geom_contype[g] or model.geom_conaffinity[g]]
    bodies = {g: int(model.geom_bodyid[g]) for g in hard}
    owner = {g: model.body(bodies[g]).name if bodies[g] else model.geom(g).name for g in hard}
    found: dict[frozenset[str], np.ndarray] = {}
    for row, position in enumerate(q):
        state.qpos[:] = position
        mujoco.mj_kinematics(model, state)
        for first, second in combinations(hard, 2):
            names = frozenset((owner[first], owner[second]))
            least = found.setdefault(names, np.full(len(q), np.inf))
            least[row] = min(least[row], mujoco.mj_geomDistance(model, state, first, second, 10.0, segment))
    return found


def test_distances_of_all_kinds_of_geoms_are_those_of_mujoco(tmp_path: Path) -> None:
    path = mjcf(tmp_path, world=TABLE + '<geom name="ground" type="plane" size="1 1 1"/>')
    robot = read_robot(path, "none")
    clearance = clearance_of(robot, least_m=0.0, ground_m=0.0)
    q = poses(robot)
    mine, reference = by_names(clearance, q), by_mujoco(path, q)
    # neighbours are no pairs; the table and the ground are pairs with every body that moves
    assert mine.keys() == {
        *(frozenset((body, outside)) for body in ("shoulder", "upper", "fore", "hand") for outside in ("table", "ground")),
        *map(frozenset, (("base", "upper"), ("base", "fore"), ("base", "hand"), ("shoulder", "fore"), ("shoulder", "hand"))),
        frozenset(("upper", "hand")),
    }
    compared = 0
    for names, distance in mine.items():
        apart = (distance > 0.0) | (reference[names] > 0.0)
        compared += int(apart.sum())
        np.testing.assert_allclose(
            distance[apart], reference[names][apart], atol=MUJOCO_TOLERANCE_M, err_msg=str(set(names))
        )
    assert compared > 500


def test_a_locked_joint_carries_its_shapes_along(tmp_path: Path) -> None:
    path = mjcf(tmp_path)
    robot = read_robot(path, "none", lock={"lift": 0.7})
    q = poses(robot, 20)
    whole = np.insert(q, 1, 0.7, axis=1)
    mine, reference = by_names(clearance_of(robot, least_m=0.0), q), by_mujoco(path, whole)
    names = frozenset(("hand", "table"))
    apart = reference[names] > 0.0
    np.testing.assert_allclose(mine[names][apart], reference[names][apart], atol=MUJOCO_TOLERANCE_M)


def test_looks_count_only_for_want_of_geoms_that_collide(tmp_path: Path) -> None:
    look = '<geom class="look" type="sphere" size=".2"/>'
    only, both = (
        clearance_of(read_robot(mjcf(tmp_path, hand=f'<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>{geoms}'), "none"))
        for geoms in (look, look + HAND)
    )
    assert "hand" in {name for pair in only.pairs for name in pair}
    q = np.zeros((1, 4))
    name = frozenset(("hand", "table"))
    assert by_names(only, q)[name][0] < by_names(both, q)[name][0] - 0.05
    # what is only drawn in the world is no body, and what a pair names is one
    world = '<geom name="mark" class="look" type="box" size=".1 .1 .1" pos=".5 0 .2"/>'
    marked = clearance_of(read_robot(mjcf(tmp_path, world=world), "none"))
    assert "mark" not in {name for pair in marked.pairs for name in pair}
    hand = HAND.replace("<geom ", '<geom name="palm" ', 1)
    paired = clearance_of(read_robot(mjcf(tmp_path, hand, world, '<pair geom1="mark" geom2="palm"/>'), "none"))
    assert ("mark", "hand") in paired.pairs


def test_a_table_may_be_a_body_of_its_own(tmp_path: Path) -> None:
    body = '<body name="table" pos=".55 0 0"><body name="top" pos="0 0 .1"><geom type="box" size=".1 .3 .1"/></body></body>'
    geom, apart = (clearance_of(read_robot(mjcf(tmp_path, world=world), "none")) for world in (TABLE, body))
    q = poses(geom.robot, 10)
    assert ("top", "shoulder") in apart.pairs  # the first body that moves is no neighbour of a table
    assert ("base", "shoulder") not in apart.pairs
    np.testing.assert_allclose(
        by_names(apart, q)[frozenset(("top", "hand"))], by_names(geom, q)[frozenset(("table", "hand"))], atol=1e-9
    )


def test_bodies_that_the_description_excludes_are_no_pair(tmp_path: Path) -> None:
    clearance = clearance_of(read_robot(mjcf(tmp_path, contact='<exclude body1="upper" body2="hand"/>'), "none"))
    assert not {("upper", "hand"), ("hand", "upper")} & set(clearance.pairs)
    assert any("excludes from contact" in note and "upper - hand" in note for note in clearance.notes)


def test_several_joints_on_one_body_join_it_to_its_parent(tmp_path: Path) -> None:
    path = mjcf(tmp_path)
    wrist = '<joint name="wrist" axis="1 0 0" range="-110 110"/>'
    text = path.read_text()
    assert wrist in text
    path.write_text(text.replace(wrist, wrist + '<joint name="roll" axis="0 0 1" range="-90 90"/>'))
    names = {frozenset(pair) for pair in clearance_of(read_robot(path, "none")).pairs}
    assert frozenset(("fore", "hand")) not in names
    assert frozenset(("upper", "hand")) in names


def test_the_floor_of_the_description_is_the_mounting_plane(tmp_path: Path) -> None:
    floor = '<geom name="floor" type="plane" size="1 1 1" pos="0 0 -.4"/><geom name="wall" type="plane" size="1 1 1" euler="0 90 0"/>'
    robot = read_robot(mjcf(tmp_path, world=floor), "none")
    clearance, told = usual_clearance(robot)
    assert clearance is not None
    assert any("floor of the description" in note and "-0.4" in note for note in told)
    assert any("'wall'" in note and "not level" in note for note in clearance.notes)
    down = np.array([[0.0, 1.9, 0.6, 0.0]])
    at_zero, _ = usual_clearance(robot, ground_m=0.0, assumed=False)
    assert at_zero is not None
    name = frozenset(("hand", "ground"))
    assert by_names(clearance, down)[name][0] == pytest.approx(by_names(at_zero, down)[name][0] + 0.4, abs=1e-6)


def test_a_box_in_the_world_that_reaches_below_the_plane_is_not_the_base(tmp_path: Path) -> None:
    slab = '<geom name="slab" type="box" size="2 2 .5" pos="0 0 -.5"/>'
    clearance, told = usual_clearance(read_robot(mjcf(tmp_path, world=slab), "none"))
    assert clearance is not None
    assert told == ()
    assert {("slab", "hand"), ("hand", "ground")} <= set(clearance.pairs)


def test_a_capsule_stands_for_a_link_whose_mesh_is_missing(tmp_path: Path) -> None:
    hand = f'<inertial mass="1" pos="0 0 .1" diaginertia=".01 .01 .004"/>{HAND}'
    path = mjcf(tmp_path, hand)
    (tmp_path / "wedge.stl").unlink()
    clearance = clearance_of(read_robot(path, "none"))
    assert any("'hand'" in note and "wedge.stl" in note and "is not there" in note for note in clearance.notes)
    names = {frozenset(pair) for pair in clearance.pairs}
    assert frozenset(("hand", "table")) in names  # the others keep their own shapes
    assert frozenset(("fore", "table")) in names
    with pytest.raises(InputError, match=facts("wedge.stl", "not there")):
        link_shapes(read_robot(path, "none"))


def test_an_obstacle_whose_mesh_is_missing_takes_no_other_with_it(tmp_path: Path) -> None:
    world = '<geom name="vase" type="mesh" mesh="wedge" pos="1 0 0"/>' + TABLE
    path = mjcf(tmp_path, hand='<geom type="box" size=".1 .1 .1"/>', world=world)
    names = {name for pair in clearance_of(read_robot(path, "none")).pairs for name in pair}
    assert {"vase", "table"} <= names
    (tmp_path / "wedge.stl").unlink()
    robot = read_robot(path, "none")
    without = clearance_of(robot)
    assert {name for pair in without.pairs for name in pair} == names - {"vase"}
    assert any("'vase'" in note and "wedge.stl" in note for note in without.notes)
    assert all(shape is not None for shape in link_shapes(robot))  # nor any link


def test_a_floating_robot_is_refused(tmp_path: Path) -> None:
    path = mjcf(tmp_path)
    path.write_text(path.read_text().replace('<body name="base" pos="0 0 .02">', '<body name="base"><freejoint/>'))
    done = dynid("excite", path, "--velocity", 1, "-o", tmp_path / "motion.csv")
    assert done.returncode == 2
    assert "floats" in done.stderr


def test_meshes_that_must_not_be_opened_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand = f'<inertial mass="1" pos="0 0 .1" diaginertia=".01 .01 .004"/>{HAND}'
    path = mjcf(tmp_path, hand)
    monkeypatch.setattr("dynid.io.robots.description.MOST_MESH_BYTES", 100)
    assert any("expected at most" in note for note in clearance_of(read_robot(path, "none")).notes)
    path.write_text(path.read_text().replace("wedge.stl", "../../../etc/wedge.stl"))
    with pytest.raises(InputError, match="expected one below"):
        clearance_of(read_robot(path, "none"))


def test_bodies_without_shapes_are_named(tmp_path: Path) -> None:
    bare = '<inertial mass="1" pos="0 0 .1" diaginertia=".01 .01 .004"/>'
    _, told = usual_clearance(read_robot(mjcf(tmp_path, hand=bare), "none"))
    assert any("shapes of these bodies are guessed" in note and note.endswith(": hand") for note in told)


def test_many_shapes_of_a_link_become_one_hull_that_contains_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = read_robot(mjcf(tmp_path), "none")
    each = clearance_of(robot, least_m=0.0)
    monkeypatch.setattr(shape_pairs, "MOST_SHAPES", 3)
    whole = clearance_of(robot, least_m=0.0)
    assert len(whole.pairs) < len(each.pairs)
    assert any("one convex hull" in note for note in whole.notes)
    q = poses(robot, 30)
    exact, hulls = by_names(each, q), by_names(whole, q)
    for names in hulls:
        assert (hulls[names] <= exact[names] + 1e-6).all()
        assert (hulls[names] >= exact[names] - 0.1).all()


def test_too_many_obstacles_are_refused(tmp_path: Path) -> None:
    crowd = '<replicate count="201" offset="0 0 1"><geom name="o" size=".01" pos="3 0 0"/></replicate>'
    with pytest.raises(InputError, match=facts("201", "200")):
        clearance_of(read_robot(mjcf(tmp_path, world=crowd), "none"))


SDF = """<sdf version="1.9"><model name="arm"><frame name="mark"><pose>0 0 .5 0 0 0</pose></frame>
  <link name="base"><inertial><mass>1</mass></inertial>
    <collision name="c"><pose>0 0 .1 0 0 0</pose>
    <geometry><cylinder><radius>.09</radius><length>.2</length></cylinder></geometry></collision></link>
  <link name="arm"><pose>0 0 .3 0 0 0</pose><inertial><mass>1</mass></inertial>
    <collision name="c"><pose relative_to="mark">.1 0 0 0 0 0</pose>
    <geometry><capsule><radius>.05</radius><length>.3</length></capsule></geometry>
    </collision><visual name="v"><geometry><box><size>2 2 2</size></box></geometry></visual></link>
  <link name="hand"><pose>0 0 .7 0 0 0</pose><inertial><mass>1</mass></inertial>{hand}</link>
  <joint name="w" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="lift" type="revolute"><parent>base</parent><child>arm</child>
    <axis><xyz>0 1 0</xyz><limit><lower>-2</lower><upper>2</upper></limit>
    </axis></joint>
  <joint name="bend" type="revolute"><parent>arm</parent><child>hand</child>
    <axis><xyz>0 1 0</xyz><limit><lower>-2</lower><upper>2</upper></limit>
    </axis></joint></model></sdf>"""


SDF_PARTS = (
    ("<box><size>.1 .2 .3</size></box>", '<geom type="box" size=".05 .1 .15"/>'),
    ("<sphere><radius>.1</radius></sphere>", '<geom type="sphere" size=".1"/>'),
    ("<ellipsoid><radii>.05 .1 .15</radii></ellipsoid>", '<geom type="ellipsoid" size=".05 .1 .15"/>'),
    ("<cylinder><radius>.1</radius><length>.3</length></cylinder>", '<geom type="cylinder" size=".1 .15"/>'),
    ("<mesh><uri>wedge.stl</uri><scale>1 1.5 1</scale></mesh>", '<geom type="mesh" mesh="wedge"/>'),
    ("<mesh><uri>model://here/wedge.stl</uri><scale>1 1.5 1</scale></mesh>", '<geom type="mesh" mesh="wedge"/>'),
)


AS_MJCF = """<mujoco><compiler angle="radian"/><asset><mesh name="wedge" file="wedge.stl" scale="1 1.5 1"/></asset><worldbody>
  <geom name="ground" type="plane" size="1 1 1"/><body name="base"><geom type="cylinder" size=".09 .1" pos="0 0 .1"/>
  <body name="arm" pos="0 0 .3"><joint axis="0 1 0" range="-2 2"/><geom type="capsule" size=".05 .15" pos=".1 0 .2"/>
  <body name="hand" pos="0 0 .4"><joint axis="0 1 0" range="-2 2"/>{hand}</body></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("shape", "geom"), SDF_PARTS)
def test_collisions_of_sdf_against_mujoco(tmp_path: Path, shape: str, geom: str) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    stl(folder / "wedge.stl")
    collision = f'<collision name="c"><geometry>{shape}</geometry></collision>'
    (folder / "arm.sdf").write_text(SDF.format(hand=collision))
    (folder / "arm.xml").write_text(AS_MJCF.format(hand=geom))
    robot = read_robot(folder / "arm.sdf", "none")
    clearance = clearance_of(robot, least_m=0.0, ground_m=0.0)
    q = poses(robot, 40)
    mine, reference = by_names(clearance, q), by_mujoco(folder / "arm.xml", q)
    assert mine.keys() == set(map(frozenset, (("base", "hand"), ("arm", "ground"), ("hand", "ground"))))
    for names, distance in mine.items():
        apart = (distance > 0.0) | (reference[names] > 0.0)
        assert apart.any()
        np.testing.assert_allclose(distance[apart], reference[names][apart], atol=MUJOCO_TOLERANCE_M)


@pytest.mark.parametrize(
    ("hand", "words"),
    [
        (
            '<collision name="c"><geometry><mesh><uri>../../../etc/x.stl</uri></mesh></geometry></collision>',
            ("hand", "expected one below"),
        ),
        (
            '<collision name="c"><geometry><mesh><uri>model://arm/../../../x.stl</uri></mesh></geometry></collision>',
            ("hand", "expected one below"),
        ),
        (
            '<collision name="c"><geometry><mesh><uri>http://a/x.stl</uri></mesh></geometry></collision>',
            ("http://a/x.stl", "file://"),
        ),
        (
            '<visual name="c"><geometry><mesh><uri>gone.stl</uri></mesh></geometry></visual>',
            ("hand", "gone.stl", "not there"),
        ),
        (
            '<collision name="c"><geometry><sphere><radius>-1</radius></sphere></geometry></collision>',
            ("hand", "-1", "more than zero"),
        ),
        (
            '<collision name="c"><geometry><mesh><uri>arm.sdf</uri></mesh></geometry></collision>',
            ("hand", "arm.sdf", "cannot be read"),
        ),
    ],
)
def test_shapes_of_sdf_that_cannot_be_had(tmp_path: Path, hand: str, words: tuple[str, ...]) -> None:
    folder = tmp_path / "robots" / "arm"
    folder.mkdir(parents=True)
    (folder / "arm.sdf").write_text(SDF.format(hand=hand))
    (note,) = (note for note in clearance_of(read_robot(folder / "arm.sdf", "none")).notes if "capsule" in note)
    assert all(word in note for word in words)


def test_a_designed_motion_keeps_clear_of_the_table_by_mujocos_distances(tmp_path: Path) -> None:
    path, out = mjcf(tmp_path), tmp_path / "motion.csv"
    options = (
        "--seconds",
        2,
        "--starts",
        1,
        "--period",
        5,
        "--harmonics",
        2,
        "--effects",
        "none",
        "--velocity",
        2,
        "--acceleration",
        8,
    )
    done = dynid("excite", path, *options, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "distance (asked 50 mm)" in done.stdout
    assert "capsule" not in done.stdout
    table = np.genfromtxt(out, delimiter=",", names=True)
    q = np.column_stack([table[f"q{k + 1}"] for k in range(4)])[::10]
    kept = by_names(clearance_of(read_robot(path, "none"), ground_m=0.0), q)
    reference = by_mujoco(path, q)
    least = min(float(reference[names].min()) for names in kept if "ground" not in names)
    assert least > 0.01 - MUJOCO_TOLERANCE_M


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(arm_with_hand_urdf())
    return path


def test_distance_of_capsules_is_that_of_their_axes_less_their_radii(urdf: Path) -> None:
    model = pinocchio_model(read_robot(urdf, "none").only(["pan_joint", "lift_joint"]))
    first, second = capsule_to("a", np.array([1.0, 0.0, 0.0]), 0.1), capsule_to("b", np.array([0.0, 0.0, 4.0]), 0.2)
    away = np.eye(4)
    away[:3, 3] = (0.5, 1.0, -2.0)
    solids = [(0, first), (0, replace(second, pose=away @ second.pose))]
    shapes = ShapePairs.on(model).with_solids(solids).with_pairs([(0, 1)])
    assert shapes.distances(np.zeros((1, 2)))[0, 0] == pytest.approx(1.0 - 0.1 - 0.2, abs=1e-6)


def test_hulls_follow_frames_and_inertia(urdf: Path) -> None:
    robot = read_robot(urdf, "none").only(["pan_joint", "lift_joint"])
    shapes = capsule_shapes(robot)
    levers = dict(zip(shapes.owners, shapes.levers, strict=True))
    # the lift link reaches through its centre of mass, about 0.3 m out, as far again
    assert levers["lift"] == pytest.approx(2.0 * robot.parameters.inertials[1, 1] / robot.parameters["m2"], abs=0.16)
    clearance, told = usual_clearance(robot)
    assert any("capsules" in note for note in told)
    q = np.array([[0.0, 0.0], [0.0, 1.4]])  # level, and down into the mounting plane
    level, down = (clearance.distances(one[None]).min() for one in q)
    assert level > 0.1
    assert down < 0.0
