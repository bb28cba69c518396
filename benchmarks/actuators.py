"""Actuators of a Unitree Go2 from commands and positions: ours against MuJoCo's own system identification, same windows.

The first 65 % of the log identify, an open-loop rollout of the commands judges on the rest. A ratio is the root mean square position
error over that of the joint values in the shipped MJCF, with the PD gains as configured (Kp = 20, Kd = 1.5). ``mujoco.sysid`` fits the same
four values per joint (armature, damping, friction loss, constant torque) on the same windows of 2 s from the same first states, by finite
differences of rollouts at the file's time step; it has no delay here, which for this log is found to be zero. Seconds are CPU seconds
after compilation; ``mujoco_sysid`` needs ``pip install 'mujoco[sysid]'`` and is null without. ``--smoke`` uses 2 s of the log.
"""

from __future__ import annotations

import measure

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from dynid.apps.actuators.export import export_actuators, roll_out_controls
from dynid.apps.actuators.identify import ActuatorRun, identify_actuators
from dynid.apps.actuators.model import first_state
from dynid.apps.actuators.options import ActuatorSettings
from dynid.apps.actuators.output_error import windows_of

KP, KD, STEP_S = 20.0, 1.5, 0.002


def data_folder() -> Path:
    """``DYNID_SHARED_DATA`` or ``../shared/data`` beside the repository."""
    given = os.environ.get("DYNID_SHARED_DATA")
    return Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"


def theirs(run: ActuatorRun, robot: Path, most: int | None) -> tuple[float, float] | None:
    """CPU seconds and rollout error of ``mujoco.sysid``, None where it is not installed."""
    from mujoco import sysid

    if not hasattr(sysid, "optimize"):
        return None
    names = list(run.robot.joint_names)
    spec = mujoco.MjSpec.from_file(str(robot))
    spec.option.timestep = STEP_S
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for name in names:
        one = spec.add_actuator(name=f"{name}_position", target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        one.gaintype, one.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        one.gainprm[0], one.biasprm[:3] = KP, [0.0, -KP, -KD]
        spec.add_sensor(
            name=f"{name}_pos", type=mujoco.mjtSensor.mjSENS_JOINTPOS, objtype=mujoco.mjtObj.mjOBJ_JOINT, objname=name
        )
    model = spec.compile()
    parameters = sysid.ParameterDict()
    for name in names:
        for word, low, start, high in (
            ("armature", 0.0, 0.01, 0.2),
            ("damping", 0.0, 0.6, 3.0),
            ("frictionloss", 0.0, 0.2, 3.0),
        ):
            parameters.add(
                sysid.Parameter(
                    f"{name}_{word}",
                    start,
                    low,
                    high,
                    modifier=lambda s, p, n=name, w=word: set_joint(s.joint(n), w, p.value[0]),
                )
            )
        parameters.add(
            sysid.Parameter(
                f"{name}_bias",
                0.0,
                -2.0,
                2.0,
                modifier=lambda s, p, n=name: set_bias(s.actuator(f"{n}_position"), p.value[0]),
            )
        )
    states, controls, sensors, labels = [], [], [], []
    for index, (log, first) in enumerate(windows_of(run.problem.logs[0])):
        steps = np.arange(round((log.time[-1] - log.time[0]) / STEP_S) + 1) * STEP_S
        control = log.command.at(log.time[0] + steps, np.zeros(len(names)))
        measured = np.column_stack([np.interp(steps[1:], log.time - log.time[0], q) for q in log.position.T])
        states.append(sysid.create_initial_state(model, *first))
        controls.append(sysid.TimeSeries(steps, control))
        sensors.append(sysid.TimeSeries.from_names(steps[1:], measured, model))
        labels.append(f"window{index}")
    sequences = sysid.ModelSequences("go2", spec, labels, states, controls, sensors)
    seconds = fit_by_sysid(parameters, sequences, spec, most)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "theirs.xml"
        spec.compile()
        path.write_text(spec.to_xml())
        return seconds, mujoco_error(run, path)


def fit_by_sysid(parameters: Any, sequences: Any, spec: mujoco.MjSpec, most: int | None) -> float:
    """CPU seconds of ``mujoco.sysid``, whose best parameters are put into the specification; at most so many iterations."""
    from mujoco import sysid

    residual = sysid.build_residual_fn(models_sequences=[sequences], n_threads=1)
    options = {} if most is None else {"max_iters": most}
    begun = time.process_time()
    with contextlib.redirect_stdout(sys.stderr):  # it reports every step
        best, _ = sysid.optimize(
            initial_params=parameters, residual_fn=residual, optimizer="mujoco", verbose=False, **options
        )
    seconds = time.process_time() - begun
    sysid.apply_param_modifiers_spec(best, spec)
    return seconds


def set_joint(joint: mujoco.MjsJoint, word: str, value: float) -> None:
    """A joint's number; damping is a polynomial in the specification."""
    held = getattr(joint, word)
    if np.ndim(held):
        held[0] = value
    else:
        setattr(joint, word, value)


def set_bias(actuator: mujoco.MjsActuator, value: float) -> None:
    """The constant torque of a position actuator."""
    actuator.biasprm[0] = value


def mujoco_error(run: ActuatorRun, path: Path) -> float:
    """Root mean square position error of MuJoCo on the unseen part, rad."""
    (log,) = run.unseen
    names = list(run.robot.joint_names)
    sent = log.command.at(log.time, np.zeros(len(names)))
    found = roll_out_controls(path, names, [f"{n}_position" for n in names], sent, log.time, first_state(log))
    return float(np.sqrt(np.mean((found - log.position) ** 2)))


def main() -> None:
    """Measure both and print."""
    arguments = measure.parser(__doc__).parse_args()
    folder = data_folder() / "go2"
    robot, log = folder / "robot.xml", folder / "part1.parquet"
    if not log.is_file():
        sys.exit(f"{log} is not there; set DYNID_SHARED_DATA to the folder of recordings")
    settings = ActuatorSettings(kp=KP, kd=KD, split=0.65, to_s=3.0 if arguments.smoke else None)
    identify_actuators(robot, log, ActuatorSettings(kp=KP, kd=KD, split=0.65, to_s=2.0))  # compiles
    begun = time.process_time()
    run = identify_actuators(robot, log, settings)
    seconds = time.process_time() - begun
    found = run.as_json()
    described = found["rollout_description"]["validation"]
    with tempfile.TemporaryDirectory() as written:
        exported = export_actuators(run, ("mjcf",), Path(written))
    other = theirs(run, robot, 1 if arguments.smoke else None)
    measure.print_result(
        {
            "seconds": seconds,
            "rollout_ratio": found["rollout"]["validation"] / described,
            "rollout_ratio_exported_mjcf": exported["mujoco_rollout"]["rms"] / described,
            "rollout_rms_rad": found["rollout"]["validation"],
            "rollout_rms_description_rad": described,
            "mujoco_sysid_seconds": other[0] if other else None,
            "mujoco_sysid_rollout_ratio": other[1] / described if other else None,
        },
        arguments.json,
    )


if __name__ == "__main__":
    main()
