"""Every option of ``dynid excite``, written once; flags, help and checks are made from these fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dynid.engine import engine_from
from dynid.errors import InputError
from dynid.option_types import (
    Names,
    Number,
    Numbers,
    Switch,
    Text,
    check_options,
    effects_option,
    flag_of,
    gravity_option,
    kind_of,
    lock_option,
    misplaced_options,
    option,
)

SHAPES = ("fourier", "bspline", "points", "sinusoids")
SEARCHED = ("fourier", "bspline")
PURPOSES = ("bodies", "actuators")
MEASURES = ("singular", "pivoted", "frobenius")
DEFAULT_CLEARANCE_M = 0.05
DEFAULT_FRACTION = 0.7

INSTEAD_FOR_POINTS: Mapping[str, str] = {
    "period": "the length of a motion through points follows from the limits of velocity and acceleration",
    "criterion": "the criterion of points is lambda1 cond(W) + lambda2 S: see --measure, --lambda1 and --lambda2",
    "scaled": "the scaling S of the matrix is part of the criterion of points: see --lambda2",
    "rest": "a motion through points starts and ends at rest",
}


MOTION = "The motion"
SEARCH = "How the best motion is searched"
LIMITS = "Limits of the motion; where the description has a limit too, the tighter one holds"
APART = "What is kept apart and what is held"
ROBOT = "The robot"
ON_FEET = "A robot on its feet"
PAIRS = Numbers(
    "LOW:HIGH,..",
    count=2,
    separators=",:",
    written="low:high, or one such pair per joint separated by commas",
    expected="pairs of a lower and an upper limit",
)


@dataclass(frozen=True)
class ExciteSettings:
    """Options of a designed motion; the defaults are those of the command line.

    Examples:
        >>> from dynid.excitation.options import ExciteSettings
        >>> ExciteSettings(shape="points", period=10.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        dynid.errors.InputError: --period is given with --shape points, expected --shape fourier or bspline or sinusoids; ...
    """

    purpose: Literal["bodies", "actuators"] = option(
        "bodies",
        "What the motion is for: bodies (torque logs of 'identify'), or actuators: ramps, steps and chirps to be played as position "
        "commands for 'dynid actuators'.",
        Text("WHAT", choices=PURPOSES, what="purpose of a motion"),
        flag="--for",
        group=MOTION,
    )
    top_hz: float | None = option(
        None,
        "Actuators: highest frequency of the chirps, Hz. Default: 8.",
        Number("HZ", 0.0, open_low=True, unit="Hz"),
        group=MOTION,
    )
    shape: Literal["fourier", "bspline", "points", "sinusoids"] = option(
        "fourier",
        "fourier, bspline, points (best poses, joined by polynomials) or sinusoids (one period for each joint).",
        Text("NAME", choices=SHAPES, what="shape of motion"),
        group=MOTION,
    )
    period: float | None = option(
        None,
        "Length of one period, or of the motion, s; not for points. Default: 20.",
        Number("SECONDS", unit="s"),
        group=MOTION,
        only_for=(*SEARCHED, "sinusoids"),
    )
    periods: int = option(1, "How often the motion is repeated in the file.", Number("N", whole=True), group=MOTION)
    rate: float = option(1000.0, "Samples per second: the controller's rate.", Number("HZ", unit="Hz"), group=MOTION)
    rest: bool = option(
        True,
        "Ramps from rest before the motion, and to rest in the same pose after it.",
        Switch(),
        group=MOTION,
        only_for=(*SEARCHED, "sinusoids"),
    )
    home: tuple[float, ...] | None = option(
        None,
        "Pose in which the robot stands before and after, rad or m, one number per joint: a slow way from it to the motion and back, held "
        "against the same limits and surroundings, becomes part of every file. Default: none; drive to the start by hand.",
        Numbers("Q1,Q2,.."),
        example="0,-0.8,0,-2.4,0,1.6,0.8",
        group=MOTION,
    )
    harmonics: int | None = option(
        None, "Harmonics of the Fourier series. Default: 5.", Number("N", whole=True), group=MOTION, only_for=("fourier",)
    )
    intervals: int | None = option(
        None, "Knot intervals of a B-spline. Default: 12.", Number("N", whole=True), group=MOTION, only_for=("bspline",)
    )
    points: int | None = option(
        None,
        "Points: rows of the energy model, at least one per base parameter. Default: 30, or 1.5 per base parameter.",
        Number("N", whole=True),
        group=MOTION,
        only_for=("points",),
    )
    joint: str | None = option(
        None, "Sinusoids: move this joint alone, for its friction.", Text("NAME"), group=MOTION, only_for=("sinusoids",)
    )
    amplitude: tuple[float, ...] | None = option(
        None,
        "Sinusoids: amplitude of each joint's velocity, rad/s or m/s: dq = A sin(2 pi t / P). Default: from the limits.",
        Numbers("A1,A2,.."),
        group=MOTION,
        only_for=("sinusoids",),
    )
    period_s: tuple[float, ...] | None = option(
        None,
        "Sinusoids: period of each joint, s, one or one per joint.",
        Numbers("P1,P2,.."),
        group=MOTION,
        only_for=("sinusoids",),
    )
    centre: tuple[float, ...] | None = option(
        None,
        "Sinusoids: position about which each joint moves, rad or m. Default: the middle of its range.",
        Numbers("C1,C2,.."),
        group=MOTION,
        only_for=("sinusoids",),
    )
    seconds: float = option(
        60.0, "Time to spend on the design; first-use compilation is not counted.", Number("SECONDS"), group=SEARCH
    )
    starts: int | None = option(
        None,
        "Random starts of the search. Default: 36; 2 for points.",
        Number("N", whole=True),
        group=SEARCH,
        only_for=(*SEARCHED, "points"),
    )
    engine: str | None = option(
        None,
        "Where the starts run: serial, threads:N, processes:N, or dask for single-thread processes of Dask on this machine. "
        "Default: one thread per core; for points serial.",
        Text("ENGINE", valid=engine_from),
        example="processes:4",
        group=SEARCH,
        only_for=(*SEARCHED, "points"),
    )
    criterion: str | None = option(
        None,
        "Fourier and B-spline: condition, logdet, smallest, trace, frobenius, or a mix: condition+0.5*logdet. Default: condition.",
        Text("NAME"),
        group=SEARCH,
        only_for=SEARCHED,
    )
    scaled: bool = option(
        False,
        "Fourier and B-spline: criterion of the regressor with columns of length one.",
        Switch(),
        group=SEARCH,
        only_for=SEARCHED,
    )
    torque_noise: tuple[float, ...] | None = option(
        None,
        "Expected torque noise of each joint, N m or N: predictions use it, and in Fourier and B-spline designs rows are divided by "
        "it. Default: 1 % of each joint's torque for predictions, equal rows for designs.",
        Numbers("S1,S2,.."),
        group=SEARCH,
    )
    measure: Literal["singular", "pivoted", "frobenius"] | None = option(
        None,
        "Points: condition number by singular values (singular), QR with pivoting (pivoted) or Frobenius norms (frobenius). "
        "Default: singular.",
        Text("NAME", choices=MEASURES, what="measure of the condition number"),
        group=SEARCH,
        only_for=("points",),
    )
    lambda1: float | None = option(
        None, "Points: weight of the condition number. Default: 1.", Number("WEIGHT"), group=SEARCH, only_for=("points",)
    )
    lambda2: float | None = option(
        None,
        "Points: weight of the scaling S = max |W| / min |W| beside the condition number; 0 to leave it out. Default: 0.02.",
        Number("WEIGHT"),
        group=SEARCH,
        only_for=("points",),
    )
    until: str | None = option(
        None,
        'Repeat the motion until a base parameter is known so well: "sigma(Izz6) < 5 %" of the description\'s value, or in SI units.',
        Text("TARGET"),
        group=SEARCH,
    )
    seed: int = option(0, "Seed of everything random.", Number("N", whole=True), group=SEARCH)
    fraction: float = option(
        DEFAULT_FRACTION,
        "Share of the robot's velocity, acceleration and torque limits to use; below 1, 5 % of each joint's range stay free too.",
        Number("SHARE"),
        group=LIMITS,
    )
    robot_limits: str | None = option(
        None,
        "File of limits beside the description: joint_limits.yaml of MoveIt or ros2_control, or the same as .toml or .json.",
        Text("FILE", path=True),
        group=LIMITS,
    )
    position: tuple[tuple[float, float], ...] | None = option(
        None, "Position limits, rad or m, one pair or one per joint.", PAIRS, group=LIMITS
    )
    velocity: tuple[float, ...] | None = option(
        None, "Velocity limits, rad/s or m/s, one or one per joint.", Numbers("V1,V2,.."), group=LIMITS
    )
    acceleration: tuple[float, ...] | None = option(
        None,
        "Acceleration limits, rad/s^2 or m/s^2, one or one per joint. Default: the description's, those of a well-known arm, or "
        "what the torque limits allow.",
        Numbers("A1,A2,.."),
        group=LIMITS,
    )
    jerk: tuple[float, ...] | None = option(
        None, "Jerk limits, rad/s^3 or m/s^3, one or one per joint.", Numbers("J1,J2,.."), group=LIMITS
    )
    torque: tuple[float, ...] | None = option(
        None, "Torque limits, N m or N, one or one per joint.", Numbers("T1,T2,.."), group=LIMITS
    )
    torque_uncertainty: float = option(
        0.1, "Relative uncertainty of the nominal model's torque.", Number("SHARE"), group=LIMITS
    )
    tool_speed: float | None = option(None, "Speed limit of the tool, m/s.", Number("SPEED", unit="m/s"), group=LIMITS)
    tool: str | None = option(None, "Link whose origin is the tool; default: the last one.", Text("LINK"), group=LIMITS)
    keep_in: tuple[float, ...] | None = option(
        None,
        "A box that the tool's origin does not leave: centre and edges in the base frame, m.",
        Numbers("X,Y,Z,SX,SY,SZ", 6),
        example="0.4,0,0.5,0.6,0.8,0.6",
        group=LIMITS,
    )
    collision: bool = option(True, "Keep bodies apart from one another and from the mounting plane.", Switch(), group=APART)
    clearance: float | None = option(
        None,
        "Smallest distance between bodies, and to the ground, m. Collision shapes of URDF and SDF and geoms of MJCF are kept apart, "
        "else capsules of joint frames and inertia. Default: 0.05.",
        Number("DISTANCE", unit="m"),
        group=APART,
    )
    ground: float | str | None = option(
        None,
        "Height of the mounting plane in the base frame, m, which no body may touch; none: there is no plane. Default: the level "
        "floor plane of an MJCF file, else 0.",
        Number("HEIGHT|none", words_taken=("none",), unit="m"),
        group=APART,
    )
    box: tuple[str, ...] = option(
        (),
        "An obstacle: centre, edges and turn about z in the base frame, m and rad; or a file: .toml with [[box]], [[plane]], ceiling, "
        "or an MJCF scene. Repeat for several.",
        Names("X,Y,Z,SX,SY,SZ[,YAW]|FILE", form="0.5,0,0.2,0.3,0.3,0.4"),
        group=APART,
    )
    plane: tuple[str, ...] = option(
        (),
        "A plane: the robot stays where NX x + NY y + NZ z >= D, in the base frame, m. Repeat for several.",
        Names("NX,NY,NZ,D", form="0,0,1,-0.2"),
        group=APART,
    )
    ceiling: float | None = option(
        None, "Height of a ceiling in the base frame, m.", Number("HEIGHT", unit="m"), group=APART
    )
    wall: tuple[str, ...] = option(
        (), "A wall beside the base: x=PLACE or y=PLACE, m. Repeat for several.", Names("x=PLACE", form="x=0.8"), group=APART
    )
    tool_sphere: float | None = option(
        None,
        "Radius of a ball about the tool's origin that is kept clear of everything, m.",
        Number("RADIUS", 0.0, open_low=True, unit="m"),
        group=APART,
    )
    tool_box: tuple[float, ...] | None = option(
        None, "Edges of a box about the tool's origin, as it turns with the tool, m.", Numbers("SX,SY,SZ", 3), group=APART
    )
    unchecked: bool = option(
        False,
        "Write a motion even where a check cannot be made: clearance that no shape gives, torque of a robot without inertia.",
        Switch(),
        group=APART,
    )
    move: tuple[str, ...] = option(
        (),
        "Also move these joints, or 'all'; joints that follow others, fingers and wheels are held otherwise.",
        Names("JOINT,.."),
        group=APART,
    )
    feet: tuple[str, ...] = option(
        (),
        "Frames of point feet on which the robot stands: safe motions with feet fixed by inverse kinematics, instead of a design.",
        Names("FRAME,.."),
        group=ON_FEET,
    )
    flat_feet: tuple[str, ...] = option((), "The same for flat feet.", Names("FRAME,.."), group=ON_FEET)
    motions: tuple[str, ...] = option(
        (),
        "Motions on feet, each --period long: shift (of weight), squat, turn (of the trunk), swing (of single legs). Default: all.",
        Names("NAME,.."),
        group=ON_FEET,
    )
    effects: tuple[str, ...] = effects_option(group=ROBOT)
    gravity: tuple[float, float, float] | None = gravity_option(group=ROBOT)
    lock: Mapping[str, float] = lock_option(group=ROBOT)

    def __post_init__(self) -> None:
        check_options(self)
        if self.engine is not None and getattr(engine_from(self.engine), "address", None) is not None:
            raise InputError(
                f"--engine is '{self.engine}', but the time for the design is measured on this machine: expected serial, threads:N, "
                "processes:N, or dask without an address"
            )
        if self.top_hz is not None and self.purpose != "actuators":
            raise InputError("--top-hz is given without --for actuators, expected both")
        for one in misplaced_options(self, self.shape):  # given, and of no use to this shape
            reason = INSTEAD_FOR_POINTS.get(one.name) if self.shape == "points" else None
            kind, flag = kind_of(one), flag_of(one)
            flag = kind.words(flag, getattr(self, one.name))[0] if isinstance(kind, Switch) else flag
            raise InputError(
                f"{flag} is given with --shape {self.shape}, expected --shape {' or '.join(one.metadata['only_for'])}"
                + (f"; {reason}" if reason else "")
            )
        if self.amplitude is None:
            for flag, value in (("--period-s", self.period_s), ("--centre", self.centre)):
                if value is not None:
                    raise InputError(f"{flag} is given without --amplitude, expected both, or neither to use the limits")
        elif self.period_s is None:
            raise InputError("--amplitude is given without --period-s, expected the period of each joint in s")
        if self.amplitude is not None and self.joint is not None:
            raise InputError("--joint and --amplitude are both given, expected one; an amplitude of 0 holds a joint")
        if self.tool_sphere is not None and self.tool_box is not None:
            raise InputError("--tool-sphere and --tool-box are both given, expected one")
        if self.tool_box is not None and not min(self.tool_box) > 0.0:
            raise InputError(
                f"--tool-box has edges {', '.join(f'{x:g}' for x in self.tool_box)} m, expected positive numbers"
            )
        if not self.collision:
            around = ("clearance", "ground", "box", "plane", "ceiling", "wall", "tool_sphere", "tool_box")
            for flag, given in ((f"--{name.replace('_', '-')}", getattr(self, name)) for name in around):
                if given not in (None, ()):
                    raise InputError(f"{flag} is given with --no-collision, expected one of the two")

    def chosen(self, *names: str) -> dict[str, Any]:
        """Those of some options that have a value; for the others the design has its own default."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}
