"""Shapes of URDF and SDF in new MJCF and SDF: where MuJoCo has them, against Pinocchio; what they weigh, touch and cannot be."""

from __future__ import annotations

import struct

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from dynid.io.robots.mjcf_write import write_mjcf
from dynid.io.robots.proof import file_parity
from dynid.io.robots.read import read_robot
from dynid.io.robots.sdf_write import write_sdf

BODY = (
    '<inertial><origin xyz="0.1 0 0"/><mass value="2"/>'
    '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def shape(tag, inside, origin='<origin xyz="0.3 0.1 0.05" rpy="0.1 0.2 0.3"/>', more=""):
    return f"<{tag}>{origin}<geometry>{inside}</geometry>{more}</{tag}>"


def arm(upper, fore, base=""):
    return (
        f'<robot name="arm"><material name="red"><color rgba="1 0 0 1"/></material><link name="base">{base}</link>'
        f'<link name="upper">{BODY}{upper}</link><link name="fore">{BODY}{fore}</link><link name="cap">'
        f"{shape('visual', '<sphere radius=' + chr(34) + '0.02' + chr(34) + '/>')}</link>"
        '<joint name="j1" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/></joint>'
        '<joint name="j2" type="continuous"><parent link="upper"/><child link="fore"/><origin xyz="0.5 0 0"/>'
        '<axis xyz="0 1 0"/></joint><joint name="f" type="fixed"><parent link="fore"/><child link="cap"/>'
        '<origin xyz="0.2 0 0.1"/></joint></robot>'
    )


def write_stl(path):
    """A tetrahedron of 0.1 m, binary, as MuJoCo wants it."""
    corners = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]])
    faces = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    path.parent.mkdir(parents=True, exist_ok=True)
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *corners[face].ravel(), 0) for face in faces)
    path.write_bytes(bytes(80) + struct.pack("<I", len(faces)) + body)
    return corners


@pytest.fixture
def home(tmp_path):
    write_stl(tmp_path / "pkg" / "meshes" / "part.stl")
    (tmp_path / "pkg" / "meshes" / "part.dae").write_text("<COLLADA/>")
    (tmp_path / "pkg" / "meshes" / "broken.stl").write_text("solid nothing")
    (tmp_path / "pkg" / "urdf").mkdir()
    (tmp_path / "out").mkdir()
    return tmp_path


def written(home, text):
    path = home / "pkg" / "urdf" / "arm.urdf"
    path.write_text(text)
    robot = read_robot(path, "viscous,coulomb,armature")
    out = write_mjcf(robot, home / "out" / "arm.xml")
    return robot, out, mujoco.MjModel.from_xml_path(str(out.path))


def several_shapes():
    """An arm with a box, a cylinder, a mesh and a sphere."""
    mesh = '<mesh filename="package://pkg/meshes/part.stl" scale="2 1 1"/>'
    return arm(
        shape("visual", '<box size="0.2 0.1 0.04"/>', more='<material name="red"/>')
        + shape("collision", '<cylinder radius="0.03" length="0.3"/>'),
        shape("visual", mesh) + shape("collision", '<sphere radius="0.07"/>'),
        shape("collision", '<box size="0.3 0.3 0.1"/>'),
    )


