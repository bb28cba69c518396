"""Closed chains of SDF: a link that hangs on two joints, against the same mechanism in a TOML file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dynid
from closed_robots import closed_robot
from dynid.arrays import Array
from dynid.dynamics.closed_chains import closures_of
from dynid.errors import InputError
from dynid.model.inertia import mass_com_inertia
from dynid.model.robot import Robot


def sdf_of(robot: Robot, kind: str = "revolute", axis: str = "<axis><xyz>0 0 1</xyz></axis>") -> str:
    """A closed robot as SDF whose joints are zero at its closed start; the closure is one more joint of ``kind``."""
    start = closures_of(robot).seeds.position[0]
    poses: list[Array] = []
    for joint, q in zip(robot.joints, start, strict=True):
        poses.append((poses[joint.parent] if joint.parent >= 0 else np.eye(4)) @ joint.pose(float(q)))

    def pose(T: Array) -> str:
        angles = Rotation.from_matrix(T[:3, :3]).as_euler("xyz")
        return "<pose>" + " ".join(repr(float(x)) for x in (*T[:3, 3], *angles)) + "</pose>"

    lines = ['<sdf version="1.8"><model name="closed">']
    for name, phi, T in zip(robot.links, robot.parameters.inertials, poses, strict=True):
        m, c, inertia = mass_com_inertia(phi)
        at = np.eye(4)
        at[:3, 3] = c
        names = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
        tensor = "".join(f"<{key}>{float(inertia[place])!r}</{key}>" for key, place in names.items())
        lines.append(
            f'<link name="{name}">{pose(T)}<inertial>{pose(at)}<mass>{float(m)!r}</mass><inertia>{tensor}</inertia></inertial></link>'
        )
    for joint, name in zip(robot.joints, robot.links, strict=True):
        parent = robot.links[joint.parent] if joint.parent >= 0 else "world"
        limit = f"<limit><effort>{joint.tau_max!r}</effort></limit>" if np.isfinite(joint.tau_max) else ""
        lines.append(
            f'<joint name="{joint.name}" type="revolute"><parent>{parent}</parent><child>{name}</child>'
            f"<axis><xyz>0 0 1</xyz>{limit}</axis></joint>"
        )
    (loop,) = robot.loops
    lines.append(
        f'<joint name="{loop.name}" type="{kind}">{pose(loop.second.placement)}<parent>{robot.links[loop.first.body]}</parent>'
        f"<child>{robot.links[loop.second.body]}</child>{axis}</joint></model></sdf>"
    )
    return "\n".join(lines)


@pytest.mark.parametrize(("name", "kind"), [("four_bar", "revolute"), ("five_bar", "revolute"), ("five_bar", "ball")])
def test_a_link_on_two_joints_closes_a_loop(tmp_path: Path, name: str, kind: str) -> None:
    truth = closed_robot(name, "none")
    path = tmp_path / "closed.sdf"
    path.write_text(sdf_of(truth, kind, "" if kind == "ball" else "<axis><xyz>0 0 1</xyz></axis>"))
    robot = dynid.read_robot(path, "none", truth.gravity)
    assert robot.loops.names == truth.loops.names
    assert robot.joint_names == truth.joint_names
    assert any("closes a loop on link" in note for note in robot.source.notes)
    rng = np.random.default_rng(0)
    closures = closures_of(truth)
    start = closures.seeds.actuated[0]
    q = start + rng.uniform(-0.2, 0.2, (20, len(start)))
    v, a = rng.normal(size=(2, 20, len(start)))
    expected = dynid.inverse_dynamics(truth, q, v, a)
    found = dynid.inverse_dynamics(robot, q - start, v, a)
    assert np.abs(found - expected).max() < 1e-8 * np.abs(expected).max()


def test_a_screw_that_closes_a_loop_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "closed.sdf"
    path.write_text(sdf_of(closed_robot("four_bar", "none"), "screw"))
    with pytest.raises(InputError, match=r"'rocker_pin' .* is a screw that closes a loop, expected revolute"):
        dynid.read_robot(path)
