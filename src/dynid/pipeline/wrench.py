"""The body on a force/torque sensor: ten parameters and six offsets from the sensor's log and its motion.

    wrench = Y(b, w, alpha) phi + offsets (+ drift t),        b = a - R^T g the proper acceleration of the sensor

The motion comes from the joints of a robot, from an IMU on the body or from the log itself. Where the mounting is not known to be
level, the direction of gravity is estimated along, by Gauss-Newton: ``dwrench / dg = dY/db (-R^T) phi``, linear in ``g``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze
from dynid.dynamics.regressors import proper_body_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.body import METHODS, BodyEstimate, estimate_body, finite, known_mass
from dynid.estimation.constraints.base import Constraint
from dynid.finding import Finding, Verdict
from dynid.model.frames import Frame, LinkMotion, frame_named, frames_beside
from dynid.model.parameters import INERTIAL_SYMBOLS, Column, Parameters
from dynid.model.robot import Robot
from dynid.pipeline.wrench_filter import SensorFilter, chosen_sensor_filter, sensor_filter
from dynid.regression.factor import Regression, factorise, matrix_regression
from dynid.regression.wrench_rows import AXES, WrenchRows
from dynid.signals.recording import WrenchRecording
from dynid.signals.samples import WrenchSamples

STILL_RAD_S = 0.02
"""A body that never turns faster is weighed as standing still, rad/s."""


@dataclass(frozen=True, eq=False)
class SensorBody:
    """The body on a sensor, in the sensor's frame.

    Args:
        frame: name of the sensor's frame.
        bodies: the body by every method.
        filter: how signals or rows were filtered.
        static: whether only the weight was used.
        gravity: in the base frame, where it was estimated or known.
        findings: what looks wrong with the log.
        notes: sentences for the user.
        samples: what was identified on.
    """

    frame: str
    bodies: tuple[BodyEstimate, ...]
    filter: SensorFilter
    static: bool
    gravity: Array | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    samples: tuple[WrenchSamples, ...]
    regression: Regression | None = None
    """What the rows say; None where it was loaded without its logs."""
    place: Frame | None = None
    """The sensor's frame on the robot, where there is one."""
    answer: str = "sdp"
    """The method whose body is the answer."""

    @property
    def best(self) -> BodyEstimate:
        """The answer: the body by the method asked for, else by the last."""
        return next((body for body in self.bodies if body.method == self.answer), self.bodies[-1])

    def by(self, method: str) -> BodyEstimate:
        """The body by one method."""
        for body in self.bodies:
            if body.method == method:
                return body
        raise UnknownNameError("method", method, [body.method for body in self.bodies])

    def _beside(self, words: str) -> tuple[Array, Array]:
        found, names = self.best.estimate, self.best.estimate.standard.names
        places = [names.index(f"{axis}_{words}1") for axis in AXES if f"{axis}_{words}1" in names]
        return freeze(found.standard.values[places]), freeze(found.sigma[places])

    @property
    def offsets(self) -> Array:
        """Of the six axes, N and N m; zero where they were not estimated."""
        values, _ = self._beside("offset")
        return values if len(values) else np.zeros(6)

    @property
    def relative_error(self) -> float:
        """``||wrench - prediction|| / ||wrench||`` of the answer, each axis in units of its noise."""
        return self.best.estimate.relative_error

    def rows(self, samples: Sequence[WrenchSamples]) -> WrenchRows:
        """Rows of samples over the parameters that were estimated; not filtered."""
        n = len(self.best.estimate.standard.values)
        return WrenchRows(tuple(samples), n > 10, n > 16, self.static)

    @cached_property
    def predictions(self) -> tuple[tuple[Array, Array, Array], ...]:
        """Time, measured wrench and that of the answer, ``(rows, 6)``, of every log identified on; none without its samples."""
        values, found = self.best.estimate.standard.values, []
        for log in self.samples:
            chunks = list(self.rows([log]).passes())
            blocks = [np.concatenate([chunk.blocks[axis] for chunk in chunks]) for axis in range(6)]
            measured = np.column_stack([block[:, -1] for block in blocks])
            found.append((log.time, measured, np.column_stack([block[:, :-1] @ values for block in blocks])))
        return tuple(found)

    def record(self) -> dict[str, Any]:
        """What the record of a run holds of the body beside its estimates."""
        return {
            "filter": asdict(self.filter),
            "static": self.static,
            "gravity": None if self.gravity is None else self.gravity.tolist(),
            "findings": [finding.as_dict() for finding in self.findings],
            "answer": self.best.method,
            "methods": [{"method": one.method, "seconds": one.seconds} for one in self.bodies],
        }

    def as_dict(self) -> dict[str, Any]:
        """What ``dynid payload --sensor --json`` prints."""
        best = self.best.as_dict()
        _, offset_sigma = self._beside("offset")
        drift, drift_sigma = self._beside("drift")
        return best | {
            "frame": self.frame,
            "offsets": self.offsets.tolist(),
            "offsets_sigma": finite(offset_sigma),
            "drift": drift.tolist() or None,
            "drift_sigma": finite(drift_sigma) or None,
            "gravity": None if self.gravity is None else self.gravity.tolist(),
            "static": self.static,
            "filter": self.filter.describe(),
            "residual_rms": dict(zip(AXES, self.best.estimate.residual_rms.tolist(), strict=True)),
            "relative_error": self.relative_error,
            "n_samples": self.best.estimate.n_samples,
            "methods": [body.as_dict() for body in self.bodies],
            "findings": [finding.as_dict() for finding in self.findings],
            "notes": list(self.notes),
        }