def test_shapes_are_where_pinocchio_has_them(home):
    robot, out, model = written(home, several_shapes())
    assert out.path.read_text().count('file="../pkg/meshes/part.stl"') == 1
    assert file_parity("mjcf", robot, out.path) < 1e-12
    state = mujoco.MjData(model)
    state.qpos[:] = [0.4, -0.7]
    mujoco.mj_forward(model, state)
    urdf = str(robot.source.path)
    theirs = pin.buildModelFromUrdf(urdf)
    data, q = theirs.createData(), np.array([np.cos(0.4), np.sin(0.4), np.cos(-0.7), np.sin(-0.7)])
    expected = {}
    for kind in (pin.GeometryType.VISUAL, pin.GeometryType.COLLISION):
        geometry = pin.buildGeomFromUrdf(theirs, urdf, kind, package_dirs=[str(home)])
        placed = geometry.createData()
        pin.updateGeometryPlacements(theirs, data, geometry, placed, q)
        for one, at in zip(geometry.geometryObjects, placed.oMg, strict=True):
            expected[one.name] = at
    names = {
        "upper_0": kind_of(model, mujoco.mjtGeom.mjGEOM_CYLINDER),
        "base_0": kind_of(model, mujoco.mjtGeom.mjGEOM_BOX, 1),
    }
    names["cap_0"] = kind_of(model, mujoco.mjtGeom.mjGEOM_SPHERE)
    names["fore_0"] = kind_of(model, mujoco.mjtGeom.mjGEOM_SPHERE, 1)  # collision shapes come after looks of the same name
    for name, geom in names.items():
        np.testing.assert_allclose(state.geom_xpos[geom], expected[name].translation, atol=1e-12)
        np.testing.assert_allclose(state.geom_xmat[geom].reshape(3, 3), expected[name].rotation, atol=1e-12)
    box = kind_of(model, mujoco.mjtGeom.mjGEOM_BOX, 0)
    np.testing.assert_allclose(model.geom_size[box], [0.1, 0.05, 0.02])
    np.testing.assert_allclose(model.geom_rgba[box], [1, 0, 0, 1])


def kind_of(model, kind, collides=0):
    found = [g for g in range(model.ngeom) if model.geom_type[g] == kind and model.geom_contype[g] == collides]
    return found[0] if found else next(g for g in range(model.ngeom) if model.geom_type[g] == kind)


def test_meshes_keep_their_scale_and_frame(home):
    mesh = '<mesh filename="../meshes/part.stl" scale="2 1 1"/>'
    _, _, model = written(home, arm(shape("visual", mesh), ""))
    state = mujoco.MjData(model)
    mujoco.mj_forward(model, state)
    geom = kind_of(model, mujoco.mjtGeom.mjGEOM_MESH)
    found = model.mesh_vert @ state.geom_xmat[geom].reshape(3, 3).T + state.geom_xpos[geom]
    corners = write_stl(home / "same.stl") * [2, 1, 1]
    expected = corners @ pin.rpy.rpyToMatrix(0.1, 0.2, 0.3).T + [0.3, 0.1, 0.05]
    distance = np.linalg.norm(found[:, None] - expected[None], axis=2)
    assert distance.min(axis=0).max() < 1e-7  # MuJoCo keeps meshes as 32 bit numbers
    assert distance.min(axis=1).max() < 1e-7


def test_shapes_have_no_mass_and_do_not_touch_each_other(home):
    wide = shape("collision", '<box size="2 2 2"/>')
    robot, _, model = written(home, arm(wide, wide + shape("visual", '<sphere radius="0.1"/>'), wide))
    assert model.body_mass.sum() == robot.parameters.inertials[:, 0].sum() == 4.0
    state = mujoco.MjData(model)
    mujoco.mj_forward(model, state)
    assert state.ncon == 0
    hard = model.geom_contype == 1
    assert hard.sum() == 3
    # hidden where the link has looks, drawn where it has none
    assert sorted(model.geom_group[hard]) == [0, 0, 3]
    spec = mujoco.MjSpec.from_file(str(home / "out" / "arm.xml"))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.2, 0, 0], pos=[1.0, 0, 0])
    touched = spec.compile()
    state = mujoco.MjData(touched)
    mujoco.mj_forward(touched, state)
    assert state.ncon > 0


def test_what_cannot_be_written_is_named(home):
    looks = "".join(
        shape("visual", f'<mesh filename="package://pkg/meshes/{name}"/>')
        for name in ("part.dae", "gone.stl", "broken.stl", "part.stl")
    )
    _, out, model = written(home, arm(looks, shape("visual", '<sphere radius="-1"/>')))
    notes = "\n".join(out.notes)
    assert "MuJoCo reads .stl, .obj, .msh alone" in notes
    assert "visual of 'upper' (part.dae)" in notes
    assert "their files cannot be had: visual of 'upper' ('package://pkg/meshes/gone.stl')" in notes
    assert "(broken.stl)" in notes
    assert "visual of 'fore'" in notes
    assert (model.ngeom, model.nmesh) == (2, 1)


