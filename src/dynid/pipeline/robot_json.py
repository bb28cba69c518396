"""A JSON file with an ``.npz`` beside it for what robot formats cannot hold.

Friction of any kind with its options, torque offsets, base parameters with their expressions and origins, covariance, and
the matrices that lead from one set of parameters to the other: ``beta = K phi``, ``phi = lift beta + (1 - lift K) phi``.
Numbers in JSON read back as the same doubles. The file has the whole tree of joints and links too, so that it can be checked
and repaired on its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.codec import read_fields, to_record
from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.estimation.result import Estimate
from dynid.files import read_arrays, read_json, read_limited, write_atomically, write_json
from dynid.io.robots.description import read_description
from dynid.io.robots.proof import PARITY, largest_gap
from dynid.io.robots.simulator_joint import WrittenModel, inconsistent_links
from dynid.model.effects import effect_from_dict, effect_to_dict
from dynid.model.effects.effect import Effect
from dynid.model.joint import Joint, MergedLink
from dynid.model.loops import Closure, Frame, JointTie, Loop, Loops
from dynid.model.robot import Robot, make_robot
from dynid.regression.base import reduce_to_base

FORMAT = "dynid parameters 1"
DAMAGED = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
"""What reading a value of another type or size than expected raises."""
_LIMITS = {"q_min": -np.inf, "q_max": np.inf, "dq_max": np.inf, "ddq_max": np.inf, "tau_max": np.inf}
"""Limits of a joint, and what each is where there is none; JSON has null for that."""


@dataclass(frozen=True, eq=False)
class Sidecar:
    """What a sidecar file holds, read again."""

    robot: str
    joints: tuple[str, ...]
    gravity: Array
    parameters: Mapping[str, float]
    units: Mapping[str, str]
    effects: tuple[Effect, ...]
    base_values: Mapping[str, float]
    """Empty where the file was written without an estimate; so are the arrays below."""
    origin: Mapping[str, str]
    sigma: Array
    covariance: Array
    K: Array
    lift: Array


def write_parameters(robot: Robot, path: str | os.PathLike[str], estimate: Estimate | None = None) -> WrittenModel:
    """Write the robot's parameters as JSON, and with an estimate its base parameters and their covariance.

    Links that are not physically consistent are written as they are and named.

    Args:
        robot: with the parameters to write.
        path: ``.json`` file to write.
        estimate: the estimate that the parameters came from; None for parameters alone.

    Returns:
        the file, with the arrays beside it as its companion.

    Examples:
        >>> import dynid
        >>> dynid.write_parameters(dynid.demo_robot(), "arm.json").path.name
        'arm.json'
    """
    target = Path(path)
    if target.suffix != ".json":
        raise InputError(f"cannot write parameters to '{target}': expected the suffix .json")
    bad = inconsistent_links(robot)
    notes = [f"links {', '.join(bad)} are not physically consistent"] if bad else []
    record: dict[str, Any] = {
        "format": FORMAT,
        "robot": robot.name,
        "conventions": (
            "SI and radians; ten parameters a link, m mx my mz Ixx Ixy Iyy Ixz Iyz Izz, inertia about the origin of the "
            "link's frame; tau = Y(q, v, a) phi with the effects beside it"
        ),
        "gravity": robot.gravity,
        "joints": [_joint_record(joint, link) for joint, link in zip(robot.joints, robot.links, strict=True)],
        "merged_links": [
            {"name": link.name, "body": link.body, "placement": link.placement, "parameters": link.phi}
            for link in robot.merged
        ],
        "parameters": robot.parameters.as_dict(),
        "units": dict(zip(robot.parameters.names, robot.parameters.units, strict=True)),
        "effects": [_effect_record(robot, effect) for effect in robot.effects],
        "coupling": to_record(robot.coupling),
        "inconsistent_links": list(bad),
    }
    if robot.loops:
        record["loops"] = _loops_record(robot.loops)
    if robot.absent:
        record["absent"] = list(robot.absent)
    companions: tuple[Path, ...] = ()
    if estimate is not None:
        if estimate.standard.names != robot.parameters.names:
            raise InputError(
                f"the estimate has {len(estimate.standard)} parameters, robot '{robot.name}' has {len(robot.parameters)}, "
                "or other names"
            )
        notes += _neglected(robot, estimate)
        arrays = target.with_suffix(".npz")
        record["estimate"] = _estimate_record(estimate) | {"arrays": arrays.name}
        content = {
            "base_values": estimate.base_values,
            "sigma": estimate.sigma,
            "covariance": estimate.covariance,
            "K": estimate.base.K,
            "lift": estimate.base.lift,
        }
        write_atomically(arrays, lambda temporary: np.savez_compressed(temporary, allow_pickle=False, **content))
        companions = (arrays,)
    return WrittenModel(write_json(target, record), "json", False, tuple(notes), companions)


def _loops_record(loops: Loops) -> dict[str, Any]:
    return {
        "actuated": list(loops.actuated),
        "friction": list(loops.rubbing),
        "start": loops.start,
        "closures": [
            {"name": one.name, "joints": [one.follower, one.leader], "polynomial": list(one.coefficients)}
            if isinstance(one, JointTie)
            else {
                "name": one.name,
                "closed": list(one.closed),
                "bodies": [one.first.body, one.second.body],
                "placements": [one.first.placement, one.second.placement],
            }
            for one in loops
        ],
    }


def _loops(record: Mapping[str, Any] | None) -> Loops | None:
    if record is None:
        return None
    closures: list[Closure] = []
    for one in record["closures"]:
        if "polynomial" in one:
            follower, leader = (int(number) for number in one["joints"])
            closures.append(JointTie(one["name"], follower, leader, tuple(float(c) for c in one["polynomial"])))
            continue
        first, second = (
            Frame(int(body), _pose(pose, "placement of a loop"))
            for body, pose in zip(one["bodies"], one["placements"], strict=True)
        )
        closures.append(Loop(one["name"], first, second, tuple(one["closed"])))
    return Loops(
        tuple(closures), tuple(record["actuated"]), tuple(record["friction"]), np.array(record["start"], dtype=float)
    )


def _joint_record(joint: Joint, link: str) -> dict[str, Any]:
    return {
        "name": joint.name,
        "type": joint.kind,
        "link": link,
        "parent": joint.parent,
        "placement": joint.placement,
        "screw": joint.screw,
        "limits": {name: getattr(joint, name) for name in _LIMITS},
        "nominal": dict(joint.nominal),
    }


def _effect_record(robot: Robot, effect: Effect) -> dict[str, Any]:
    driven = [(i + 1, robot.joints[i]) for i in robot.effect_joints]
    columns = effect.columns([number for number, _ in driven], [joint for _, joint in driven])
    return {
        "name": effect.name,
        "law": " ".join((type(effect).__doc__ or "").split("\n\n")[0].split()),
        "options": {name: value for name, value in effect_to_dict(effect).items() if name != "name"},
        "parameters": [column.name for column in columns],
    }


def _estimate_record(estimate: Estimate) -> dict[str, Any]:
    base = estimate.base
    rows = zip(
        base.names,
        base.expressions(),
        estimate.base_values.tolist(),
        estimate.sigma.tolist(),
        estimate.origin,
        strict=True,
    )
    return {
        "method": estimate.method,
        "n_samples": estimate.n_samples,
        "relative_error": estimate.relative_error,
        "condition_number": estimate.condition_number,
        "base": [
            {"name": name, "expression": text, "value": value, "sigma": sigma, "origin": origin}
            for name, text, value, sigma, origin in rows
        ],
    }


def read_parameters(path: str | os.PathLike[str]) -> Sidecar:
    """The content of a sidecar file and of the arrays beside it.

    Args:
        path: the ``.json`` file.

    Returns:
        parameters by name with their units, and those of an estimate where the file has one.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_parameters(dynid.demo_robot(), "arm.json")
        >>> dynid.read_parameters("arm.json").robot
        'demo_arm'
    """
    place = Path(path)
    record = _read_record(place)
    try:
        estimate = record.get("estimate")
        arrays = {"sigma": np.zeros(0), "covariance": np.zeros((0, 0)), "K": np.zeros((0, 0)), "lift": np.zeros((0, 0))}
        if estimate is not None:
            file = place.with_name(Path(estimate["arrays"]).name)
            found = read_arrays(read_limited(file, f"arrays '{file.name}' beside '{place}'"), file, tuple(arrays))
            arrays = {name: found[name] for name in arrays}
        rows = [] if estimate is None else estimate["base"]
        return Sidecar(
            robot=record["robot"],
            joints=tuple(joint["name"] for joint in record["joints"]),
            gravity=freeze(record["gravity"]),
            parameters=dict(record["parameters"]),
            units=dict(record["units"]),
            effects=_effects(record),
            base_values={row["name"]: row["value"] for row in rows},
            origin={row["name"]: row["origin"] for row in rows},
            **{name: freeze(values) for name, values in arrays.items()},
        )
    except DAMAGED as error:
        raise InputError(f"'{place}' is damaged: it lacks or misstates {error}") from None


def _read_record(place: Path) -> dict[str, Any]:
    record = read_json(place, "parameter file")
    if record.get("format") != FORMAT:
        raise InputError(f"'{place}' has format '{record.get('format')}', expected '{FORMAT}'")
    return record


def _effects(record: Mapping[str, Any]) -> tuple[Effect, ...]:
    return tuple(effect_from_dict({"name": one["name"]} | one["options"]) for one in record["effects"])


def robot_from_sidecar(path: str | os.PathLike[str]) -> Robot:
    """The robot of a sidecar file, with its effects and parameters; the arrays beside it are not needed."""
    place = Path(path)
    record = _read_record(place)
    try:
        joints = [
            Joint(
                _text(one["name"], "name of a joint"),
                one["type"],
                int(one["parent"]),
                _pose(one["placement"], f"placement of joint '{one['name']}'"),
                _numbers(one["screw"], (6,), f"screw of joint '{one['name']}'"),
                **{name: none if one["limits"][name] is None else one["limits"][name] for name, none in _LIMITS.items()},
                nominal=one["nominal"],
            )
            for one in record["joints"]
        ]
        merged = [
            MergedLink(
                _text(one["name"], "name of a merged link"),
                int(one["body"]),
                _pose(one["placement"], f"placement of link '{one['name']}'"),
                _numbers(one["parameters"], (10,), f"parameters of link '{one['name']}'"),
            )
            for one in record["merged_links"]
        ]
        values = {name: float(value) for name, value in record["parameters"].items()}
        robot = make_robot(
            _text(record["robot"], "name of the robot"),
            joints,
            np.zeros((len(joints), 10)),
            links=[_text(one["link"], "name of a link") for one in record["joints"]],
            gravity=_numbers(record["gravity"], (3,), "gravity"),
            effects=_effects(record),
            merged=merged,
            source=read_description(place).source("parameters"),
            coupling=read_fields(Robot, {"coupling": record.get("coupling")})["coupling"],
            loops=_loops(record.get("loops")),
            absent=record.get("absent", ()),
        )
    except DAMAGED as error:
        raise InputError(f"'{place}' is damaged: it lacks or misstates {error}") from None
    if values.keys() != set(robot.parameters.names):
        raise InputError(
            f"'{place}' has {len(values)} parameters, its {len(joints)} joints and their effects have "
            f"{len(robot.parameters)}, or other names"
        )
    return robot.with_parameters(values)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"the {what}: {value!r:.40}, expected text")
    return value


def _numbers(value: Any, shape: tuple[int, ...], what: str) -> Array:
    """Finite numbers of the given shape."""
    found = np.array(value, dtype=float)
    if found.shape != shape or not np.isfinite(found).all():
        raise ValueError(f"the {what}: expected finite numbers of shape {shape}")
    return found


def _pose(value: Any, what: str) -> Array:
    """A rotation and a translation, 4x4."""
    pose = _numbers(value, (4, 4), what)
    R = pose[:3, :3]
    if not (np.allclose(R @ R.T, np.eye(3), atol=1e-6) and np.linalg.det(R) > 0.0 and np.allclose(pose[3], [0, 0, 0, 1])):
        raise ValueError(f"the {what}: expected a rotation and a translation")
    return pose


def sidecar_parity(robot: Robot, path: str | os.PathLike[str], n_states: int = 100, seed: int = 0) -> float:
    """Largest relative torque difference between the robot and the file, read again.

    Torque from the file is that of its parameters and, where it has them, that of its base values through ``Y lift beta``. The latter is
    compared with the robot's own through its base, ``Y lift K phi``, which is ``Y phi`` but for what the reduction neglects: columns that
    angles rounded in the description (1.5708) set apart by millionths.
    """
    again = read_parameters(path)
    if tuple(again.parameters) != robot.parameters.names:
        raise InputError(
            f"'{path}' has {len(again.parameters)} parameters, robot '{robot.name}' has {len(robot.parameters)}"
        )
    q, v, a = random_states_within_limits(robot, n_states, seed)
    load = inverse_dynamics(robot, q, v, a, effects=False)
    ours = inverse_dynamics(robot, q, v, a, load)
    reread = robot.with_effects(again.effects).with_parameters(again.parameters).with_gravity(again.gravity)
    gap = largest_gap(ours, inverse_dynamics(reread, q, v, a, load))
    if again.base_values:
        beta = np.array(list(again.base_values.values()))
        Y, own = torque_regressor(robot, q, v, a, load), reduce_to_base(robot)
        grouped = own.K.shape == again.K.shape and np.allclose(own.K, again.K)
        reference = Y @ (own.lift @ (own.K @ robot.parameters.values)) if grouped else ours
        gap = max(gap, largest_gap(reference, Y @ (again.lift @ beta)))
    return gap


def _neglected(robot: Robot, estimate: Estimate, n_states: int = 100, seed: int = 0) -> list[str]:
    """A note where the torque of the base parameters is not that of the links, by what the reduction neglects."""
    q, v, a = random_states_within_limits(robot, n_states, seed)
    Y = torque_regressor(robot, q, v, a, inverse_dynamics(robot, q, v, a, effects=False))
    phi, base = robot.parameters.values, estimate.base
    gap = largest_gap(Y @ phi, Y @ (base.lift @ (base.K @ phi)))
    if gap <= PARITY:
        return []
    told = (
        f"torque of the base parameters differs from that of the links by {gap:.1e} (relative): angles that the description "
        "rounds set parameters apart by less than any log shows, and the base takes them as one"
    )
    return [told]
