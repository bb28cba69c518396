"""Every option of ``dynid excite``, written once; flags, help and checks are made from these fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dynid.engine import engine_from
from dynid.errors import InputError
from dynid.run.kinds import (
    Choice,
    EngineName,
    Kind,
    Names,
    Number,
    Numbers,
    Switch,
    Text,
    Whole,
    is_number,
    number_of,
    refusal,
)
from dynid.run.option import check_options, effects_option, flag_of, gravity_option, kind_of, lock_option, option, options_of
from dynid.run.options import DEFAULT_EFFECTS

SHAPES = ("fourier", "bspline", "points", "sinusoids")
SEARCHED = ("fourier", "bspline")
PURPOSES = ("bodies", "actuators")
MEASURES = ("singular", "pivoted", "frobenius")
DEFAULT_CLEARANCE_M = 0.01

SHAPES_OF_OPTION: Mapping[str, tuple[str, ...]] = {
    "period": ("fourier", "bspline", "sinusoids"),
    "harmonics": ("fourier",),
    "intervals": ("bspline",),
    "criterion": SEARCHED,
    "scaled": SEARCHED,
    "torque_noise": SEARCHED,
    "starts": (*SEARCHED, "points"),
    "engine": (*SEARCHED, "points"),
    "rest": (*SEARCHED, "sinusoids"),
    "rows": ("points",),
    "measure": ("points",),
    "lambda1": ("points",),
    "lambda2": ("points",),
    "joint": ("sinusoids",),
    "amplitude": ("sinusoids",),
    "period_s": ("sinusoids",),
    "centre": ("sinusoids",),
}
"""Shapes of motion for which an option has a meaning; with another shape it is refused."""

INSTEAD_FOR_POINTS: Mapping[str, str] = {
    "period": "the length of a motion through points follows from the limits of velocity and acceleration",
    "criterion": "the criterion of points is lambda1 cond(W) + lambda2 S: see --measure, --lambda1 and --lambda2",
    "scaled": "the scaling S of the matrix is part of the criterion of points: see --lambda2",
    "torque_noise": "a row of the energy model is the work of all joints together and has no weight per joint",
    "rest": "a motion through points starts and ends at rest",
}


@dataclass(frozen=True)
class Pairs(Kind):
    """``low:high`` pairs separated by commas."""

    def parse(self, text: Any, flag: str) -> Any:
        expected = "low:high, or one such pair per joint separated by commas"
        pairs = tuple(tuple(number_of(x, flag, expected) for x in pair.split(":")) for pair in str(text).split(","))
        if any(len(pair) != 2 for pair in pairs):
            raise InputError(f"{flag} is '{text}', expected {expected}")
        return pairs

    def check(self, value: Any, name: str) -> Any:
        pairs = value if isinstance(value, tuple | list) else ()
        good = pairs and all(
            isinstance(pair, tuple | list) and len(pair) == 2 and all(map(is_number, pair)) for pair in pairs
        )
        if not good:
            raise refusal(name, value, "pairs of a lower and an upper limit")
        return tuple((float(low), float(high)) for low, high in pairs)

    def text(self, value: Any) -> str:
        return ",".join(f"{low!r}:{high!r}" for low, high in value)


@dataclass(frozen=True)
class Shape:
    """The motion."""

    purpose: Literal["bodies", "actuators"] = option(
        "bodies",
        "What the motion is for: bodies (torque logs of 'identify'), or actuators: ramps, steps and chirps to be played as position "
        "commands for 'dynid actuators'.",
        Choice("WHAT", PURPOSES, what="purpose of a motion"),
        flag="--for",
    )
    top_hz: float | None = option(
        None, "Actuators: highest frequency of the chirps, Hz. Default: 8.", Number("HZ", 0.0, open_low=True, unit="Hz")
    )
    shape: Literal["fourier", "bspline", "points", "sinusoids"] = option(
        "fourier",
        "fourier, bspline, points (Gautier-Khalil) or sinusoids (Gaz).",
        Choice("NAME", SHAPES, what="shape of motion"),
    )
    period: float | None = option(
        None, "Length of one period, or of the motion, s; not for points. Default: 20.", Number("SECONDS", unit="s")
    )
    periods: int = option(1, "How often the motion is repeated in the file.", Whole("N"))
    rate: float = option(1000.0, "Samples per second: the controller's rate.", Number("HZ", unit="Hz"))
    rest: bool = option(True, "Ramps from rest before the motion, and to rest in the same pose after it.", Switch())
    harmonics: int | None = option(None, "Harmonics of the Fourier series. Default: 5.", Whole("N"))
    intervals: int | None = option(None, "Knot intervals of a B-spline. Default: 12.", Whole("N"))
    rows: int | None = option(
        None,
        "Points: rows of the energy model, at least one per base parameter. Default: 30, or 1.5 per base parameter.",
        Whole("N"),
    )
    joint: str | None = option(None, "Sinusoids: move this joint alone, for its friction.", Text("NAME"))
    amplitude: tuple[float, ...] | None = option(
        None,
        "Sinusoids: amplitude of each joint's velocity, rad/s or m/s: dq = A sin(2 pi t / P). Default: from the limits.",
        Numbers("A1,A2,.."),
    )
    period_s: tuple[float, ...] | None = option(
        None, "Sinusoids: period of each joint, s, one or one per joint.", Numbers("P1,P2,..")
    )
    centre: tuple[float, ...] | None = option(
        None,
        "Sinusoids: position about which each joint moves, rad or m. Default: the middle of its range.",
        Numbers("C1,C2,.."),
    )


@dataclass(frozen=True)
class Search:
    """How the best motion is searched."""

    seconds: float = option(60.0, "Time to spend on the design; first-use compilation is not counted.", Number("SECONDS"))
    starts: int | None = option(None, "Random starts of the search. Default: 36; 2 for points.", Whole("N"))
    engine: str | None = option(
        None,
        "Where the starts run: serial, threads:N, processes:N, or dask for single-thread processes of Dask on this machine. "
        "Default: one thread per core; for points serial.",
        EngineName("ENGINE"),
        example="processes:4",
    )
    criterion: str | None = option(
        None,
        "Fourier and B-spline: condition, logdet, smallest, trace, frobenius, or a mix: condition+0.5*logdet. Default: condition.",
        Text("NAME"),
    )
    scaled: bool = option(False, "Fourier and B-spline: criterion of the regressor with columns of length one.", Switch())
    torque_noise: tuple[float, ...] | None = option(
        None, "Fourier and B-spline: expected torque noise per joint; rows are divided by it.", Numbers("S1,S2,..")
    )
    measure: Literal["singular", "pivoted", "frobenius"] | None = option(
        None,
        "Points: condition number by singular values (singular), QR with pivoting (pivoted) or Frobenius norms (frobenius). "
        "Default: singular.",
        Choice("NAME", MEASURES, what="measure of the condition number"),
    )
    lambda1: float | None = option(None, "Points: weight of the condition number. Default: 1.", Number("WEIGHT"))
    lambda2: float | None = option(
        None,
        "Points: weight of the scaling S = max |W| / min |W| beside the condition number; 0 to leave it out. Default: 0.02.",
        Number("WEIGHT"),
    )
    seed: int = option(0, "Seed of everything random.", Whole("N"))


@dataclass(frozen=True)
class Bounds:
    """Limits of the motion; where the description has a limit too, the tighter one holds."""

    fraction: float = option(1.0, "Share of the robot's limits to use.", Number("SHARE"))
    position: tuple[tuple[float, float], ...] | None = option(
        None, "Position limits, rad or m, one pair or one per joint.", Pairs("LOW:HIGH,..")
    )
    velocity: tuple[float, ...] | None = option(
        None, "Velocity limits, rad/s or m/s, one or one per joint.", Numbers("V1,V2,..")
    )
    acceleration: tuple[float, ...] | None = option(
        None, "Acceleration limits, rad/s^2 or m/s^2, one or one per joint.", Numbers("A1,A2,..")
    )
    jerk: tuple[float, ...] | None = option(
        None, "Jerk limits, rad/s^3 or m/s^3, one or one per joint.", Numbers("J1,J2,..")
    )
    torque: tuple[float, ...] | None = option(None, "Torque limits, N m or N, one or one per joint.", Numbers("T1,T2,.."))
    torque_uncertainty: float = option(0.1, "Relative uncertainty of the nominal model's torque.", Number("SHARE"))
    tool_speed: float | None = option(None, "Speed limit of the tool, m/s.", Number("SPEED", unit="m/s"))
    tool: str | None = option(None, "Link whose origin is the tool; default: the last one.", Text("LINK"))


@dataclass(frozen=True)
class Apart:
    """What is kept apart and what is held."""

    collision: bool = option(True, "Keep bodies apart from one another and from the mounting plane.", Switch())
    clearance: float | None = option(
        None,
        "Smallest distance between bodies, and to the ground, m. Collision shapes of URDF and SDF and geoms of MJCF are kept apart, "
        "else capsules of joint frames and inertia. Default: 0.01.",
        Number("DISTANCE", unit="m"),
    )
    ground: float | str | None = option(
        None,
        "Height of the mounting plane in the base frame, m, which no body may touch; none: there is no plane. Default: the level "
        "floor plane of an MJCF file, else 0.",
        Number("HEIGHT|none", words_taken=("none",), unit="m"),
    )
    move: tuple[str, ...] = option(
        (),
        "Also move these joints, or 'all'; joints that follow others, fingers and wheels are held otherwise.",
        Names("JOINT,.."),
    )


@dataclass(frozen=True)
class Described:
    """The robot."""

    effects: tuple[str, ...] = effects_option(DEFAULT_EFFECTS)
    gravity: tuple[float, float, float] | None = gravity_option()
    lock: Mapping[str, float] = lock_option()


GROUPS = (Shape, Search, Bounds, Apart, Described)


@dataclass(frozen=True)
class ExciteSettings(Described, Apart, Bounds, Search, Shape):
    """Options of a designed motion; the defaults are those of the command line.

    Examples:
        >>> from dynid.run.excite_options import ExciteSettings
        >>> ExciteSettings(shape="points", period=10.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        dynid.errors.InputError: --period is given with --shape points, expected --shape fourier or bspline or sinusoids; ...
    """

    def __post_init__(self) -> None:
        check_options(self)
        if self.engine is not None and getattr(engine_from(self.engine), "address", None) is not None:
            raise InputError(
                f"--engine is '{self.engine}', but the time for the design is measured on this machine: expected serial, threads:N, "
                "processes:N, or dask without an address"
            )
        if self.top_hz is not None and self.purpose != "actuators":
            raise InputError("--top-hz is given without --for actuators, expected both")
        self._refuse_options_of_other_shapes()
        if self.amplitude is None:
            for flag, value in (("--period-s", self.period_s), ("--centre", self.centre)):
                if value is not None:
                    raise InputError(f"{flag} is given without --amplitude, expected both, or neither to use the limits")
        elif self.period_s is None:
            raise InputError("--amplitude is given without --period-s, expected the period of each joint in s")
        if self.amplitude is not None and self.joint is not None:
            raise InputError("--joint and --amplitude are both given, expected one; an amplitude of 0 holds a joint")
        if not self.collision:
            for flag, given in (("--clearance", self.clearance), ("--ground", self.ground)):
                if given is not None:
                    raise InputError(f"{flag} is given with --no-collision, expected one of the two")

    def _refuse_options_of_other_shapes(self) -> None:
        """Refuse an option that was given and that this shape cannot use."""
        for one in options_of(*GROUPS):
            shapes = SHAPES_OF_OPTION.get(one.name)
            value = getattr(self, one.name)
            if shapes is None or self.shape in shapes or value == one.default:
                continue
            reason = INSTEAD_FOR_POINTS.get(one.name) if self.shape == "points" else None
            flag = kind_of(one).words(flag_of(one), value)[0] if isinstance(kind_of(one), Switch) else flag_of(one)
            raise InputError(
                f"{flag} is given with --shape {self.shape}, expected --shape {' or '.join(shapes)}"
                + (f"; {reason}" if reason else "")
            )

    def chosen(self, *names: str) -> dict[str, Any]:
        """Those of some options that have a value; for the others the design has its own default."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}
