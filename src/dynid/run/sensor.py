"""The body on a force/torque sensor: ten parameters and six offsets from the sensor's log and its motion.

    wrench = Y(b, w, alpha) phi + offsets (+ drift t),        b = a - R^T g the proper acceleration of the sensor

The motion comes from the joints of a robot, from an IMU on the body or from the log itself. Where the mounting is not known to be
level, the direction of gravity is estimated along, by Gauss-Newton: ``dwrench / dg = dY/db (-R^T) phi``, linear in ``g``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.body import METHODS, TEN, BodyEstimate, estimate_body, finite, known_mass
from dynid.estimation.constraints.constraints import Constraint
from dynid.estimation.online_body import OnlineBody, OnlineBodyState
from dynid.recording.finding import Finding
from dynid.recording.wrench import WrenchRecording
from dynid.recording.wrench_samples import WrenchSamples
from dynid.regression.factor import Regression, factorise
from dynid.regression.wrench_rows import AXES, WrenchRows
from dynid.robot.frames import Frame, frame_named
from dynid.robot.model import Robot
from dynid.run.sensor_signals import SensorFilter, chosen_sensor_filter, sensor_filter
from dynid.run.sensor_tilt import levelled
from dynid.validation.sensor_check import check_sensor

STILL_RAD_S = 0.02
"""A body that never turns faster is weighed as standing still, rad/s."""


@dataclass(frozen=True)
class SensorOptions:
    """How the body on a sensor is identified.

    Args:
        offsets: estimate constant offsets of the six axes.
        drift: estimate their linear change in time too.
        tilt: estimate the direction of gravity in the base frame; its size is kept. Needs joint motion.
        static: use the weight alone; None to decide by the motion.
        methods: shown side by side.
        constraints: what is known of the body, such as its mass.
        answer: the method whose body is the answer; the last one where it is not among them.

    Examples:
        >>> import dynid
        >>> dynid.SensorOptions(drift=True, methods=("sdp",)).offsets
        True
    """

    offsets: bool = True
    drift: bool = False
    tilt: bool = False
    static: bool | None = None
    methods: tuple[str, ...] = METHODS
    constraints: tuple[Constraint, ...] = ()
    answer: str = "sdp"

    def __post_init__(self) -> None:
        if not self.methods:
            raise InputError("no method was named for the body on the sensor, expected at least one")
        for name in self.methods:
            if name not in METHODS:
                raise UnknownNameError("method", name, METHODS)


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

    def samples_of(self, log: WrenchRecording, robot: Robot | None, imu: Array | None) -> WrenchSamples:
        """Samples of a log under the filter and the gravity that were found; ``imu`` is the pose of the IMU in the sensor."""
        samples, _ = self.filter.samples(log, robot, self.place, imu)
        if robot is None or log.position is None or self.gravity is None:
            return samples
        return samples.moved_by(robot, self.place, self.gravity)[0]

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
    options: SensorOptions | None = None,
) -> SensorBody:
    """The body on a force/torque sensor.

    Args:
        recordings: logs of the sensor, all with the same body and offsets.
        robot: the robot that carries the sensor; None where the logs hold the sensor's own motion.
        frame: the sensor's frame on the robot: a link by name, or a :class:`Frame`.
        filtered: ``auto``, ``savgol:WINDOW,ORDER``, ``butterworth:HZ``, ``rows:HZ``, ``polynomial:SECONDS`` or ``none``.
        imu: 4x4 pose in the sensor's frame of the IMU that measured the motion.
        options: offsets, drift, tilt, static, methods, constraints.

    Examples:
        >>> import dynid, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> t, (w, b, turn) = np.arange(300) / 100.0, rng.normal(size=(3, 300, 3))
        >>> Y = dynid.body_regressor(dynid.ProperAcceleration(b, turn), np.hstack([0 * w, w]))
        >>> ball = [2.0, 0, 0, 0.2, 0.03, 0, 0.03, 0, 0, 0.01]
        >>> log = dynid.WrenchRecording(
        ...     t, Y @ ball + [3, -2, 1, 0, 0, 0], angular_velocity=w, linear_acceleration=b, angular_acceleration=turn
        ... )
        >>> found = dynid.identify_sensor_body(log, filtered="none")
        >>> round(found.best.mass, 3), found.offsets[:3].round(3).tolist()
        (2.0, [3.0, -2.0, 1.0])
    """
    chosen = options or SensorOptions()
    logs = (recordings,) if isinstance(recordings, WrenchRecording) else tuple(recordings)
    if not logs:
        raise InputError("no log of a force/torque sensor was given, expected at least one")
    place = _place(logs, robot, frame)
    how = _filter(filtered, logs, robot, place)
    moved = [how.samples(log, robot, place, imu) for log in logs]
    samples, motions = tuple(one for one, _ in moved), [motion for _, motion in moved]
    turning = max(float(np.quantile(np.linalg.norm(_velocity(one), axis=1), 0.99)) for one in samples)
    static = turning < STILL_RAD_S if chosen.static is None else chosen.static
    rows_of = partial(WrenchRows, offsets=chosen.offsets, drift=chosen.drift, static=static)
    gravity = None if robot is None else robot.gravity
    findings = _passed(check_sensor(samples, motions, gravity))
    notes = [note for one in samples for note in one.notes]
    if chosen.tilt:
        gravity, samples, tilted = levelled(samples, motions, robot, place, rows_of)
        notes.append(tilted)
    regression = factorise(how.rows(rows_of(samples)))
    bodies = estimate_body(regression, chosen.methods, chosen.constraints)
    findings = (*findings, *_against_known_mass(bodies, chosen.constraints, samples[0].place))
    found = SensorBody(
        "sensor" if place is None else place.name,
        bodies,
        how,
        static,
        None if gravity is None else freeze(gravity),
        findings,
        (),
        samples,
        regression,
        place,
        chosen.answer,
    )
    return replace(found, notes=(*notes, *_notes(found, turning)))


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
                "wx.. and ax.., or joint positions with --robot and --frame"
            )
    return None


def _filter(
    filtered: SensorFilter | str, logs: Sequence[WrenchRecording], robot: Robot | None, place: Frame | None
) -> SensorFilter:
    """The filter asked for: as it is, by its text, or chosen on the logs."""
    how = chosen_sensor_filter(logs, robot, place) if filtered == "auto" else filtered
    return sensor_filter(how) if isinstance(how, str) else how


def _passed(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings, where none of them is an error."""
    for finding in findings:
        if finding.severity == "error":
            raise InputError(f"{finding.sentence}; {finding.fix}")
    return findings


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
            "known_mass",
            "warning",
            f"{place}: the wrench weighs {free.mass:.3g} +- {1.96 * free.sigma[0]:.2g} kg where {known:g} kg were given",
            "check the mass, the gain of the sensor and what else hangs on it (--mass)",
            values={"mass": free.mass, "known": known},
        ),
    )


