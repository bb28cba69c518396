"""How far torque that the model does not have moves an estimate, from what the residual shows of it.

No model is exact: the curve of friction has another form, a cable pulls, gears yield, the torque comes late, the base leans. Such
torque is a function of the motion, and repeats with it; noise that averages out over time does not describe it. It is written as a
sum ``Z c`` of functions of every joint's motion (:func:`unmodelled`), beside the model ``A x`` at its nonlinear parameters with
tangents ``T``. Of each joint's ``c`` no more is known beforehand than one size, ``c ~ N(0, size^2)``; with ``U S V^T`` the part of
its functions outside the span of ``[A T]``, the residual says

    u = U^T y ~ N(0, noise^2 + size^2 S^2)

so that the most likely size follows, zero where the residual is noise, and from it mean and covariance of ``c``. The estimate has
moved by ``[A T]^+ Z c``, which its covariance knows nothing of: :func:`misfit_moves`. Functions that the model nearly has itself
are no misfit of it and are left out.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics, transmitting
from dynid.estimation.friction.fit import FrictionFit, Linearised, linear_moves
from dynid.estimation.friction.rows import Log
from dynid.estimation.friction.search import outside
from dynid.model.robot import Robot

LEAST_OUTSIDE = 0.05
"""Part of a function outside the span of the model from which on it counts as none of the model's."""
TURNS, FADES = 0.03, (0.05, 0.2)
"""Parts of the largest speed over which a sign turns, and over which friction at low speed fades."""
SLIDES = (0.002, 0.02)
"""Parts of the range of a joint over which friction turns after a reversal."""
YIELD_S = 0.06
"""Time over which torque is smoothed before its second derivative is taken: noise of the acceleration is in it and in the torque."""
SIZES = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 81)]) ** 2
"""Of the unmodelled torque, squared, among which the likeliest is looked for; in units of what the noise would let pass."""


def unmodelled(robot: Robot, log: Log, speed: Array) -> list[Array]:
    """Functions of the motion that a model may lack, each ``(samples, joints)``; ``speed`` is the largest of every joint.

    Forms of friction over speed, load, position and travel; cables and springs; torque out of scale, late, of a yielding gear, of
    a base that leans.
    """
    samples, motion = log.samples, log.motion
    q, x = motion.position, motion.velocity / speed
    sign, size = np.tanh(x / TURNS), np.abs(x)
    state = samples.position, samples.velocity, samples.acceleration
    bodies = transmitting(robot)
    whole, rigid = inverse_dynamics(robot, *state), inverse_dynamics(bodies, *state)
    span = np.maximum(np.ptp(q, axis=0), 1e-12)
    p = (q - q.mean(axis=0)) / span
    found = [x * size, x**3, sign * x**4, np.tanh(x / 0.1), sign / (1.0 + (x / 0.1) ** 2)]
    found += [sign * np.exp(-size / fade) for fade in FADES]
    found += [sign * p, sign * np.abs(rigid), p, p**2, p**3, np.sin(q), np.cos(q)]
    found += [motion.acceleration * np.abs(motion.acceleration), whole]
    if motion.travel is not None:
        way = motion.travel[..., 0]
        found += [np.sign(way) * np.exp(-np.abs(way) / (part * span)) for part in SLIDES]
    period_s = samples.duration_s / max(len(samples) - 1, 1)
    found.append(np.gradient(whole, axis=0))
    # Second derivative along the rows of the torque smoothed by a Gaussian ``width`` rows wide; it is mirrored at its
    # ends. This is ``scipy.ndimage.gaussian_filter1d(rigid, width, axis=0, order=2)``, whose import costs 0.05 s of
    # every run.
    width = YIELD_S / period_s
    reach = int(4.0 * width + 0.5)
    x = np.arange(-reach, reach + 1) / width
    bell = np.exp(-0.5 * x**2)
    kernel = bell / bell.sum() * (x**2 - 1.0) / width**2
    padded = np.pad(rigid, ((reach, reach), (0, 0)), mode="symmetric")
    spectrum = np.fft.rfft(padded, axis=0) * np.fft.rfft(kernel, len(padded))[:, None]
    found.append(np.fft.irfft(spectrum, len(padded), axis=0)[2 * reach :])
    down = int(np.argmax(np.abs(robot.gravity)))
    for axis in np.delete(np.eye(3), down, axis=0):
        found.append(inverse_dynamics(bodies.with_gravity(robot.gravity + axis), *state) - rigid)
    return [np.asfortranarray(one) for one in found]


def misfit_moves(fit: FrictionFit) -> dict[str, Array]:
    """What one standard deviation of the torque that the model lacks moves in every linear parameter, by name."""
    model, data = fit.model, fit.model.data
    speed = np.maximum(np.max([np.abs(log.motion.velocity).max(axis=0) for log in data.logs], axis=0), 1e-12)
    rows = np.concatenate([log.rows(unmodelled(fit.robot, log, speed)) for log in data.logs])
    rows = rows.reshape(len(rows), -1, data.n_joints)
    length = np.sqrt((rows**2).sum(axis=0))
    rows /= np.where(length > 0.0, length, 1.0)
    around, n = Linearised.of(fit, rows), rows.shape[1]
    ends = np.cumsum([0, *(len(c) for c in around.coordinates)])
    Z, y = np.zeros((ends[-1], n * data.n_joints)), np.zeros(ends[-1])
    for d, (c, weight) in enumerate(zip(around.coordinates, around.weights, strict=True)):
        Z[ends[d] : ends[d + 1], d * n : (d + 1) * n] = weight * c[:, -1 - n : -1]
        y[ends[d] : ends[d + 1]] = weight * c[:, -1]
    solver, T = around.solver, around.tangents[:, around.free]
    J, right = outside(solver.span, T), outside(solver.span, np.column_stack([Z, y]))
    steps = around.covariance @ (J.T @ right) / around.noise
    left = right - J @ steps
    response = solver.solve(Z - T @ steps[:, :-1])
    freedom = max(len(data.torque) - n - (solver.n_columns + J.shape[1]) / data.n_joints, 1.0)
    moved = []
    for d in range(data.n_joints):
        own = slice(d * n, (d + 1) * n)
        residual = left[ends[d] : ends[d + 1], -1]
        length, energy = float(around.weights[d]), float(residual @ residual)
        moved.append(response[:, own] @ _spread(left[:, own], left[:, -1], energy, freedom, length))
    return linear_moves(model, np.hstack(moved))


def _spread(functions: Array, residual: Array, energy: float, freedom: float, length: float) -> Array:
    """A root of the second moment of the coefficients of functions of length ``length``, by their part outside the model.

    ``energy`` is that of the joint's own residual.
    """
    U, s, Vt = np.linalg.svd(functions, full_matrices=False)
    shown = s > LEAST_OUTSIDE * length
    U, s, V = U[:, shown], s[shown], Vt[shown].T
    if not len(s) or energy <= 0.0:
        return np.zeros((functions.shape[1], 1))
    u = U.T @ residual
    noise = max(energy - float(u @ u), 1e-3 * energy) / freedom
    sizes = noise / float(np.median(s**2)) * SIZES
    spread = noise + sizes[:, None] * s**2
    likeliest = float(sizes[np.argmin((np.log(spread) + u**2 / spread).sum(axis=1))])
    share = likeliest / (noise + likeliest * s**2)
    return np.column_stack([V * np.sqrt(noise * share), V @ (share * s * u)])
