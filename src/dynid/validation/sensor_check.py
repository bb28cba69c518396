"""What is wrong with the log of a force/torque sensor: axes, sign, frame, units, gravity, each one sentence.

Whatever the axes and units of the sensor are, a rigid body on it gives

    f = A b + B alpha + D (w w^T) + o,        n = H b + ...,        b = a - R^T g,

linear with unknown matrices; what this leaves is the noise. Then the rigid body itself is fitted under every *reading* of the columns:
24 right-handed axes and the frames of the description, with either sign of the whole and of the moments. The stated reading stands where
none fits better; where another fits as well, the motion does not tell, and that is said. Units show in the ratio of the two first
moments that ``H = S(h)`` and ``B = -S(h)`` have, a compensated sensor in ``A`` that is zero for gravity alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.regressors import proper_body_regressor
from dynid.finding import Finding, Level
from dynid.model.frames import LinkMotion
from dynid.model.inertia import skew
from dynid.model.poses import rpy_from_rotation
from dynid.signals.samples import WrenchSamples

KGF = 9.80665
FAR_M = 20.0
"""No body on a sensor has its centre of mass so far away: moments are in another unit."""
UNLIKELY_M = 1.0
LEAST_WEIGHT_N = 0.2
"""A body lighter than this cannot be told from the noise of a sensor."""
AS_GOOD = 16.0
"""Two readings whose squared errors, in units of the noise, differ by less fit a log equally well: four standard deviations."""
_LOWEST_TURN = np.cos(np.deg2rad(10.0))
"""Cosine of the angle from which on axes are turned by an angle of their own, not by that of the nearest reading."""
_LETTERS = "xyz"
_SIGNED = tuple(
    np.array(
        [[sign * (column == place) for column in range(3)] for sign, place in zip(signs, order, strict=True)], dtype=float
    )
    for order in permutations(range(3))
    for signs in product((1.0, -1.0), repeat=3)
)
_TURNS = tuple(P for P in _SIGNED if np.linalg.det(P) > 0.0)
"""The 24 right-handed axes along x, y, z."""


@dataclass(frozen=True, eq=False)
class _Fit:
    """``y = [matrices] x + o`` by least squares, three rows; one matrix and its standard deviation per group of columns."""

    matrices: dict[str, Array]
    sigma: dict[str, Array]
    noise: float
    """Of a row, that which repeats included."""

    def size(self, name: str) -> float:
        return float(np.linalg.norm(self.matrices[name]))

    def known(self, name: str, share: float = 0.3) -> bool:
        """Whether a matrix is determined to a share of its own size."""
        return float(np.linalg.norm(self.sigma[name])) < share * self.size(name)


def check_sensor(
    samples: Sequence[WrenchSamples],
    motions: Sequence[LinkMotion | None] = (),
    gravity: Array | None = None,
    frames: Mapping[str, Array] | None = None,
) -> tuple[Finding, ...]:
    """Findings on the logs of one sensor with one body, the gravest first.

    Args:
        samples: with the motion of the sensor.
        motions: motion from joints, which tells gravity from acceleration.
        gravity: in the base frame.
        frames: 4x4 poses of other frames on the same body in that of the sensor, by name: the wrench may be that of one of them.
    """
    b = np.concatenate([one.proper.linear for one in samples])
    turns = np.concatenate([one.proper.angular for one in samples])
    w = np.concatenate([one.angular_velocity for one in samples if one.angular_velocity is not None])
    wrench = np.concatenate([one.wrench for one in samples])
    spins = np.column_stack([w[:, i] * w[:, j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))])
    rest = {"turns": turns, "spins": spins}
    place = samples[0].place
    fall = _fall(motions, gravity)
    if fall is not None:
        found = _compensated(place, fall, b - fall, rest, wrench)
        if found:
            return found
    force, moment = (_fit({"b": b, **rest}, part) for part in (wrench[:, :3], wrench[:, 3:]))
    rows = _Rows(proper_body_regressor(b, w, turns), wrench, np.repeat([force.noise, moment.noise], 3))
    turn = _turn(force) if _three_directions(b) else None
    found = _misread(place, rows, moment, frames or {}, turn)
    light = force.size("b") * KGF < LEAST_WEIGHT_N or not force.known("b")
    if turn is None or light or any(one.level == "error" for one in found):
        return found
    return (*_units(place, force, moment), *found)


def _fall(motions: Sequence[LinkMotion | None], gravity: Array | None) -> Array | None:
    """Acceleration that stands for gravity, in the axes of the sensor; None where its pose is not known."""
    known = [motion for motion in motions if motion is not None]
    if gravity is None or not known or len(known) < len(motions):
        return None
    return np.concatenate([motion.rotation.transpose(0, 2, 1) @ -gravity for motion in known])


def _three_directions(b: Array) -> bool:
    """Whether gravity was seen from directions that span space."""
    spread = np.linalg.svd(b - b.mean(axis=0), compute_uv=False) / np.sqrt(len(b))
    return bool(spread[-1] > 0.5)


def _fit(groups: dict[str, Array], y: Array) -> _Fit:
    X = np.hstack([*groups.values(), np.ones((len(y), 1))])
    scale = np.linalg.norm(X, axis=0)
    used = scale > 1e-9 * scale.max()
    Q, R = np.linalg.qr(X[:, used] / scale[used])
    inverse = np.linalg.pinv(R, rcond=1e-9)
    values, sigma = np.zeros((X.shape[1], 3)), np.full((X.shape[1], 3), np.inf)
    values[used] = (inverse @ (Q.T @ y)) / scale[used, None]
    left = y - X @ values
    noise = np.linalg.norm(left, axis=0) / np.sqrt(max(len(y) - X.shape[1], 1))
    # filtered rows repeat one another: a first-order residual of correlation r has (1 + r) / (1 - r) times the variance
    alike = np.clip((left[1:] * left[:-1]).sum(axis=0) / np.maximum((left**2).sum(axis=0), 1e-300), 0.0, 0.999)
    noise = noise * np.sqrt((1.0 + alike) / (1.0 - alike))
    sigma[used] = np.linalg.norm(inverse, axis=1)[:, None] * noise / scale[used, None]
    ends = np.cumsum([0, *(group.shape[1] for group in groups.values())])
    parts = {name: slice(ends[k], ends[k + 1]) for k, name in enumerate(groups)}
    spread = max(float(np.sqrt(np.mean(noise**2))), 1e-9 * float(np.abs(y).max()))
    return _Fit({n: values[p].T for n, p in parts.items()}, {n: sigma[p].T for n, p in parts.items()}, spread)


def _compensated(place: str, fall: Array, kinematic: Array, rest: dict[str, Array], wrench: Array) -> tuple[Finding, ...]:
    """A force that follows acceleration but not gravity was compensated before it was logged."""
    fit = _fit({"fall": fall, "move": kinematic, **rest}, wrench[:, :3])
    weight, moved = fit.size("fall"), fit.size("move")
    if not (fit.known("move") and moved * KGF > LEAST_WEIGHT_N and weight < 0.2 * moved):
        return ()
    return (
        Finding(
            "error",
            f"{place}: the force follows acceleration with a mass of {moved / np.sqrt(3.0):.3g} kg but gravity with "
            f"{weight / np.sqrt(3.0):.2g} kg, "
            "so gravity was compensated before the wrench was logged",
            "log the sensor before gravity compensation (the raw wrench)",
            code="gravity_compensated",
            values={"mass_by_acceleration": moved / np.sqrt(3.0), "mass_by_gravity": weight / np.sqrt(3.0)},
        ),
    )


@dataclass(frozen=True, eq=False)
class _Reading:
    """Force and moment as ``sign`` times those in axes ``turn`` at ``origin``, both in the frame that was stated.

    ``force_stated = sign turn force``, ``moment_stated = sign moments turn moment + origin x force_stated``.
    """

    turn: Array
    origin: Array
    frame: str = ""
    moments: float = 1.0
    """-1 for a left-handed frame, whose moments turn the other way round."""
    sign: float = 1.0
    error: float = np.inf
    """Sum of squares in units of the noise."""
    mass: float = 0.0
    """In standard deviations."""

    @property
    def stated(self) -> bool:
        return not self.frame and self.moments > 0.0 and np.array_equal(self.turn, np.eye(3))

    @property
    def columns(self) -> Array:
        """``P`` of ``force = P force_stated``."""
        return self.sign * self.turn.T


class _Rows:
    """The rigid body under every reading of one log, ``wrench = T^-1 Y phi`` offsets leave with the means."""

    def __init__(self, Y: Array, wrench: Array, noise: Array) -> None:
        W, y = Y - Y.mean(axis=0), (wrench - wrench.mean(axis=0)) / noise
        self.noise, self.n = noise, y.size
        self.squares = (y**2).sum(axis=0)
        self.products = np.einsum("nip,nj->ijp", W, y, optimize=True)
        flat = W.reshape(len(W), -1)
        self.gram = (flat.T @ flat).reshape(6, 10, 6, 10)

    def read(self, reading: _Reading, axes: slice = slice(6)) -> _Reading:
        """The reading with its error, its sign and the mass that it gives, by the axes asked for."""
        T = np.zeros((6, 6))
        T[:3, :3] = reading.turn
        T[3:, 3:] = reading.moments * reading.turn
        T[3:, :3] = skew(reading.origin) @ reading.turn
        T = (np.linalg.inv(T) / self.noise[:, None])[axes]
        gram = np.einsum("ij,ik,jpkq->pq", T, T, self.gram, optimize=True)
        scale = np.sqrt(np.maximum(gram.diagonal(), 1e-300))
        inverse = np.linalg.pinv(gram / np.outer(scale, scale), rcond=1e-9) / np.outer(scale, scale)
        right = np.einsum("ji,ijp->p", T, self.products[:, axes])
        mass = float(inverse[0] @ right) / max(float(np.sqrt(inverse[0, 0])), 1e-300)
        error = float(self.squares[axes].sum() - right @ inverse @ right)
        return replace(reading, error=max(error, 0.0), sign=1.0 if mass >= 0.0 else -1.0, mass=abs(mass))


def _misread(place: str, rows: _Rows, moment: _Fit, frames: Mapping[str, Array], turn: Array | None) -> tuple[Finding, ...]:
    """A wrench in other axes, of another sign or at another frame than stated, as far as this motion tells them apart."""
    still = np.zeros(3)
    stated = _Reading(np.eye(3), still)
    others = [_Reading(pose[:3, :3], pose[:3, 3], name) for name, pose in frames.items()]
    others += [_Reading(P, still) for P in _TURNS if not np.array_equal(P, np.eye(3))]
    both = [stated, *others, *(replace(one, moments=-1.0) for one in (stated, *others) if not one.frame)]
    axes = slice(6)
    found = [rows.read(one) for one in both]
    if min(one.error for one in found) > 4.0 * rows.n:  # no rigid body under any of them: forces alone
        axes = slice(3)
        found = [rows.read(one, axes) for one in both]
    least = min(one.error for one in found)
    best = next(one for one in found if one.error <= least + AS_GOOD)
    if best.mass**2 < AS_GOOD:
        return ()
    free = None if turn is None else rows.read(_Reading(turn, still), axes)
    if free is not None and free.error < 0.25 * best.error and np.trace(free.turn.T @ best.turn) < 1.0 + 2.0 * _LOWEST_TURN:
        return (_reading_finding(place, free, [], found[0]),)
    alike = [one for one in found if one is not best and one.moments > 0.0 and one.error <= best.error + AS_GOOD]
    turned = [one for one in alike if np.abs(one.turn - best.turn).max() > 1e-6]
    if not best.stated or (best.sign < 0.0 and not turned):
        return (_reading_finding(place, best, alike, found[0]),)
    S = _moment_axes(moment, np.eye(3))
    if S is not None:
        columns = ", ".join(f'"{name}"' for name in ("fx", "fy", "fz", *_mapping("m", S)))
        what = f"{place}: the moment axes are turned or exchanged against those of the forces: {_along('m', S)}"
        return (Finding("error", what, f"{MAPPED}: wrench = [{columns}]", code="moment_axes", values={"axes": _names(S)}),)
    return _alike(place, turned, [one for one in alike if one not in turned and np.abs(one.origin).max() > 1e-3])


MAPPED = "name the columns in a mapping (--mapping FILE)"


def _turn(force: _Fit) -> Array | None:
    """The axes that the force alone shows, whatever their sign; None where it follows no rotation."""
    U, lengths, Vt = np.linalg.svd(force.matrices["b"])
    Q = (U @ Vt).T
    return None if lengths[-1] < 0.5 * lengths[0] else Q * np.sign(np.linalg.det(Q))


def _moment_axes(moment: _Fit, P: Array) -> Array | None:
    """The signed permutation that makes ``H`` skew-symmetric where that of the forces does not; None where it cannot be told."""
    H = moment.matrices["b"]
    if not moment.known("b", 0.1):
        return None

    def uneven(S: Array) -> float:
        turned = S.T @ H
        return float(np.linalg.norm(turned + turned.T) / np.linalg.norm(2.0 * turned))

    best = min(_SIGNED, key=uneven)
    return best if uneven(P) >= 0.3 and uneven(best) < 0.3 * uneven(P) else None


def _reading_finding(place: str, best: _Reading, alike: Sequence[_Reading], stated: _Reading) -> Finding:
    """The reading that fits, and what sets it right."""
    P, flip = best.columns, " --flip" if best.sign < 0.0 else ""
    turned = ", and the sign is the opposite" if flip else ""
    if best.stated:
        what = "the forces have the opposite sign of those that the motion asks for: the sensor reports what the body does to it"
    elif best.frame and np.abs(best.turn - np.eye(3)).max() < 1e-6:
        what = f"the moments are about the origin of '{best.frame}', not of the frame stated{turned}"
    elif best.frame:
        what = f"the wrench is in the axes of '{best.frame}', not of the frame stated{turned}"
    elif best.moments < 0.0:
        what = f"the force axes are mirrored against the frame stated, a left-handed frame: {_along('f', P)}"
    else:
        what = f"the force axes are turned or exchanged against the frame stated{turned}: {_along('f', P)}"
    if _aligned(P):
        columns = ", ".join(f'"{name}"' for name in (*_mapping("f", P), *_mapping("m", best.moments * P)))
        remedy = f"{MAPPED}: wrench = [{columns}]"
    else:
        angles = ",".join(f"{round(float(angle), 3) + 0.0:g}" for angle in rpy_from_rotation(best.turn))
        remedy = f"give --frame-pose X,Y,Z,{angles}{flip} with the place of the sensor, m"
    if best.frame:
        same = [best, *(one for one in alike if one.frame and one.sign == best.sign)]
        options = " or ".join(f"--frame {one.frame}{flip}" for one in same)
        remedy = f"give {options}" + (
            "" if np.abs(P - np.eye(3)).max() < 1e-6 else f"; if the sensor is at the frame stated, {remedy}"
        )
    elif best.stated:
        remedy = "give --flip"
    level: Level = "error" if best.error < 0.5 * stated.error or flip else "warning"
    values = {"axes": _names(P), "frame": best.frame or None}
    return Finding(level, f"{place}: {what}", remedy, code="force_axes", values=values)


def _alike(place: str, turned: Sequence[_Reading], moved: Sequence[_Reading]) -> tuple[Finding, ...]:
    """Readings that fit as well as the one that was stated: other axes are doubted, another origin is told."""
    if turned:
        axes = f"those of '{turned[0].frame}'" if turned[0].frame else _along("f", turned[0].columns)
        sign = ", with the opposite sign" if turned[0].sign < 0.0 else ""
        what = f"{place}: the log fits other axes of the sensor as well: {axes}{sign}"
        return (Finding("warning", what, "turn the sensor about a second axis, and further", code="other_axes"),)
    if moved:
        what = f"{place}: this motion does not show where the sensor is; {', '.join(one.frame for one in moved)} would fit as well"
        return (Finding("note", what, "check --frame, or move faster", code="other_origin"),)
    return ()


def _names(P: Array) -> list[str]:
    """What each measured axis is along, of ``measured = P true``."""
    places = np.abs(P).argmax(axis=1)
    return [f"{'-' if P[i, j] < 0 else ''}{_LETTERS[j]}" for i, j in enumerate(places)]


def _along(letter: str, P: Array) -> str:
    if not _aligned(P):
        return f"by {np.degrees(np.arccos(np.clip((abs(np.trace(P)) - 1.0) / 2.0, -1.0, 1.0))):.0f} degrees"
    return ", ".join(f"{letter}{axis} is along {name}" for axis, name in zip(_LETTERS, _names(P), strict=True))


def _aligned(P: Array) -> bool:
    """Whether every axis is along x, y or z."""
    return bool(np.abs(np.abs(P).max(axis=1) - 1.0).max() < 1e-6)


def _mapping(letter: str, P: Array) -> list[str]:
    """Columns for x, y, z of the true frame: ``true = P^T measured``."""
    return [f"{name[:-1]}{letter}{name[-1]}" for name in _names(P.T)]


def _units(place: str, force: _Fit, moment: _Fit) -> tuple[Finding, ...]:
    """First moments that force and moment show, and how far away the centre of mass would be."""
    mass = float(np.trace(force.matrices["b"])) / 3.0
    by_moment = _axial(moment.matrices["b"])
    by_force = -_axial(force.matrices["turns"])
    spread = float(np.linalg.norm(force.sigma["turns"]))
    far = float(np.linalg.norm(by_moment)) / max(mass, 1e-9)
    along = float(by_moment @ by_force) / max(float(by_force @ by_force), 1e-300)
    clear = spread < 0.3 * float(np.linalg.norm(by_force)) and moment.known("b", 0.1)
    clear = clear and float(by_moment @ by_force) > 0.95 * float(np.linalg.norm(by_moment) * np.linalg.norm(by_force))
    values = {"mass": mass, "distance_m": far, "ratio": along if clear else None}
    if far > FAR_M or (clear and 200.0 < along < 5000.0):
        return (
            Finding(
                "error",
                f"{place}: the moments put the centre of mass {far:.3g} m from the sensor, a thousand times too far: "
                "they are in N mm, expected N m",
                'say so in a mapping (--mapping FILE): [units] moment = "Nmm"',
                code="moment_unit",
                values=values,
            ),
        )
    if clear and 5.0 < along < 20.0:
        return (
            Finding(
                "error",
                f"{place}: force and moment show first moments that differ by a factor of {along:.3g}: "
                "the force is in kgf (9.81 N), expected N",
                'say so in a mapping (--mapping FILE): [units] force = "kgf"',
                code="force_unit",
                values=values,
            ),
        )
    if clear and 0.05 < along < 0.2:
        return (
            Finding(
                "error",
                f"{place}: force and moment show first moments that differ by a factor of {along:.3g}: "
                "the moment is in kgf m, expected N m",
                'say so in a mapping (--mapping FILE): [units] moment = "kgfm"',
                code="moment_unit",
                values=values,
            ),
        )
    if far > UNLIKELY_M:
        return (
            Finding(
                "warning",
                f"{place}: the centre of mass would be {far:.2g} m from the sensor; the force may be in kgf or "
                "the moment in another unit than N m",
                'state the units in a mapping (--mapping FILE): [units] force = "kgf"',
                code="distant_centre",
                values=values,
            ),
        )
    return ()


def _axial(M: Array) -> Array:
    """``h`` of the skew-symmetric part ``S(h)``."""
    return 0.5 * np.array([M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]])