def test_a_description_without_shapes_or_that_changed_says_so(home):
    robot, _, _ = written(home, arm("", ""))
    home.joinpath("pkg/urdf/arm.urdf").write_text(arm("", "") + "\n")
    assert any("has changed since" in note for note in write_mjcf(robot, home / "out" / "b.xml").notes)
    home.joinpath("pkg/urdf/arm.urdf").unlink()
    assert any("no longer there" in note for note in write_mjcf(robot, home / "out" / "c.xml").notes)


def test_shapes_of_sdf(tmp_path):
    inertial = "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"
    text = (
        f'<sdf version="1.9"><model name="m"><link name="base">{inertial}</link><link name="arm"><pose>0 0 0.5 0 0 0</pose>'
        f'{inertial}<visual name="v"><pose>0.2 0 0 0 0 0</pose><geometry><capsule><radius>0.05</radius><length>0.4</length>'
        "</capsule></geometry><material><diffuse>0 1 0 1</diffuse></material></visual>"
        '<collision name="c"><geometry><cone><radius>1</radius><length>1</length></cone></geometry></collision></link>'
        '<joint name="f" type="fixed"><parent>world</parent><child>base</child></joint>'
        '<joint name="j" type="revolute"><parent>base</parent><child>arm</child><axis><xyz>0 0 1</xyz></axis></joint>'
        "</model></sdf>"
    )
    path = tmp_path / "m.sdf"
    path.write_text(text)
    out = write_mjcf(read_robot(path), tmp_path / "m.xml")
    model = mujoco.MjModel.from_xml_path(str(out.path))
    state = mujoco.MjData(model)
    mujoco.mj_forward(model, state)
    np.testing.assert_allclose(state.geom_xpos, [[0.2, 0, 0.5]])
    np.testing.assert_allclose(model.geom_size[0, :2], [0.05, 0.2])
    np.testing.assert_allclose(model.geom_rgba[0], [0, 1, 0, 1])
    assert any("MJCF has no <cone>: collision of 'arm'" in note for note in out.notes)


def test_shapes_of_a_new_sdf_are_those_of_the_urdf(home):
    """Read back by MuJoCo's way of our MJCF, where shapes were compared with Pinocchio."""
    robot, _, expected = written(home, several_shapes())
    out = write_sdf(robot, home / "out" / "arm.sdf")
    assert file_parity("sdf", robot, out.path) < 1e-12
    again = read_robot(out.path, "viscous,coulomb,armature")
    found = mujoco.MjModel.from_xml_path(str(write_mjcf(again, home / "out" / "again.xml").path))
    assert found.ngeom == expected.ngeom == 6
    key = [placed_geoms(model) for model in (found, expected)]
    np.testing.assert_allclose(key[0], key[1], atol=1e-9)


def placed_geoms(model):
    """Kind, whether it touches, sizes, colour, place and turn of all geoms, in an order of their own."""
    state = mujoco.MjData(model)
    state.qpos[:] = [0.4, -0.7]
    mujoco.mj_forward(model, state)
    rows = np.column_stack(
        [model.geom_type, model.geom_contype, model.geom_size, model.geom_rgba, state.geom_xpos, state.geom_xmat]
    )
    return rows[np.lexsort(np.round(rows, 6).T[::-1])]


def test_meshes_that_gazebo_reads_are_kept_in_sdf(home):
    looks = "".join(shape("visual", f'<mesh filename="package://pkg/meshes/{name}"/>') for name in ("part.dae", "gone.stl"))
    robot, _, _ = written(home, arm(looks, shape("visual", '<sphere radius="-1"/>')))
    out = write_sdf(robot, home / "out" / "arm.sdf")
    assert out.path.read_text().count("<uri>../pkg/meshes/part.dae</uri>") == 1
    notes = "\n".join(out.notes)
    assert "their files cannot be had: visual of 'upper' ('package://pkg/meshes/gone.stl')" in notes
    assert "visual of 'fore'" in notes
