"""What is wrong with the log of a force/torque sensor: axes, units, gravity, each one sentence.

Whatever the axes and units of the sensor are, a rigid body on it gives

    f = A b + B alpha + D (w w^T) + o,        n = H b + ...,        b = a - R^T g,

linear with unknown matrices. For a sensor whose frame, axes and units are those stated, ``A = m 1`` and ``H = S(h)`` is
skew-symmetric, and ``B = -S(h)`` shows the same first moment as ``H``. What differs tells what is wrong: ``A`` near another signed
permutation means exchanged or mirrored axes, the ratio of the two first moments a unit, and ``A`` that is zero for gravity alone a
sensor that was compensated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from dynid.arrays import Array
from dynid.finding import Finding
from dynid.model.frames import LinkMotion
from dynid.signals.samples import WrenchSamples

KGF = 9.80665
FAR_M = 20.0
"""No body on a sensor has its centre of mass so far away: moments are in another unit."""
UNLIKELY_M = 1.0
LEAST_WEIGHT_N = 0.2
"""A body lighter than this cannot be told from the noise of a sensor."""
_SAME_AXES = 0.1
"""Largest difference of rotations between axes that are taken for the same."""
_LETTERS = "xyz"
_SIGNED = tuple(
    np.array(
        [[sign * (column == place) for column in range(3)] for sign, place in zip(signs, order, strict=True)], dtype=float
    )
    for order in permutations(range(3))
    for signs in product((1.0, -1.0), repeat=3)
)


@dataclass(frozen=True, eq=False)
class _Fit:
    """``y = [matrices] x + o`` by least squares, three rows; one matrix and its standard deviation per group of columns."""

    matrices: dict[str, Array]
    sigma: dict[str, Array]

    def size(self, name: str) -> float:
        return float(np.linalg.norm(self.matrices[name]))

    def known(self, name: str, share: float = 0.3) -> bool:
        """Whether a matrix is determined to a share of its own size."""
        return float(np.linalg.norm(self.sigma[name])) < share * self.size(name)


def check_sensor(
    samples: Sequence[WrenchSamples],
    motions: Sequence[LinkMotion | None] = (),
    gravity: Array | None = None,
    turned: Mapping[str, Array] | None = None,
) -> tuple[Finding, ...]:
    """Findings on the logs of one sensor with one body, the gravest first.

    Args:
        samples: with the motion of the sensor.
        motions: motion from joints, which tells gravity from acceleration.
        gravity: in the base frame.
        turned: rotation of other frames on the same body in that of the sensor, by name: the axes may be those of one of them.
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
    if not _three_directions(b):
        return ()
    force, moment = (_fit({"b": b, **rest}, part) for part in (wrench[:, :3], wrench[:, 3:]))
    if force.size("b") * KGF < LEAST_WEIGHT_N or not force.known("b"):
        return ()
    return _axes(place, force, moment, turned or {}) or _units(place, force, moment)


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
    return _Fit({n: values[p].T for n, p in parts.items()}, {n: sigma[p].T for n, p in parts.items()})


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


def _axes(place: str, force: _Fit, moment: _Fit, turned: Mapping[str, Array]) -> tuple[Finding, ...]:
    """Forces along other axes than stated, or moments about others than the forces."""
    A = force.matrices["b"]
    U, lengths, Vt = np.linalg.svd(A)
    if lengths[-1] < 0.5 * lengths[0]:
        return ()
    P = _nearest(U @ Vt)
    if not np.array_equal(P, np.eye(3)):
        return (_axes_finding(place, P, "force", _moment_axes(moment, P), turned),)
    S = _moment_axes(moment, P)
    if S is not None and not np.array_equal(S, np.eye(3)):
        return (_axes_finding(place, S, "moment", None, {}),)
    return ()


def _nearest(Q: Array) -> Array:
    return max(_SIGNED, key=lambda P: float(np.trace(P.T @ Q)))


def _moment_axes(moment: _Fit, P: Array) -> Array | None:
    """The signed permutation that makes ``H`` skew-symmetric, given that of the forces; None where moments are too small to tell."""
    H = moment.matrices["b"]
    if not moment.known("b", 0.1):
        return None

    def uneven(S: Array) -> float:
        turned = S.T @ H
        return float(np.linalg.norm(turned + turned.T) / np.linalg.norm(2.0 * turned))

    if uneven(P) < 0.3:
        return P
    best = min(_SIGNED, key=uneven)
    return best if uneven(best) < 0.3 * uneven(P) else None


def _axes_finding(place: str, P: Array, what: str, moments: Array | None, frames: Mapping[str, Array]) -> Finding:
    """``measured = P true``: which column is which axis, and the mapping that sets it right."""
    names = [f"{'-' if (row := P[i])[j := int(np.argmax(np.abs(row)))] < 0 else ''}{_LETTERS[j]}" for i in range(3)]
    turned = "have the opposite sign of" if np.array_equal(P, -np.eye(3)) else None
    handed = "mirrored, a left-handed frame" if np.linalg.det(P) < 0.0 else "turned or exchanged"
    letter = "f" if what == "force" else "m"
    if turned:
        sentence = (
            f"{place}: the {what}s {turned} those that the motion asks for: the sensor reports what the body does to it"
        )
    else:
        columns = ", ".join(f"{letter}{axis} is along {name}" for axis, name in zip(_LETTERS, names, strict=True))
        sentence = f"{place}: the {what} axes are {handed} against the sensor frame: {columns}"
    forces = _mapping("f", P) if what == "force" else ["fx", "fy", "fz"]
    others = _mapping("m", P if moments is None else moments)
    columns_now = ", ".join(f'"{name}"' for name in (*forces, *others))
    whole = turned and what == "force" and (moments is None or np.array_equal(moments, P))
    first = _frame_remedy(place, P, frames)
    first += "give --flip, or " if whole else ""
    return Finding(
        "error",
        sentence,
        f"{first}name the columns in a mapping (--mapping FILE): wrench = [{columns_now}], or give the frame that the sensor has "
        "(--frame-pose)",
        code=f"{what}_axes",
        values={"axes": names},
    )


def _frame_remedy(place: str, P: Array, frames: Mapping[str, Array]) -> str:
    """The frames of the description whose axes ``measured = P true`` has; empty where there is none."""
    fitting = [name for name, R in frames.items() if np.abs(R.T - P).max() < _SAME_AXES]
    if not fitting:
        return ""
    return f"give --frame {' or --frame '.join(fitting)}, which has these axes; if the sensor is at {place}, "


def _mapping(letter: str, P: Array) -> list[str]:
    """Columns for x, y, z of the true frame: ``true = P^T measured``."""
    found = []
    for j in range(3):
        i = int(np.argmax(np.abs(P[:, j])))
        found.append(f"{'-' if P[i, j] < 0 else ''}{letter}{_LETTERS[i]}")
    return found


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