def identify_sensor_body(
    recordings: Sequence[WrenchRecording] | WrenchRecording,
    robot: Robot | None = None,
    frame: str | Frame | None = None,
    *,
    filtered: SensorFilter | str = "auto",
    imu: ArrayLike | None = None,
    offsets: bool = True,
    drift: bool = False,
    tilt: bool = False,
    static: bool | None = None,
    methods: Sequence[str] = METHODS,
    constraints: Sequence[Constraint] = (),
    answer: str = "sdp",
    weighted: bool = True,
) -> SensorBody:
    """The body on a force/torque sensor.

    Args:
        recordings: logs of the sensor, all with the same body and offsets.
        robot: the robot that carries the sensor; None where the logs hold the sensor's own motion.
        frame: the sensor's frame on the robot: a link by name, or a :class:`Frame`.
        filtered: ``auto``, ``savgol:WINDOW,ORDER``, ``butterworth:HZ``, ``rows:HZ``, ``polynomial:SECONDS`` or ``none``.
        imu: 4x4 pose in the sensor's frame of the IMU that measured the motion.
        offsets: estimate constant offsets of the six axes.
        drift: estimate a linear change of them in time too.
        tilt: estimate the direction of gravity in the base frame; its size is kept. Needs joint motion.
        static: use the weight alone; None to decide by the motion.
        methods: shown side by side.
        constraints: what is known of the body, such as its mass.
        answer: the method whose body is the answer; the last one where it is not among them.
        weighted: count the axes of the sensor by their noise in ``sdp`` and ``manifold``, rather than N and N m alike.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.model.frames import ProperAcceleration
        >>> from dynid.pipeline.wrench import identify_sensor_body
        >>> from dynid.signals.recording import WrenchRecording
        >>> rng = np.random.default_rng(0)
        >>> t, (w, b, turn) = np.arange(300) / 100.0, rng.normal(size=(3, 300, 3))
        >>> Y = dynid.body_regressor(ProperAcceleration(b, turn), np.hstack([0 * w, w]))
        >>> ball = [2.0, 0, 0, 0.2, 0.03, 0, 0.03, 0, 0, 0.01]
        >>> log = WrenchRecording(
        ...     t, Y @ ball + [3, -2, 1, 0, 0, 0], angular_velocity=w, linear_acceleration=b, angular_acceleration=turn
        ... )
        >>> found = identify_sensor_body(log, filtered="none")
        >>> round(found.best.mass, 3), found.offsets[:3].round(3).tolist()
        (2.0, [3.0, -2.0, 1.0])
    """
    if not methods:
        raise InputError("no method was named for the body on the sensor, expected at least one")
    logs = (recordings,) if isinstance(recordings, WrenchRecording) else tuple(recordings)
    if not logs:
        raise InputError("no log of a force/torque sensor was given, expected at least one")
    if static and robot is None and any(log.angular_velocity is None for log in logs):
        logs, filtered = tuple(at_rest(log) for log in logs), "none" if filtered == "auto" else filtered
    place = _place(logs, robot, frame)
    asked = chosen_sensor_filter(logs, robot, place) if filtered == "auto" else filtered
    how = sensor_filter(asked) if isinstance(asked, str) else asked
    moved = [how.samples(log, robot, place, imu) for log in logs]
    samples, motions = tuple(one for one, _ in moved), [motion for _, motion in moved]
    speeds = [np.linalg.norm(one.angular_velocity, axis=1) for one in samples if one.angular_velocity is not None]
    turning = max(float(np.quantile(speed, 0.99)) for speed in speeds)
    alone = turning < STILL_RAD_S if static is None else static
    rows_of = partial(WrenchRows, offsets=offsets, drift=drift, static=alone)
    gravity = None if robot is None else robot.gravity
    beside = {} if robot is None or place is None else frames_beside(robot, place)
    findings = _checked(samples, motions, gravity, beside)
    notes = [note for one in samples for note in one.notes]
    if tilt:
        gravity, samples, tilted = levelled(samples, motions, robot, place, rows_of)
        notes.append(tilted)
    regression = factorise(how.rows(rows_of(samples)))
    bodies = estimate_body(regression, methods, constraints, weighted=weighted)
    findings = (
        *findings,
        *_against_known_mass(bodies, constraints, samples[0].place),
        *_implausible(bodies, answer, samples[0].place),
    )
    found = SensorBody(
        "sensor" if place is None else place.name,
        bodies,
        how,
        alone,
        None if gravity is None else freeze(gravity),
        findings,
        (),
        samples,
        regression,
        place,
        answer,
    )
    return replace(found, notes=(*notes, *_notes(found, turning)))


