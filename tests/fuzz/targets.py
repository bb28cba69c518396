"""The readers that are fuzzed: seed files made from nothing, and a function that reads and uses what a mutated one says."""

from __future__ import annotations

import hashlib
import io
import json
import pickletools
import random
import shutil
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import dynid
from dynid.excitation.shapes import random_fourier
from dynid.pipeline.export import write_result
from fuzz.kept_targets import (
    make_checkpoint,
    make_hdf5,
    make_lerobot,
    make_lines,
    make_store,
    mutate_checkpoint,
    mutate_row,
    read_checkpoint,
    read_lines,
    read_store,
)
from fuzz.mutate import Mutator, mutate_bytes, mutate_json, mutate_text, mutate_xml

ROBOTS = Path(__file__).parents[2] / "examples" / "robots"
ROWS = 40


def no_reseal(_folder: Path) -> None:
    """Nothing to make fit again."""


@dataclass(frozen=True)
class Target:
    """A reader: its seed files (a file is the log, or several in a folder), what may be mutated, and the call."""

    name: str
    make: Callable[[Path], Path]
    """Writes the seed into an empty folder and returns the path to be read."""
    read: Callable[[Path], object]
    mutate: dict[str, Mutator]
    """Mutator by the end of a file's name."""
    reseal: Callable[[Path], object] = no_reseal
    """Called after a mutation: makes checksums fit again, so that what they protect is tried too."""


