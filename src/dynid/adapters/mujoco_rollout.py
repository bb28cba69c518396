"""Rollout of an MJCF file under controls in MuJoCo itself, for the proof of an export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid.adapters.mujoco_warnings import mujoco_warnings
from dynid.arrays import Array
from dynid.errors import InputError


def roll_out_controls(
    path: Path, joints: Sequence[str], actuators: Sequence[str], control: Array, time: Array, first: tuple[Array, Array]
) -> Array:
    """Positions of the joints at ``time``, ``(times, joints)``, from a state, with ``control[k]`` held from ``time[k]`` on.

    Contacts and joint limits are left out: commands were followed in free motion.
    """
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    q_places = [int(model.joint(name).qposadr[0]) for name in joints]
    v_places = [int(model.joint(name).dofadr[0]) for name in joints]
    u_places = [int(model.actuator(name).id) for name in actuators]
    state = mujoco.MjData(model)
    state.qpos[q_places], state.qvel[v_places] = first
    state.ctrl[u_places] = control[0]
    _fill_history(model, state, u_places, control[0])
    found = np.empty((len(time), len(joints)))
    step = model.opt.timestep
    row, clock = 0, float(time[0])
    with mujoco_warnings() as said:
        while row < len(time):
            # a row between two steps is taken along the velocity there
            while row < len(time) and time[row] < clock + 0.5 * step:
                found[row] = state.qpos[q_places] + (time[row] - clock) * state.qvel[v_places]
                row += 1
            held = max(0, int(np.searchsorted(time, clock + 1e-9, side="right")) - 1)
            state.ctrl[u_places] = control[held]
            mujoco.mj_step(model, state)
            clock += step
            if said:  # MuJoCo sets a state that grew without bound back to the beginning
                raise InputError(f"{path} cannot be followed in MuJoCo at a time step of {step:g} s: {said[0].strip()}")
    return found


def _fill_history(model: object, state: object, places: Sequence[int], value: Array) -> None:
    """What delayed actuators remember before the first step: the first command."""
    import mujoco

    for place, one in zip(places, value, strict=True):
        if model.actuator_delay[place] > 0.0:  # type: ignore[attr-defined]
            n = int(model.actuator_history[place][0])  # type: ignore[attr-defined]
            times = -model.opt.timestep * np.arange(n, 0, -1, dtype=float)  # type: ignore[attr-defined]
            mujoco.mj_initCtrlHistory(model, state, place, times, np.full(n, one))