def _velocity(samples: WrenchSamples) -> Array:
    assert samples.angular_velocity is not None
    return samples.angular_velocity


def _notes(found: SensorBody, turning: float) -> list[str]:
    notes = []
    unknown = found.best.unknown
    if found.static:
        slow = f"the sensor turns at no more than {turning:.2g} rad/s, so " if turning < STILL_RAD_S else ""
        notes.append(f"{slow}only the weight was used: the inertia ({', '.join(TEN[4:])}) cannot be known from it")
        unknown = tuple(name for name in unknown if name in TEN[:4])
    if unknown:
        advice = (
            "turn the sensor into more directions" if set(unknown) & set(TEN[:4]) else "move faster, about all three axes"
        )
        notes.append(f"this motion does not determine {', '.join(unknown)}: {advice}")
    return notes


SENSOR_NOISE = (0.5, 0.5, 0.5, 0.03, 0.03, 0.03)
"""N and N m: how force and moment are weighed against one another before anything is known of their noise."""


def online_sensor_body(samples: WrenchSamples, block_s: float = 1.0) -> Iterator[OnlineBodyState]:
    """The body on a sensor block by block, as if the samples came in now.

    Args:
        samples: with the motion of the sensor.
        block_s: length of a block, s.
    """
    if not (np.isfinite(block_s) and block_s > 0.0):
        raise InputError(f"a block of {block_s:g} s was asked for, expected a positive length")
    online = OnlineBody(WrenchRows(samples).parameters, np.array(SENSOR_NOISE))
    rows = max(1, round(block_s * samples.rate_hz))
    for start in range(0, len(samples), rows):
        yield online.update(WrenchRows(samples[start : start + rows]))