URDF = """<?xml version="1.0"?>
<robot name="two">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.1 0 0" rpy="0 0 0"/><mass value="2"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.1 0 0" rpy="0 0.1 0"/><mass value="1"/>
    <inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.05"/></inertial></link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.3" rpy="0 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="100"/><dynamics damping="0.1" friction="0.2"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0" rpy="0.1 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="50"/></joint>
  <joint name="mount" type="fixed"><parent link="lower"/><child link="tool"/><origin xyz="0.3 0 0"/></joint>
</robot>
"""
XACRO = """<?xml version="1.0"?>
<robot name="two" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="mass" value="2.0"/><xacro:arg name="side" default="left"/>
  <xacro:macro name="part" params="name m"><link name="${name}"><inertial><mass value="${m}"/>
    <inertia ixx="${0.05*m}" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link></xacro:macro>
  <xacro:property name="sizes" value="${dict(long=0.4, short=[0.1, 0.2])}"/>
  <xacro:macro name="tip" params="prefix:=${name} *origin **body"><link name="${prefix}_tip"/><joint name="${prefix}_mount" type="fixed">
    <parent link="upper"/><child link="${prefix}_tip"/><xacro:insert_block name="origin"/></joint>
    <xacro:insert_block name="body"/></xacro:macro>
  <link name="base"/><xacro:part name="upper" m="${mass}"/>
  <xacro:property name="name" value="$(arg side)"/>
  <xacro:tip prefix="a"><origin xyz="${sizes['long']} ${max(sizes['short'])} ${cos(pi / 3)}"/><body/></xacro:tip>
  <xacro:unless value="${'left' == name and not mass > 3}"><link name="spare"/></xacro:unless>
  <xacro:if value="${mass > 1}"><joint name="shoulder" type="continuous">
    <parent link="base"/><child link="upper"/><axis xyz="0 1 0"/></joint></xacro:if>
</robot>
"""
MJCF = """<mujoco model="two">
  <compiler angle="radian"/><option gravity="0 0 -9.81"/>
  <default><joint damping="0.1" armature="0.01"/></default>
  <worldbody><body name="upper" pos="0 0 0.3"><joint name="shoulder" type="hinge" axis="0 1 0" range="-2 2"/>
    <inertial pos="0.1 0 0" mass="2" diaginertia="0.1 0.1 0.1"/>
    <body name="lower" pos="0.4 0 0" quat="1 0 0 0"><joint name="elbow" type="slide" axis="0 1 0" range="-2 2" frictionloss="0.3"/>
      <geom type="capsule" size="0.03 0.1" mass="1"/></body></body></worldbody>
  <equality><joint joint1="elbow" joint2="shoulder" polycoef="0 1 0 0 0" active="false"/></equality>
  <actuator><motor name="m1" joint="shoulder" gear="50"/></actuator>
</mujoco>
"""
SDF = """<sdf version="1.9"><model name="two">
  <link name="base"/>
  <link name="upper"><pose relative_to="base">0 0 0.3 0 0 0</pose><inertial><pose>0.1 0 0 0 0 0</pose><mass>2</mass>
    <inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial></link>
  <link name="lower"><pose rotation_format="quat_xyzw">0.4 0 0.3 0 0 0 1</pose><inertial><mass>1</mass>
    <inertia><ixx>0.05</ixx><iyy>0.05</iyy><izz>0.05</izz></inertia></inertial></link>
  <joint name="shoulder" type="revolute"><pose>0 0 0 0 0 0</pose><parent>base</parent><child>upper</child>
    <axis><xyz>0 1 0</xyz><limit><lower>-2</lower><upper>2</upper>
    <velocity>3</velocity><effort>100</effort></limit><dynamics><damping>0.1</damping></dynamics></axis></joint>
  <joint name="elbow" type="revolute"><parent>upper</parent><child>lower</child><axis><xyz expressed_in="lower">0 1 0</xyz></axis></joint>
  <joint name="world_joint" type="fixed"><parent>world</parent><child>base</child></joint>
</model></sdf>
"""
DH = """name = "two"
gravity = [0.0, 0.0, -9.81]
dh_convention = "modified"

[[joint]]
name = "shoulder"
type = "revolute"
a = 0.0
alpha = 0.0
d = 0.3
theta_offset = 0.0
q_min = -2.0
q_max = 2.0
dq_max = 3.0
ddq_max = 9.0
tau_max = 100.0
fv = 0.1
fc = 0.2
armature = 0.1
inertial = { mass = 2.0, com = [0.1, 0.0, 0.0], inertia = { ixx = 0.1, ixy = 0, ixz = 0, iyy = 0.1, iyz = 0, izz = 0.1 } }

[[joint]]
name = "elbow"
type = "prismatic"
a = 0.4
alpha = 1.57
d = 0.0
theta_offset = 0.1
"""
LOOPS_URDF = """<robot name="four_bar"><link name="ground"/>{links}{joints}</robot>""".format(
    links="".join(
        f'<link name="{name}"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>'
        '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>'
        for name in ("crank", "coupler", "rocker")
    ),
    joints="".join(
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin xyz="{x} 0 0"/>'
        '<axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="5" effort="50"/></joint>'
        for name, parent, child, x in (
            ("drive", "ground", "crank", 0.0), ("knee", "crank", "coupler", 0.2), ("follow", "ground", "rocker", 0.4)
        )
    ),
)  # fmt: skip
LOOPS = """actuated = ["drive"]
friction = ["knee"]
[start]
drive = 1.0
knee = -0.9
follow = 1.2
[[loop]]
name = "closure"
closed = ["x", "y", "z", "rx", "ry"]
first = { link = "coupler", position = [0.4, 0.0, 0.0], rpy = [0.0, 0.0, 0.0] }
second = { link = "rocker", position = [0.3, 0.0, 0.0] }
"""
MAPPING = """time = "clock_ms"
position = "axis{number}.angle"
velocity = { shoulder = "w1", elbow = "w2" }
torque = ["load_a", "load_c"]
gear_ratios = [100, 100]
drive_gains = [10.0, 8.5]
[units]
time = "ms"
position = "deg"
[side]
torque = "motor"
[rename]
"load_b" = "load_c"
"""
BOUNDS_CSV = "name,lower,upper\nm1,0.5,3\nm2,0.1,\nIxx1,,1\ncx2,-0.1,0.1\n"
BOUNDS_TOML = "m1 = [0.5, 3.0]\ncx2 = [-0.1, 0.1]\n[constraints]\ntotal_mass = { upper = 27.0 }\n"
CONSTRAINTS = """[constraints]
total_mass = { lower = 1.0, upper = 27.0 }
[[constraints.mass]]
link = 1
lower = 0.5
upper = 4.0
[[constraints.com_box]]
link = 1
lower = [-0.2, -0.2, -0.2]
upper = [0.2, 0.2, 0.2]
[constraints.fixed]
m2 = 1.0
"""
RUN_FILE = """robot = "two.urdf"
logs = ["log.csv"]
validate = ["other.csv"]
output = "run"
[model]
effects = "viscous,coulomb"
gravity = [0, 0, -9.81]
lock = { elbow = 0.1 }
[reading]
rate_hz = 100.0
[rows]
cutoff_hz = 8.0
filter_order = 4
[estimation]
method = "sdp"
split = 0.65
[coupling]
"2:1" = 1
side = "motor"
gear_ratios = [100, 80]
[[spring]]
joint = 1
kind = "linear"
[[constraints.mass]]
link = 1
lower = 2.0
[[conditions]]
expression = "m1 > 2 * m2 if m2 > 0.5"
name = "heavier"
"""


