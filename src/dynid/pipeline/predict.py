"""The torque of a log as a run's model predicts it, with its parts: for plots, controllers and other programs.

    predicted = inertia + coriolis + gravity + friction + rotor,      residual = measured - predicted

``rotor`` is what motors and springs add: rotor inertia, offsets are part of friction. Signals are filtered as the run's were; torque is as
recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.files import write_atomically
from dynid.io.logs.paths import LogInputs, log_paths
from dynid.io.logs.read import JsonWriter, write_columns
from dynid.model.robot import Robot
from dynid.pipeline.data import open_unseen
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.validate import filter_for
from dynid.signals.reversal_history import pieces_with_memory
from dynid.signals.samples import Samples

PARTS = ("inertia", "coriolis", "gravity", "friction", "rotor")
QUANTITIES = ("measured", "predicted", "residual", *PARTS)
SUFFIXES = (".parquet", ".csv", ".npz", ".mcap")
_SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dynid.Torque",
    "description": "Torque of one joint, N m or N",
    "type": "object",
    "properties": {name: {"type": "number"} for name in ("t", "position", "velocity", *QUANTITIES)},
}


@dataclass(frozen=True, eq=False)
class PredictedTorque:
    """Torque of one log: measured, predicted and the parts of the prediction, each ``(samples, joints)``, N m or N."""

    time: Array
    joint_names: tuple[str, ...]
    position: Array
    velocity: Array
    values: Mapping[str, Array]
    """By the names of :data:`QUANTITIES`; without ``measured`` and ``residual`` where the log has no torque."""

    def write(self, path: str | Path) -> Path:
        """Write it: a table with columns such as ``predicted_elbow``, or an MCAP file with a topic for each joint."""
        target = Path(path)
        check_suffix(target)
        if target.suffix.lower() == ".mcap":
            return write_atomically(target, self._write_mcap)
        columns = {"t": self.time}
        for name, values in {"position": self.position, "velocity": self.velocity, **self.values}.items():
            columns |= {f"{name}_{joint}": values[:, j] for j, joint in enumerate(self.joint_names)}
        return write_columns(target, columns)

    def _write_mcap(self, path: Path) -> None:
        writer = JsonWriter(path, "/dynid/torque", _SCHEMA)
        quantities = {"position": self.position, "velocity": self.velocity, **self.values}
        for k, t in enumerate(self.time.tolist()):
            for j, joint in enumerate(self.joint_names):
                record = {"t": t} | {name: float(values[k, j]) for name, values in quantities.items()}
                writer.write(t - float(self.time[0]), record, f"/dynid/torque/{joint}")
        writer.close()


def check_suffix(path: Path) -> None:
    """Refuse a file that torque cannot be written to."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"cannot write torque to '{path}': expected the suffix {', '.join(SUFFIXES)}")


def predict_logs(run: IdentificationResult, logs: LogInputs, **reading: Any) -> tuple[PredictedTorque, ...]:
    """The torque that a run predicts along logs, which may be those that it was identified on.

    Args:
        run: the run; one of a body on a sensor has no joint torque and is refused.
        logs: motion logs.
        reading: settings by name that differ from the run's, such as ``preset`` or ``from_s``.

    Returns:
        one for each log.
    """
    if run.body is not None:
        raise InputError("this run is that of a body on a force/torque sensor, expected one of a robot with joint torque")
    settings = replace(run.settings, **({"from_s": None, "to_s": None, "engine": "serial"} | reading))
    found = open_unseen(run.robot, log_paths(logs), settings).with_windows()
    filtered = found.filtered(filter_for(run, found.recordings, settings), settings.max_rows).under_load(run.model)
    return tuple(predict_samples(run.model, one) for one in filtered.windows)


def run_predictions(run: IdentificationResult) -> tuple[PredictedTorque, ...]:
    """The torque of the samples that a run is judged on: unseen ones where it has some."""
    judged = run.unseen or run.samples
    if run.body is not None or not judged:
        raise InputError("this run has no samples of joint torque to record: expected a motion log")
    return tuple(predict_samples(run.model, one) for one in judged)


def predict_samples(model: Robot, samples: Samples) -> PredictedTorque:
    """The torque of a model along samples, taken apart."""
    pieces = list(pieces_with_memory(model, samples))
    parts = [_parts(model, piece) for piece in pieces]
    values = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
    together = [np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("time", "position", "velocity")]
    return PredictedTorque(together[0], model.dof_names, together[1], together[2], values)


def _parts(model: Robot, piece: Samples) -> dict[str, Array]:
    q, v, a = piece.position, piece.velocity, piece.acceleration
    still = np.zeros_like(v)

    def torque(own: Robot, *, effects: bool = True) -> Array:
        return inverse_dynamics(own, q, v, a, piece.load, effects=effects, travel=piece.travel)

    predicted, rigid = torque(model), torque(model, effects=False)
    rubbing = model.with_effects([effect for effect in model.effects if effect.is_friction])
    friction = torque(rubbing) - rigid if rubbing.effects else np.zeros_like(rigid)
    gravity = inverse_dynamics(model, q, still, still, effects=False)
    coriolis = inverse_dynamics(model, q, v, still, effects=False) - gravity
    found = {
        "predicted": predicted,
        "inertia": rigid - coriolis - gravity,
        "coriolis": coriolis,
        "gravity": gravity,
        "friction": friction,
        "rotor": predicted - rigid - friction,
    }
    if piece.torque is None:
        return found
    measured = piece.torque if piece.raw_torque is None else piece.raw_torque
    return {"measured": measured, "residual": measured - predicted} | found


def write_predictions(found: Sequence[PredictedTorque], path: Path) -> list[Path]:
    """Write the torque of one log into a file, of several into files with their numbers."""
    if len(found) == 1:
        return [found[0].write(path)]
    return [one.write(path.with_name(f"{path.stem}_{k + 1}{path.suffix}")) for k, one in enumerate(found)]
