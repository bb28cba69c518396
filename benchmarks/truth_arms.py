"""Robots of ``truth.py``: chains of joints with known bodies, written as URDF by this file alone.

Nine arms, one of them with its fingers too, and a quadruped on a stand come from the wheel ``example-robot-data``, read by Pinocchio,
with whatever is no part of the arm locked; three are made here. What a run is given is a *description* of the arm: the same geometry,
masses off by up to 15 % and centres of mass by up to 10 %, as in a data sheet. Nothing of dynid is used.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, files
from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio as pin

TWIST = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
PITCH = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
STILL = np.eye(3)


@dataclass(frozen=True, eq=False)
class Body:
    """A joint and the body that it moves, in the joint's frame; SI units."""

    name: str
    prismatic: bool
    rotation: np.ndarray
    """Of the joint's frame in that of the joint before it."""
    position: np.ndarray
    axis: np.ndarray
    mass: float
    centre: np.ndarray
    inertia: np.ndarray
    """About the centre of mass."""
    low: float
    high: float
    speed: float
    above: int = -1
    """Number, from 1, of the body that carries it, 0 for the base; -1 for the one before it."""

    @property
    def parameters(self) -> dict[str, float]:
        """Ten standard parameters: mass, first moments, inertia about the origin of the joint's frame."""
        c, about = (
            self.centre,
            self.inertia + self.mass * (self.centre @ self.centre * np.eye(3) - np.outer(self.centre, self.centre)),
        )
        first = dict(zip(("mx", "my", "mz"), (self.mass * c).tolist(), strict=True))
        names = {"Ixx": (0, 0), "Ixy": (0, 1), "Iyy": (1, 1), "Ixz": (0, 2), "Iyz": (1, 2), "Izz": (2, 2)}
        return {"m": self.mass} | first | {name: float(about[at]) for name, at in names.items()}


@dataclass(frozen=True, eq=False)
class Arm:
    """Bodies from a fixed base: a chain, or a tree where they say which carries them."""

    name: str
    bodies: tuple[Body, ...]

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.bodies)

    @property
    def model(self) -> pin.Model:
        """For Pinocchio, from the URDF text."""
        return pin.buildModelFromXML(self.urdf)

    @property
    def urdf(self) -> str:
        """As a URDF file."""
        lines = [f'<robot name="{self.name}">', '  <link name="base"/>']
        for k, body in enumerate(self.bodies, 1):
            above = k - 1 if body.above < 0 else body.above
            frame = f'xyz="{_text(body.position)}" rpy="{_text(pin.rpy.matrixToRpy(body.rotation))}"'
            I = body.inertia
            tensor = " ".join(
                f'{name}="{float(I[at])!r}"'
                for name, at in {
                    "ixx": (0, 0),
                    "ixy": (0, 1),
                    "ixz": (0, 2),
                    "iyy": (1, 1),
                    "iyz": (1, 2),
                    "izz": (2, 2),
                }.items()
            )
            lines += [
                f'  <joint name="{body.name}" type="{"prismatic" if body.prismatic else "revolute"}">',
                f'    <parent link="{f"link{above}" if above else "base"}"/><child link="link{k}"/>',
                f'    <origin {frame}/><axis xyz="{_text(body.axis)}"/>',
                f'    <limit lower="{body.low!r}" upper="{body.high!r}" velocity="{body.speed!r}" effort="1000.0"/>',
                "  </joint>",
                f'  <link name="link{k}"><inertial><origin xyz="{_text(body.centre)}" rpy="0 0 0"/>',
                f'    <mass value="{body.mass!r}"/><inertia {tensor}/></inertial></link>',
            ]
        return "\n".join([*lines, "</robot>", ""])

    def described(self, rng: np.random.Generator) -> Arm:
        """As a data sheet has it: masses and inertias off by up to 15 %, centres of mass by up to 10 %."""
        bodies = []
        for body in self.bodies:
            share = float(rng.uniform(0.85, 1.15))
            centre = body.centre * rng.uniform(0.9, 1.1, 3)
            bodies.append(replace(body, mass=share * body.mass, centre=centre, inertia=share * body.inertia))
        return Arm(self.name, tuple(bodies))