def at_rest(log: WrenchRecording) -> WrenchRecording:
    """A table of poses: one row each, in which the sensor does not turn."""
    still = np.zeros_like(log.wrench[:, :3])
    return log if log.angular_velocity is not None else replace(log, angular_velocity=still, angular_acceleration=still)


def _checked(
    samples: Sequence[WrenchSamples],
    motions: Sequence[LinkMotion | None],
    gravity: Array | None,
    beside: Mapping[str, Array],
) -> tuple[Finding, ...]:
    """The findings on logs; one that no body can be estimated with is refused."""
    from dynid.validation.sensor_check import check_sensor  # runs of joint torque do not need it

    findings = check_sensor(samples, motions, gravity, beside)
    for finding in findings:
        if finding.level == "error":
            raise InputError(f"{finding.what}; {finding.remedy}")
    return findings


def _place(logs: Sequence[WrenchRecording], robot: Robot | None, frame: str | Frame | None) -> Frame | None:
    if robot is not None:
        return frame_named(robot, frame)
    if frame is not None:
        raise InputError("a frame was given without a robot, expected --robot ROBOT beside --frame")
    for log in logs:
        if log.angular_velocity is None or log.linear_acceleration is None:
            lacks = "angular velocity" if log.angular_velocity is None else "proper acceleration"
            raise InputError(
                f"{log.source.path or 'the force/torque recording'} lacks the {lacks} of the sensor, expected its motion in columns "
                "wx.. and ax.., joint positions with --robot and --frame, or for a table of poses ax.. and --static"
            )
    return None