def motion(joints: int = 2, seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    t = np.arange(ROWS) * 0.01
    phase, rate = rng.uniform(0.0, 6.0, joints), rng.uniform(1.0, 3.0, joints)
    q = np.sin(np.outer(t, rate) + phase)
    return {"t": t, "q": q, "dq": np.cos(np.outer(t, rate) + phase) * rate, "tau": 5.0 * q + rng.normal(size=q.shape)}


def text_log(columns: dict[str, np.ndarray], names: tuple[str, ...] = ()) -> str:
    flat: dict[str, np.ndarray] = {}
    for name, values in columns.items():
        flat |= {name: values} if values.ndim == 1 else {f"{name}{k + 1}": values[:, k] for k in range(values.shape[1])}
    header = names or tuple(flat)
    rows = zip(*(values.tolist() for values in flat.values()), strict=True)
    return "\n".join([",".join(header), *(",".join(f"{value:.6g}" for value in row) for row in rows)]) + "\n"


def writer(name: str, text: str | bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return folder / name

    return make


def _two(_: Path | None = None) -> dynid.Robot:
    """The robot of URDF above, read once."""
    global _ROBOT
    if _ROBOT is None:
        with tempfile.TemporaryDirectory() as folder:
            _ROBOT = dynid.read_robot(writer("two.urdf", URDF)(Path(folder)))
    return _ROBOT


_ROBOT: dynid.Robot | None = None


def read_and_use(path: Path) -> None:
    robot = dynid.read_robot(path)
    if robot.loops or any(joint.kind == "floating" for joint in robot.joints) or robot.n_joints > 20:
        return
    n = robot.n_joints
    with np.errstate(all="ignore"):
        dynid.inverse_dynamics(robot, np.full((1, n), 0.1), np.full((1, n), 0.2), np.full((1, n), 0.3))


def read_log(path: Path) -> object:
    from dynid.signals.checks import check_signals

    recording = dynid.read_recording(path, _two())
    return check_signals(recording, _two()) if isinstance(recording, dynid.Recording) else recording


def read_sensor(path: Path) -> object:
    from dynid.pipeline.data import read_sensor_logs

    return read_sensor_logs([path], _two())


def read_mapped(path: Path) -> object:
    log = path.with_name("log.csv")
    return dynid.read_recording(log, _two(), mapping=path)


def read_pose_table(path: Path) -> object:
    return dynid.read_recording(path, _two())


def read_commands(path: Path) -> object:
    from dynid.io.logs.read import read_recording

    return read_recording(path, ("shoulder", "elbow"), kind="motion")


def read_bounds(path: Path) -> object:
    from dynid.estimation.constraints.bounds import read_bounds as read

    return used_constraints(read(path).constraints)


def read_constraints(path: Path) -> object:
    from dynid.estimation.constraints.bounds import constraints_from_table, read_constraints_table

    return used_constraints(constraints_from_table(read_constraints_table(path)))


def used_constraints(known: Iterable[dynid.Constraint]) -> object:
    """Their rows for the robot of URDF above."""
    from dynid.estimation.constraints.base import Layout

    layout = Layout.of_parameters(_two().parameters, _two().links)
    with np.errstate(all="ignore"):
        return [one.rows(layout) for one in known]


def read_run_file(path: Path) -> object:
    from dynid.estimation.constraints.bounds import conditions_from_tables, constraints_from_table
    from dynid.pipeline.robot_setup import with_mechanisms
    from dynid.pipeline.run_file import read_run_file as read

    settings = read(path).settings({})
    conditions_from_tables(settings.conditions)
    used_constraints(constraints_from_table(settings.constraints))
    return with_mechanisms(_two(), settings)


def read_parameters(path: Path) -> object:
    from dynid.pipeline.folder import read_model

    robot = read_model(path)
    n = robot.n_joints
    with np.errstate(all="ignore"):
        if not robot.loops:
            dynid.inverse_dynamics(robot, np.full((1, n), 0.1), np.full((1, n), 0.2), np.full((1, n), 0.3))
    return dynid.read_parameters(path)


def read_run(path: Path) -> object:
    from dynid.pipeline.model_files import read_exports

    return dynid.load_result(path), read_exports(path)


def read_mesh(path: Path) -> object:
    from dynid.estimation.constraints.bodies import CentreOfMassInHull

    return CentreOfMassInHull.from_mesh(1, path).faces()


def read_motion(path: Path) -> object:
    from dynid.excitation.motion_files import read_coefficients

    return read_coefficients(path).samples(10.0)


def read_trajectory(path: Path) -> object:
    from dynid.excitation.motion_files import read_trajectory as read

    return read(path, _two())


def read_base_values(path: Path) -> object:
    from dynid.pipeline.base_check import read_base_values as read

    return read(path, path.with_name("grouping.csv"))


def read_coefficients(path: Path) -> object:
    from dynid.pipeline.coefficients import read_coefficients as read

    return read(path, _two())


def make_parquet(folder: Path) -> Path:
    data = motion()
    return Path(dynid.write_recording(recording(data), folder / "log.parquet"))


def recording(data: dict[str, np.ndarray]) -> dynid.Recording:
    from dynid.io.logs.read import read_recording

    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "log.csv"
        file.write_text(text_log(data))
        found = read_recording(file, _two())
        assert isinstance(found, dynid.Recording)
        return found


def make_npz(folder: Path) -> Path:
    np.savez_compressed(folder / "log.npz", **motion())
    return folder / "log.npz"


def make_bag(form: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        from rosbags.rosbag1 import Writer as Writer1
        from rosbags.rosbag2 import StoragePlugin
        from rosbags.rosbag2 import Writer as Writer2
        from rosbags.typesys import Stores, get_typestore

        store = get_typestore(Stores.ROS1_NOETIC if form == "bag" else Stores.ROS2_HUMBLE)
        kind, data, start = "sensor_msgs/msg/JointState", motion(), 1_700_000_000_000_000_000
        plugin = StoragePlugin.MCAP if form == "mcap" else StoragePlugin.SQLITE3
        made = folder / "made"
        with Writer1(folder / "log.bag") if form == "bag" else Writer2(made, version=9, storage_plugin=plugin) as bag:
            connection = bag.add_connection("/joint_states", kind, typestore=store)
            for k in range(8):
                stamp = start + k * 10_000_000
                time = store.types["builtin_interfaces/msg/Time"](sec=stamp // 10**9, nanosec=stamp % 10**9)
                header = store.types["std_msgs/msg/Header"](stamp=time, frame_id="", **({"seq": 0} if form == "bag" else {}))
                message = store.types[kind](
                    header=header,
                    name=["shoulder", "elbow"],
                    position=data["q"][k],
                    velocity=data["dq"][k],
                    effort=data["tau"][k],
                )
                raw = store.serialize_ros1(message, kind) if form == "bag" else store.serialize_cdr(message, kind)
                bag.write(connection, stamp, raw)
        if form != "bag":
            shutil.move(made / f"made.{form}", folder / f"log.{form}")
            shutil.rmtree(made)
        return folder / f"log.{form}"

    return make


def make_stl(folder: Path) -> Path:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype="<f4")
    faces = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    body = b"".join(np.zeros(3, "<f4").tobytes() + corners[list(face)].tobytes() + b"\0\0" for face in faces)
    (folder / "hull.stl").write_bytes(b"\0" * 80 + len(faces).to_bytes(4, "little") + body)
    return folder / "hull.stl"


def make_ascii_stl(folder: Path) -> Path:
    corners = ["0 0 0", "1 0 0", "0 1 0", "0 0 1"]
    faces = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    lines = ["solid hull"]
    for face in faces:
        lines += ["facet normal 0 0 1", "outer loop", *(f"vertex {corners[k]}" for k in face), "endloop", "endfacet"]
    (folder / "hull.stl").write_text("\n".join([*lines, "endsolid hull"]))
    return folder / "hull.stl"


OBJ = "o hull\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvn 0 0 1\nf 1 2 3\nf 1//1 2//1 4//1\nf 1 3 4\nf 2 3 4\n"


def pickle_of_tensors() -> bytes:
    """A pickle such as torch.save writes, put together from its opcodes: nothing here imports or runs anything."""
    out = io.BytesIO()
    out.write(b"\x80\x02}(")
    shapes = {"time": (ROWS,), "dof_pos": (ROWS, 2), "des_dof_pos": (ROWS, 2)}
    for number, (name, shape) in enumerate(shapes.items()):
        size = int(np.prod(shape))
        strides = (1,) if len(shape) == 1 else (2, 1)
        text = lambda word: b"X" + len(word).to_bytes(4, "little") + word.encode()  # noqa: E731
        whole = lambda value: b"J" + int(value).to_bytes(4, "little")  # noqa: E731
        out.write(text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n(")
        out.write(
            b"(" + text("storage") + b"ctorch\nDoubleStorage\n" + text(str(number)) + text("cpu") + whole(size) + b"tQ"
        )
        out.write(whole(0) + b"(" + b"".join(map(whole, shape)) + b"t(" + b"".join(map(whole, strides)) + b"t")
        out.write(b"\x89ccollections\nOrderedDict\n)RtR")
    out.write(b"u.")
    made = out.getvalue()
    assert sum(1 for _ in pickletools.genops(made)) > 20
    return made


def _torch_files() -> dict[str, bytes]:
    data = motion()
    return {
        "chirp/data.pkl": pickle_of_tensors(),
        "chirp/data/0": data["t"].tobytes(),
        "chirp/data/1": data["q"].tobytes(),
        "chirp/data/2": data["tau"].tobytes(),
    }


def make_torch(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "chirp.pt", "w") as archive:
        for name, content in _torch_files().items():
            archive.writestr(name, content)
    return folder / "chirp.pt"


def mutate_inside_zip(rng: random.Random, content: bytes) -> bytes:
    """A member of the archive mutated and packed again with its checksum right, or the archive's own bytes."""
    if rng.random() < 0.3:
        return mutate_bytes(rng, content)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        names = old.namelist()
        chosen = rng.choice(names)
        for name in names:
            data = old.read(name)
            if name == chosen:
                data = (
                    mutate_text(rng, data[:128]) + data[128:]
                    if name.endswith(".npy") and rng.random() < 0.7
                    else mutate_bytes(rng, data)
                )
            new.writestr(name, data)
    return out.getvalue()


def make_sage(folder: Path) -> Path:
    data = motion()
    for name in ("state_motor.csv", "control.csv"):
        rows = ["type,timestamp,positions,velocities,torques"]
        rows += [
            f'x,{t:.3f},"{q.tolist()}","{v.tolist()}","{tau.tolist()}"'
            for t, q, v, tau in zip(data["t"], data["q"], data["dq"], data["tau"], strict=True)
        ]
        (folder / name).write_text("\n".join(rows) + "\n")
    (folder / "joint_list.txt").write_text("shoulder\nelbow\n")
    return folder


def make_mapped(name: str, text: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        data = motion()
        columns = {
            "clock_ms": 1000 * data["t"], "axis1.angle": data["q"][:, 0], "axis2.angle": data["q"][:, 1], "w1": data["dq"][:, 0],
            "w2": data["dq"][:, 1], "load_a": data["tau"][:, 0], "load_b": data["tau"][:, 1],
        }  # fmt: skip
        (folder / "log.csv").write_text(text_log(columns))
        (folder / name).write_text(text)
        return folder / name

    return make


def make_wrench(folder: Path) -> Path:
    data, rng = motion(), np.random.default_rng(5)
    columns = {"t": data["t"], "q": data["q"], "dq": data["dq"]}
    columns |= {name: rng.normal(size=ROWS) for name in ("fx", "fy", "fz", "mx", "my", "mz")}
    (folder / "sensor.csv").write_text(text_log(columns))
    return folder / "sensor.csv"


def make_poses(folder: Path) -> Path:
    data, rng = motion(), np.random.default_rng(5)
    columns = {"q1": data["q"][:, 0], "q2": data["q"][:, 1]}
    columns |= {name: rng.normal(size=ROWS) for name in ("M11", "M21", "M22", "g1", "g2")}
    (folder / "poses.csv").write_text(text_log(columns))
    return folder / "poses.csv"


def make_sidecar(folder: Path) -> Path:
    dynid.write_parameters(_identified().model, folder / "arm.json", _identified().estimate)
    return folder / "arm.json"


_RUN: dynid.IdentificationResult | None = None


def _identified() -> dynid.IdentificationResult:
    """A run on two joints, made once in a process."""
    global _RUN
    if _RUN is None:
        place = Path(tempfile.mkdtemp(prefix="fuzz_run_"))
        robot = writer("two.urdf", URDF)(place)
        rng, t = np.random.default_rng(3), np.arange(2000) * 0.005
        rate = np.array([2.1, 3.3])
        q = np.sin(np.outer(t, rate)) + 0.3 * np.sin(np.outer(t, 2.5 * rate))
        v = np.gradient(q, t, axis=0)
        tau = dynid.inverse_dynamics(_two(), q, v, np.gradient(v, t, axis=0)) + 0.01 * rng.normal(size=q.shape)
        (place / "log.csv").write_text(text_log({"t": t, "q": q, "dq": v, "tau": tau}))
        settings = dynid.Settings(method="wls", cutoff_hz=10.0, split=0.6)
        _RUN = dynid.identify(robot, place / "log.csv", settings)
    return _RUN


def make_run(folder: Path) -> Path:
    write_result(_identified(), folder / "run", formats=["json"])
    for name in ("report.html", "figures"):
        gone = folder / "run" / name
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    reseal_run(folder)
    return folder / "run"


def reseal_run(folder: Path) -> None:
    """The hashes of a run's files made right again, as somebody who forges one would."""
    from dynid.pipeline.manifest import sealed

    path = folder / "run" / "run.json"
    try:
        record = json.loads(path.read_bytes())
        files = record["files"]
        for name in list(files):
            file = folder / "run" / name
            if file.is_file():
                files[name] = hashlib.sha256(file.read_bytes()).hexdigest()
            else:
                del files[name]
        path.write_text(json.dumps(sealed(record)))
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
        return


def make_motion(folder: Path) -> Path:
    return Path(dynid.write_motion(random_fourier(_two(), period_s=5.0), folder / "motion.json", ("a", "b")))


def make_trajectory(folder: Path) -> Path:
    from dynid.excitation.motion_files import write_motion

    return Path(write_motion(random_fourier(_two(), period_s=2.0).samples(20.0), folder / "motion.csv"))


def make_base_values(folder: Path) -> Path:
    (folder / "values.csv").write_text("name,value\nb1,1.0\nb2,0.2\n")
    (folder / "grouping.csv").write_text(
        "name,m1,mx1,my1,mz1,Ixx1,Ixy1,Iyy1,Ixz1,Iyz1,Izz1\nb1,1,0,0,0,0,0,0,0,0,0\nb2,0,0,0,0,0,0,0,0,0,1\n"
    )
    return folder / "values.csv"


def make_coefficients(folder: Path) -> Path:
    (folder / "known.csv").write_text("expression,value,sigma_percent\nm1 + m2,3.0,1\nIyy1 + 0.16 m2,0.3,2\nmx2,0.1,1\n")
    return folder / "known.csv"


LIMITS = """joint_limits:
  shoulder: &usual {has_velocity_limits: true, max_velocity: 2.0, has_acceleration_limits: true, max_acceleration: 5.0, max_effort: 50}
  elbow: {<<: *usual, max_jerk: 100.0, min_position: -1.5, max_position: 1.5}
"""
SCENE = """ceiling = 2.5
[[box]]
centre = [0.5, 0.0, 0.2]
size = [0.2, 0.2, 0.4]
yaw = 0.3
[[plane]]
normal = [0.0, 1.0, 0.0]
distance = -0.8
"""


def read_limits(path: Path) -> object:
    from dynid.excitation.acceleration_limits import read_robot_limits

    return read_robot_limits(path, _two())


def read_scene(path: Path) -> object:
    from dynid.excitation.surroundings import stated_obstacles

    return stated_obstacles(boxes=(str(path),))


def read_tool(path: Path) -> object:
    from dynid.apps.payload.options import PayloadSettings

    return PayloadSettings(tool=str(path)).for_run(_identified())


def make_loops(folder: Path) -> Path:
    (folder / "bar.urdf").write_text(LOOPS_URDF)
    (folder / "bar.loops.toml").write_text(LOOPS)
    return folder / "bar.urdf"


TARGETS = {
    target.name: target
    for target in (
        Target("urdf", writer("two.urdf", URDF), read_and_use, {".urdf": mutate_xml}),
        Target("xacro", writer("two.xacro", XACRO), read_and_use, {".xacro": mutate_xml}),
        Target("mjcf", writer("two.xml", MJCF), read_and_use, {".xml": mutate_xml}),
        Target("sdf", writer("two.sdf", SDF), read_and_use, {".sdf": mutate_xml}),
        Target("dh", writer("two.toml", DH), read_and_use, {".toml": mutate_text}),
        Target(
            "dh_springs",
            writer("c.toml", (ROBOTS / "counterbalanced.toml").read_bytes()),
            read_and_use,
            {".toml": mutate_text},
        ),
        Target(
            "dh_coupling",
            writer("c.toml", (ROBOTS / "coupled_wrist.toml").read_bytes()),
            read_and_use,
            {".toml": mutate_text},
        ),
        Target("dh_loops", writer("c.toml", (ROBOTS / "four_bar.toml").read_bytes()), read_and_use, {".toml": mutate_text}),
        Target("loops", make_loops, read_and_use, {".loops.toml": mutate_text}),
        Target("csv", writer("log.csv", text_log(motion())), read_log, {".csv": mutate_text}),
        Target("poses", make_poses, read_pose_table, {".csv": mutate_text}),
        Target("wrench", make_wrench, read_sensor, {".csv": mutate_text}),
        Target("parquet", make_parquet, read_log, {".parquet": mutate_bytes}),
        Target("npz", make_npz, read_log, {".npz": mutate_inside_zip}),
        Target("mcap", make_bag("mcap"), read_log, {".mcap": mutate_bytes}),
        Target("db3", make_bag("db3"), read_log, {".db3": mutate_bytes}),
        Target("bag", make_bag("bag"), read_log, {".bag": mutate_bytes}),
        Target("pt", make_torch, read_commands, {".pt": mutate_inside_zip}),
        Target("sage", make_sage, read_commands, {".csv": mutate_text, ".txt": mutate_text}),
        Target("mapping", make_mapped("map.toml", MAPPING), read_mapped, {".toml": mutate_text}),
        Target(
            "mapping_json", make_mapped("map.json", json.dumps(tomllib.loads(MAPPING))), read_mapped, {".json": mutate_json}
        ),
        Target("bounds_csv", writer("bounds.csv", BOUNDS_CSV), read_bounds, {".csv": mutate_text}),
        Target("bounds_toml", writer("bounds.toml", BOUNDS_TOML), read_bounds, {".toml": mutate_text}),
        Target("constraints", writer("known.toml", CONSTRAINTS), read_constraints, {".toml": mutate_text}),
        Target("run_file", writer("dynid.toml", RUN_FILE), read_run_file, {".toml": mutate_text}),
        Target("sidecar", make_sidecar, read_parameters, {".json": mutate_json, ".npz": mutate_inside_zip}),
        Target("run", make_run, read_run, {".json": mutate_json, ".npz": mutate_inside_zip}, reseal_run),
        Target("run_raw", make_run, read_run, {".json": mutate_text, ".npz": mutate_bytes, ".urdf": mutate_xml}),
        Target("limits", writer("limits.yaml", LIMITS), read_limits, {".yaml": mutate_text}),
        Target("scene", writer("scene.toml", SCENE), read_scene, {".toml": mutate_text}),
        Target("tool", writer("tool.json", json.dumps({"phi": [1.0] * 10})), read_tool, {".json": mutate_json}),
        Target("store", make_store, read_store, {".parquet": mutate_row}),
        Target(
            "store_index",
            make_store,
            read_store,
            {"store.json": mutate_json, "channels.npz": mutate_inside_zip, "run.json": mutate_text},
        ),
        Target("checkpoint", make_checkpoint, read_checkpoint, {".npz": mutate_checkpoint}),
        Target("lines", make_lines, read_lines, {".txt": mutate_text}),
        Target("lerobot", make_lerobot, read_commands, {"info.json": mutate_json, ".parquet": mutate_bytes}),
        Target("hdf5", make_hdf5, read_log, {".h5": mutate_bytes}),
        Target("stl", make_stl, read_mesh, {".stl": mutate_bytes}),
        Target("stl_text", make_ascii_stl, read_mesh, {".stl": mutate_text}),
        Target("obj", writer("hull.obj", OBJ), read_mesh, {".obj": mutate_text}),
        Target("motion", make_motion, read_motion, {".json": mutate_json}),
        Target("trajectory", make_trajectory, read_trajectory, {".csv": mutate_text}),
        Target("base_values", make_base_values, read_base_values, {".csv": mutate_text}),
        Target("coefficients", make_coefficients, read_coefficients, {".csv": mutate_text}),
    )
}