def _text(values: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in values)


def _physical(inertia: np.ndarray) -> np.ndarray:
    """The inertia with a covariance of mass that is positive: shipped files break the triangle inequality here and there."""
    covariance = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    values, axes = np.linalg.eigh(covariance)
    kept = np.maximum(values, max(0.02 * values.max(), 1e-7))
    covariance = (axes * kept) @ axes.T
    return np.trace(covariance) * np.eye(3) - covariance


SHIPPED = {
    "ur5": ("ur_description/urdf/ur5_robot.urdf", ""),
    "ur10": ("ur_description/urdf/ur10_robot.urdf", ""),
    "panda": ("panda_description/urdf/panda.urdf", "panda_joint"),
    "kinova": ("kinova_description/robots/kinova.urdf", ""),
    "tiago": ("tiago_description/robots/tiago.urdf", "torso_lift_joint arm_1 arm_2 arm_3 arm_4 arm_5 arm_6 arm_7"),
    "talos": ("talos_data/robots/talos_left_arm.urdf", "arm_left"),
    "z1": ("z1_description/urdf/z1.urdf", "joint1 joint2 joint3 joint4 joint5 joint6"),
    "xarm7": ("xarm_description/urdf/xarm7.urdf", ""),
    "panda_hand": ("panda_description/urdf/panda.urdf", "panda"),
    "quadruped": ("solo_description/robots/solo12.urdf", ""),
    "so101": ("so_arm_description/urdf/so101.urdf", "shoulder elbow wrist"),
}
"""File of every shipped arm and how the names of its joints begin; empty for all of them."""


RECORDED = {"ur10e": "ur10e_mamedov/robot.urdf"}
"""Arms whose description lies with the public recordings, below ``DYNID_SHARED_DATA`` or ``../shared/data`` beside the repository."""


def recorded_arm(name: str) -> Arm:
    """An arm of :data:`RECORDED`."""
    folder = Path(os.environ.get("DYNID_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    if not (file := folder / RECORDED[name]).is_file():
        raise FileNotFoundError(f"{name} needs {file}; set DYNID_SHARED_DATA")
    return arm_from(name, file, ())


def shipped_arm(name: str) -> Arm:
    """An arm of the wheel, its other joints locked at their neutral position."""
    path, begins = SHIPPED[name]
    try:
        listed = files("example-robot-data") or []
    except PackageNotFoundError:
        raise SystemExit("truth needs the arms of example-robot-data: pip install example-robot-data") from None
    found = next((Path(str(file.locate())) for file in listed if str(file).endswith(path)), None)
    if found is None:
        raise SystemExit(f"example-robot-data has no {path}")
    return arm_from(name, found, tuple(begins.split()))


def arm_from(name: str, file: Path, kept: tuple[str, ...]) -> Arm:
    """The arm of a URDF file, joints whose names begin otherwise locked at their neutral position."""
    whole = pin.buildModelFromUrdf(str(file))
    locked = [k for k in range(1, whole.njoints) if kept and not whole.names[k].startswith(kept)]
    model = pin.buildReducedModel(whole, locked, pin.neutral(whole)) if locked else whole
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model), np.zeros(model.nv))
    bodies = []
    for k in range(1, model.njoints):
        S = np.asarray(data.joints[k].S).reshape(6)
        prismatic = bool(np.abs(S[:3]).max() > 0.5)
        inertia, at = model.inertias[k], model.joints[k].idx_q
        bounded = model.joints[k].nq == 1
        low, high = (
            float(x[at]) if bounded else side * np.pi
            for x, side in ((model.lowerPositionLimit, -1), (model.upperPositionLimit, 1))
        )
        bodies.append(
            Body(
                model.names[k], prismatic, model.jointPlacements[k].rotation.copy(), model.jointPlacements[k].translation.copy(),
                S[:3] if prismatic else S[3:], inertia.mass, inertia.lever.copy(), _physical(inertia.inertia.copy()),
                low, high, float(min(model.velocityLimit[model.joints[k].idx_v], 3.0)), int(model.parents[k]),
            )
        )  # fmt: skip
    return Arm(name, tuple(bodies))