def _against_known_mass(
    bodies: Sequence[BodyEstimate], constraints: Sequence[Constraint], place: str
) -> tuple[Finding, ...]:
    """A known mass that the unconstrained estimate contradicts, by the factor of a unit or by more than its noise."""
    known = known_mass(constraints)
    free = next((body for body in bodies if body.method in ("wls", "ols")), None)
    if known is None or free is None or not free.mass > 0.0:
        return ()
    ratio = known / free.mass
    if 8.0 < ratio < 12.0:
        raise InputError(
            f"{place}: the wrench weighs {free.mass:.3g} kg where {known:g} kg were given, {ratio:.3g} times less: it is in kgf, "
            'expected N and N m; say so in a mapping (--mapping FILE): [units] force = "kgf", moment = "kgfm"'
        )
    if abs(ratio - 1.0) < 0.05:
        return ()
    return (
        Finding(
            "warning",
            f"{place}: the wrench weighs {free.mass:.3g} +- {1.96 * free.sigma[0]:.2g} kg where {known:g} kg were given",
            "check the mass, the gain of the sensor and what else hangs on it (--mass)",
            code="known_mass",
            values={"mass": free.mass, "known": known},
        ),
    )


LEAST_KG, FARTHEST_M, SURE = 1e-3, 2.0, 3.0
"""A body on a sensor weighs more, its centre is nearer, and a sign counts that is so many standard deviations from zero."""
FATAL = ("opposite_sign", "implausible_body")
"""Findings after which a body is not to be used."""


def _implausible(bodies: Sequence[BodyEstimate], answer: str, place: str) -> tuple[Finding, ...]:
    """A wrench of the opposite sign, which weighs less than nothing, or a body that no tool can be."""
    free = next((body for body in bodies if body.method in ("wls", "ols")), None)
    if free is not None and free.mass < -max(SURE * float(free.sigma[0]), LEAST_KG):
        what = (
            f"{place}: the wrench weighs {free.mass:.4g} kg: its sign is the opposite, of what the sensor does to the body"
        )
        return (Finding("warning", what, "give --flip", code="opposite_sign", values={"mass": free.mass}),)
    best = next((body for body in bodies if body.method == answer), bodies[-1])
    far = float(np.linalg.norm(best.phi[1:4])) / max(best.mass, 1e-12)
    if best.mass > LEAST_KG and far <= FARTHEST_M:
        return ()
    what = f"{place}: the body has {best.mass:.3g} kg and its centre {far:.3g} m from the sensor, which no tool has"
    return (Finding("warning", what, "check signs, units and the frame of the wrench", code="implausible_body"),)


def _notes(found: SensorBody, turning: float) -> list[str]:
    notes = []
    unknown = found.best.unknown
    if found.static:
        slow = f"the sensor turns at no more than {turning:.2g} rad/s, so " if turning < STILL_RAD_S else ""
        notes.append(
            f"{slow}only the weight was used: the inertia ({', '.join(INERTIAL_SYMBOLS[4:])}) cannot be known from it"
        )
        unknown = tuple(name for name in unknown if name in INERTIAL_SYMBOLS[:4])
    if unknown:
        advice = (
            "turn the sensor into more directions"
            if set(unknown) & set(INERTIAL_SYMBOLS[:4])
            else "move faster, about all three axes"
        )
        notes.append(f"this motion does not determine {', '.join(unknown)}: {advice}")
    return notes


RowsOf: TypeAlias = Callable[[Sequence[WrenchSamples]], WrenchRows]
"""Rows of samples, with the offsets, drift and weight alone that were asked for."""
TILTS = 8
"""Most steps of the search for the direction of gravity; it settles in three or four."""


