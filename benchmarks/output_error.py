"""Output error of the seven-joint demonstration arm under measured torque: ours against its own rows and MuJoCo's system identification.

10 s at 250 Hz, torque with noise of 0.2 N m, positions with that of 0.1 mrad (derivatives are those of these); viscous friction and rotor
inertia. All start from bodies and effects of which every number is 20 % too small. Errors are those of torque, relative, on another
motion without noise; seconds are CPU seconds after compilation. ``mujoco.sysid`` has the same windows, first states and torques (its
step is theirs), ten log-Cholesky values a body, damping and armature; it needs ``pip install 'mujoco[sysid]'`` and is null without.
``--smoke`` uses 2 s and one step.
"""

from __future__ import annotations

import measure

import time
from dataclasses import replace

import mujoco
import numpy as np

from actuators import fit_by_sysid, set_joint
from dynid import demo_robot, demo_samples, estimate, factorise, reduce_to_base
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.shooting import Windows
from dynid.estimation.methods.manifold import log_cholesky, phi_from_log_cholesky
from dynid.estimation.methods.output_error import OutputError, windows_of
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.io.robots.mjcf_new import mjcf_text
from dynid.model.robot import Robot
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples

WINDOW_S, SHORT = 1.6, 0.8


def noisy(samples: Samples, seed: int) -> Samples:
    """Samples as a log would give them."""
    assert samples.torque is not None
    rng, h = np.random.default_rng(seed), samples.time[1] - samples.time[0]
    q = samples.position + 1e-4 * rng.normal(size=samples.position.shape)
    kernel = np.ones(9) / 9.0
    v = np.gradient(np.column_stack([np.convolve(own, kernel, "same") for own in q.T]), h, axis=0)
    a = np.gradient(np.column_stack([np.convolve(own, kernel, "same") for own in v.T]), h, axis=0)
    torque = samples.torque + 0.2 * rng.normal(size=samples.torque.shape)
    return replace(samples, position=q, velocity=v, acceleration=a, torque=torque)[20:-20]


def unseen_error(robot: Robot, other: Samples) -> float:
    """Relative error of torque."""
    found = inverse_dynamics(robot, other.position, other.velocity, other.acceleration)
    return float(np.linalg.norm(found - other.torque) / np.linalg.norm(np.asarray(other.torque)))


def theirs(start: Robot, windows: Windows, other: Samples, most: int | None) -> tuple[float, float] | None:
    """CPU seconds and torque error of ``mujoco.sysid``; None where it is not installed."""
    from mujoco import sysid

    if not hasattr(sysid, "optimize"):
        return None
    names, values = start.joint_names, start.parameters.as_dict()
    spec = mujoco.MjSpec.from_string(mjcf_text(start.with_effects(()), limits=False))
    spec.option.timestep, spec.option.integrator = windows.step_s, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for j, name in enumerate(names):
        set_joint(spec.joint(name), "damping", values[f"fv{j + 1}"])
        set_joint(spec.joint(name), "armature", values[f"Ia{j + 1}"])
        spec.add_actuator(name=f"{name}_motor", target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        spec.add_sensor(
            name=f"{name}_pos", type=mujoco.mjtSensor.mjSENS_JOINTPOS, objtype=mujoco.mjtObj.mjOBJ_JOINT, objname=name
        )
    model = spec.compile()
    parameters = sysid.ParameterDict()
    for j, name in enumerate(names):
        body = model.body(int(model.jnt_bodyid[model.joint(name).id])).name
        x = log_cholesky(start.parameters.inertials[j : j + 1])[0]
        parameters.add(
            sysid.Parameter(f"{body}_body", x, x - 1.0, x + 1.0, modifier=lambda s, p, n=body: set_body(s.body(n), p.value))
        )
        for word, symbol in (("damping", "fv"), ("armature", "Ia")):
            value = values[f"{symbol}{j + 1}"]
            parameters.add(
                sysid.Parameter(
                    f"{name}_{word}",
                    value,
                    0.0,
                    4.0 * value,
                    modifier=lambda s, p, n=name, w=word: set_joint(s.joint(n), w, p.value[0]),
                )
            )
    steps = windows.step_s * np.arange(windows.position.shape[1])
    states = [sysid.create_initial_state(model, q[0], v[0]) for q, v in zip(windows.position, windows.velocity, strict=True)]
    controls = [sysid.TimeSeries(steps, np.vstack([own, own[-1:]])) for own in windows.torque]
    sensors = [sysid.TimeSeries.from_names(steps[1:], q[1:], model) for q in windows.position]
    sequences = sysid.ModelSequences("arm", spec, [f"w{k}" for k in range(len(states))], states, controls, sensors)
    seconds = fit_by_sysid(parameters, sequences, spec, most)
    found, torque = spec.compile(), []
    data = mujoco.MjData(found)
    for q, v, a in zip(other.position, other.velocity, other.acceleration, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(found, data)
        torque.append(data.qfrc_inverse.copy())
    assert other.torque is not None
    return seconds, float(np.linalg.norm(np.array(torque) - other.torque) / np.linalg.norm(other.torque))


def set_body(body: mujoco.MjsBody, x: np.ndarray) -> None:
    """Mass, centre and inertia of a body from its log-Cholesky values."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = phi_from_log_cholesky(x[None])[0]
    c = np.array([hx, hy, hz]) / m
    about_frame = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    own = about_frame - m * (c @ c * np.eye(3) - np.outer(c, c))
    body.explicitinertial, body.mass, body.ipos = True, m, c
    body.inertia, body.iquat = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    body.fullinertia = np.array([own[0, 0], own[1, 1], own[2, 2], own[0, 1], own[0, 2], own[1, 2]])


def main() -> None:
    """Measure all three and print."""
    arguments = measure.parser(__doc__).parse_args()
    robot = demo_robot(effects="viscous,armature")
    samples = noisy(demo_samples(robot, seconds=2.0 if arguments.smoke else 10.0, rate_hz=250.0, seed=1), 1)
    other = demo_samples(robot, rate_hz=50.0, seed=2)
    start = robot.with_parameters(robot.parameters.with_values(SHORT * np.array(robot.parameters.values)))
    base, data = reduce_to_base(robot), factorise(TorqueRows(robot, (samples,)))
    method = OutputError(window_s=WINDOW_S, iterations=1 if arguments.smoke else 12)
    rows = estimate(data, base, FeasibleSDP(), start.parameters)
    estimate(data, base, OutputError(window_s=WINDOW_S, iterations=1), start.parameters)  # compiles
    begun = time.process_time()
    found = estimate(data, base, method, start.parameters)
    seconds = time.process_time() - begun
    (windows,) = windows_of([samples], WINDOW_S, 60)
    beside = theirs(start, windows, other, 1 if arguments.smoke else None)
    measure.print_result(
        {
            "seconds": seconds,
            "error": unseen_error(robot.with_parameters(found.standard), other),
            "error_rows": unseen_error(robot.with_parameters(rows.standard), other),
            "error_start": unseen_error(start, other),
            "mujoco_sysid_seconds": beside[0] if beside else None,
            "mujoco_sysid_error": beside[1] if beside else None,
            "note": found.notes[-1],
        },
        arguments.json,
    )


if __name__ == "__main__":
    main()