def rod(name: str, rotation: np.ndarray, position: object, *, mass: float, length: float, along: int = 0, prismatic: bool = False,
        low: float = -2.6, high: float = 2.6, speed: float = 2.5) -> Body:  # fmt: skip
    """A body like a thick rod along an axis of its frame, a little off that axis, turning about or sliding along z."""
    centre = np.array([0.01, -0.015, 0.02])
    centre[along] += 0.45 * length
    thin, long = mass * 0.05**2 / 2.0, mass * (length**2 / 12.0 + 0.05**2 / 4.0)
    inertia = np.diag([thin if k == along else long for k in range(3)])
    inertia[0, 1] = inertia[1, 0] = 0.05 * thin
    return Body(
        name,
        prismatic,
        rotation,
        np.asarray(position, dtype=float),
        np.array([0.0, 0.0, 1.0]),
        mass,
        centre,
        inertia,
        low,
        high,
        speed,
    )


def own_arm(name: str) -> Arm:
    """Small arms that the wheel lacks."""
    if name == "scara":  # three vertical axes and a vertical slide
        bodies = (
            rod("shoulder", STILL, [0, 0, 0.3], mass=6.0, length=0.4),
            rod("elbow", STILL, [0.4, 0, 0], mass=3.5, length=0.35),
            rod(
                "quill", STILL, [0.35, 0, 0], mass=1.2, length=0.2, along=2, prismatic=True, low=-0.15, high=0.15, speed=0.6
            ),
            rod("roll", STILL, [0, 0, -0.1], mass=0.8, length=0.15, speed=4.0),
        )
    elif name == "rail":  # a horizontal rail below an arm of three joints
        bodies = (
            rod("rail", PITCH, [0, 0, 0.5], mass=25.0, length=0.3, prismatic=True, low=-1.0, high=1.0, speed=1.2),
            rod("waist", PITCH.T, [0, 0.1, 0], mass=8.0, length=0.3, along=2),
            rod("shoulder", PITCH, [0, 0, 0.3], mass=6.0, length=0.5),
            rod("elbow", STILL, [0.5, 0, 0], mass=3.0, length=0.45),
        )
    elif name == "planar2":  # two links in a vertical plane
        bodies = (
            rod("shoulder", PITCH, [0, 0, 1.0], mass=4.0, length=0.5),
            rod("elbow", STILL, [0.5, 0, 0], mass=2.0, length=0.4),
        )
    else:
        raise SystemExit(f"no robot '{name}'; known: {', '.join([*SHIPPED, *RECORDED, *OWN])}")
    return Arm(name, bodies)


OWN = ("scara", "rail", "planar2")
TUNE = ("ur5", "kinova", "talos", "xarm7", "scara", "planar2")
"""Robots on which thresholds of the verdict may be set."""
REPORT = ("ur10", "panda", "tiago", "z1", "rail", "so101")
"""Robots whose figures are quoted; nothing is set on them."""
ROBOTS = tuple(name for pair in zip(TUNE, REPORT, strict=True) for name in pair)


def arm_named(name: str) -> Arm:
    """One of :data:`ROBOTS`, with joints of different names."""
    arm = recorded_arm(name) if name in RECORDED else shipped_arm(name) if name in SHIPPED else own_arm(name)
    assert all(a.name != b.name for a, b in pairwise(arm.bodies))
    return arm