def levelled(
    samples: Sequence[WrenchSamples],
    motions: Sequence[LinkMotion | None],
    robot: Robot | None,
    place: Frame | None,
    rows_of: RowsOf,
) -> tuple[Array, tuple[WrenchSamples, ...], str]:
    """The direction of gravity that explains the wrench best, and the samples under it."""
    if robot is None or any(motion is None for motion in motions):
        raise InputError("the direction of gravity needs the sensor's pose, expected --robot and joint positions in the log")
    g = robot.gravity.copy()
    size = float(np.linalg.norm(g))
    logs = tuple(samples)
    for _ in range(TILTS):
        across = np.linalg.svd(g[None])[2][1:]  # two directions that turn gravity and keep its size
        step, scale = _tilt_step(logs, motions, across, rows_of)
        g = g + step @ across
        g *= size / np.linalg.norm(g)
        logs = tuple(one.moved_by(robot, place, g)[0] for one in samples)
        if float(np.linalg.norm(step)) < 1e-9 * scale:
            break
    angle = float(np.degrees(np.arccos(np.clip(g @ robot.gravity / size**2, -1.0, 1.0))))
    direction = ",".join(f"{value:.5g}" for value in g)
    return g, logs, f"gravity in the base frame is turned by {angle:.2f} degrees: --gravity={direction}"


def _tilt_step(
    logs: Sequence[WrenchSamples], motions: Sequence[LinkMotion | None], across: Array, rows_of: RowsOf
) -> tuple[Array, float]:
    """Change of gravity along two directions, estimated with the body."""
    rows = rows_of(logs)
    phi = estimate_body(factorise(rows), ("wls",))[0].phi
    columns = tuple(Column(f"tilt{k + 1}", 1, "actuator", "m/s^2", "gravity") for k in range(2))
    parameters = Parameters((*rows.parameters.columns, *columns), np.concatenate([rows.parameters.values, np.zeros(2)]))
    parts = []
    for log, motion in zip(logs, motions, strict=True):
        assert motion is not None
        fall = -np.einsum("nji,kj->nki", motion.rotation, across)  # change of the proper acceleration
        still = np.zeros((len(log), 3))
        change = np.stack([proper_body_regressor(fall[:, k], still, still) @ phi for k in range(2)], axis=-1)
        blocks = [np.concatenate([chunk.blocks[i] for chunk in replace(rows, recording=log).passes()]) for i in range(6)]
        parts.append([np.hstack([block[:, :-1], change[:, i], block[:, -1:]]) for i, block in enumerate(blocks)])
    stacked = [np.concatenate(blocks) for blocks in zip(*parts, strict=True)]
    found = estimate_body(matrix_regression(parameters, AXES, stacked), ("wls",))[0].estimate
    return found.base_values[-2:], float(np.linalg.norm(across[0])) * 9.81


UNEXPLAINED, HOPELESS = 0.05, 0.5
"""Shares of the wrench above which a body that leaves it unexplained is doubted, and is not to be used."""


def judge_body(body: SensorBody, error: float, data: str) -> Verdict:
    """Whether the body can be used, and why not."""
    best = body.best
    reasons = [replace(one, level="error") if one.code in FATAL else one for one in body.findings]
    if not best.feasible:
        reasons.append(Finding("error", f"{best.method} found a body that cannot exist", "use --method sdp"))
    if error > UNEXPLAINED:
        text = f"{100.0 * error:.3g} % of the wrench is left unexplained, expected below {100.0 * UNEXPLAINED:g} %"
        reasons.append(
            Finding("error" if error > HOPELESS else "warning", text, "look for another frame, contact or a loose sensor")
        )
    if best.unknown:
        unknown = f"not determined by these data: {', '.join(best.unknown)}"
        reasons.append(Finding("warning", unknown, "move faster, turn further"))
    return Verdict(f"predicts {data} wrench to {100.0 * error:.3g} %", tuple(reasons))
