"""Every option of a run, written once: its name, default, meaning, what it may be, and where it belongs.

Command-line flags with their help, the run-file template of ``dynid init``, the settings in ``run.json`` and the command
that repeats a run are all made from the fields below. A new option is one field here and its use where it acts.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, fields
from typing import Any, Literal

from dynid.errors import InputError, UnknownNameError
from dynid.run.kinds import (
    Choice,
    EngineName,
    File,
    Names,
    Number,
    NumberOrFile,
    NumberOrPath,
    Numbers,
    Springs,
    Switch,
    Table,
    Terms,
    Text,
    Whole,
)
from dynid.run.option import (
    check_options,
    effects_option,
    flag_of,
    gravity_option,
    is_flag,
    kind_of,
    lock_option,
    option,
    options_of,
)

PRIORS = ("auto", "none", "euclidean", "scaled", "entropic")
CONDITIONS = ("full", "plain")
OPTIMISERS = ("refine", "annealing")
VELOCITIES = ("auto", "logged", "position")
ROW_KINDS = ("torque", "energy", "polynomial")
DEFAULT_EFFECTS = ("viscous", "coulomb", "offset", "armature")


@dataclass(frozen=True)
class Model:
    """Which model is identified."""

    effects: tuple[str, ...] = effects_option(DEFAULT_EFFECTS)
    friction: str | None = option(
        None,
        "Friction model in place of viscous, coulomb, offset: linear, smooth, polynomial, sigmoid, gaz, stribeck, load, "
        "load_polynomial, presliding (a joint at rest keeps the friction of its last motion), presliding_polynomial, "
        "presliding_load, or auto, the one that predicts held-out blocks of time best, for each joint. Default: auto; the "
        "effects as given where --effects names others, or with --signals.",
        Choice("MODEL", where="dynid.robot.effects:friction_choices", what="friction model"),
        example="auto",
    )
    gravity: tuple[float, float, float] | None = gravity_option()
    lock: Mapping[str, float] = lock_option()
    coupling: tuple[str, ...] = option(
        (),
        "A motor that also turns with another joint: 6:5=1 for v_m6 = v_6 + v_5, by number or name; repeat for several. Adds the "
        "friction and rotor inertia of that motor; a log with --side motor is carried to the joints.",
        Terms("MOTOR:JOINT=VALUE", "6:5=1"),
        example=("6:5=1",),
    )
    motor_effects: tuple[str, ...] | None = option(
        None,
        "Effects of motors that drive several joints; default: viscous and dry friction and rotor inertia as far as the joints "
        "have them.",
        Names("NAMES"),
        example=("viscous", "smooth_coulomb", "armature"),
    )
    spring: tuple[Mapping[str, Any], ...] = option(
        (),
        "A spring, counterbalance or cable on a joint: torsion, linear (between two points), constant, gas, potential (Fourier "
        "series in position), cable; repeat for several. Geometry that is not given in a table [[spring]] is fitted.",
        Springs("JOINT=KIND"),
        example=({"joint": 2, "kind": "linear"},),
    )
    keep_bodies: str | None = option(
        None,
        "Take the rigid bodies from this run, filter as it did, and identify friction alone.",
        File("RUN"),
        example="earlier_run",
    )


@dataclass(frozen=True)
class Reading:
    """How logs are read."""

    from_s: float | None = option(
        None,
        "Use each log from this time, s; of one log alone: LOG@10:25, LOG@10: or LOG@:25.",
        NumberOrFile("SECONDS", file_option="coefficients"),
        flag="--from",
        example=2.0,
    )
    to_s: float | None = option(None, "Use each log up to this time, s.", Number("SECONDS"), flag="--to", example=60.0)
    trim: bool = option(
        True,
        "Leave out the standstill before and after the motion of each log, but for half a second; not of logs that --from or "
        "--to cuts.",
        Switch(),
    )
    drive_gains: tuple[float, ...] | None = option(
        None, "N m per A, one per joint: torque from motor current.", Numbers("K1,K2,.."), example=(10.0, 10.0, 8.0)
    )
    preset: str | None = option(
        None, "Column names and units of a vendor: libfranka, rtde, fri, joint_states.", Text("NAME"), example="rtde"
    )
    mapping: str | None = option(
        None, "TOML or JSON file that names the log's columns.", File("FILE"), example="columns.toml"
    )
    joints: tuple[str, ...] | None = option(
        None,
        "Joints that numbered columns (q1, q2, ..) belong to, in their order; the others are locked.",
        Names("NAME,NAME,.."),
        example=("shoulder", "elbow"),
    )
    gear_ratios: tuple[float, ...] | None = option(
        None,
        "Motor turns per joint turn, one per joint, where the log holds motor-side quantities.",
        Numbers("N1,N2,.."),
        example=(100.0, 100.0, 80.0),
    )
    side: Literal["joint", "motor"] | None = option(
        None,
        "Where the log's positions, velocities and torques were measured: joint, or motor, before gears and coupling. "
        "Default: what the robot file or the preset says, else joint.",
        Choice("SIDE", ("joint", "motor"), what="side of the gearbox"),
        example="motor",
    )
    rate_hz: float | None = option(
        None,
        "Sampling rate of a log without a clock, Hz; replaces its clock where it has one.",
        Number("HZ", 0.0, open_low=True, unit="Hz"),
        example=500.0,
    )
    episode: int | None = option(
        None, "Episode to read from a data set of several (its column episode_index).", Whole("N", 0), example=0
    )
    topic: str | None = option(None, "Topic to read from a ROS bag.", Text("NAME"), example="/joint_states")
    stream: Literal["auto", "on", "off"] = option(
        "auto",
        "Read logs piece by piece, in memory that does not grow with their length: on, off, or auto, where they hold more than "
        "32 MB of numbers together. Bands, friction and the data check then come from windows, the estimate and its errors from "
        "all rows.",
        Choice("WHEN", ("auto", "on", "off"), what="way to read logs"),
        example="on",
    )


@dataclass(frozen=True)
class Rows:
    """Which physical statement makes the rows, and how signals are filtered."""

    rows: str = option(
        "torque",
        "Physical statement that makes the rows: torque, energy (work over intervals, no acceleration) or polynomial "
        "(polynomial approximation on a sliding window, no derivative of a signal).",
        Choice("KIND", where="dynid.run.rows:row_kinds", what="kind of rows"),
    )
    velocity: Literal["auto", "logged", "position"] = option(
        "auto",
        "Velocity: logged, position (differentiated), or auto, whichever predicts held-out raw torque better.",
        Choice("SOURCE", VELOCITIES, what="velocity source"),
    )
    filter: str = option(
        "butterworth",
        "Filter of the signals: butterworth (zero-phase), or savgol:WINDOW,ORDER for Savitzky-Golay.",
        Text("NAME"),
        example="savgol:11,2",
    )
    signals: bool = option(
        False,
        "Filter signals, as the papers do: position, velocity and torque at one cut-off. Default: rows are made of lightly "
        "filtered signals and then filtered together with torque, which keeps friction right at reversals.",
        Switch(),
    )
    cutoff_hz: float | Literal["auto"] = option(
        "auto",
        "Band of the rows, in which torque is fitted and judged, Hz; auto: the band that predicts held-out torque best. With "
        "--signals the low-pass of all signals; auto: the cut-off that predicts held-out raw torque best.",
        Number("HZ", 0.0, open_low=True, words_taken=("auto",), unit="Hz"),
    )
    signal_band_hz: float | Literal["auto"] = option(
        "auto",
        "Low-pass of position and velocity before rows are made of them, Hz; auto: where the spectrum of position meets its "
        "noise, or below. Not with --signals.",
        Number("HZ", 0.0, open_low=True, words_taken=("auto",), unit="Hz"),
    )
    torque_cutoff_hz: float | None = option(
        None,
        "Cut-off for torque alone, Hz; default: the same. Needs --signals.",
        Number("HZ", 0.0, open_low=True, unit="Hz"),
        example=20.0,
    )
    filter_order: int = option(4, "Order of the zero-phase Butterworth.", Whole("N", 1, 12))
    dead_zone: float | Literal["auto"] = option(
        "auto",
        "Speed below which the sign of Coulomb friction is taken as unknown, rad/s or m/s; auto: three times the velocity noise.",
        Number("SPEED", 0.0, words_taken=("auto",), unit="rad/s"),
    )
    intervals: str = option(
        "auto",
        "Intervals of --rows energy: their length in s, auto (about ten per parameter), or the JSON file of "
        "'dynid excite --shape points', whose knots they then join.",
        NumberOrPath("SECONDS|FILE", words_taken=("auto",)),
    )
    window: float | Literal["auto"] = option(
        "auto",
        "Window of --rows polynomial, s; auto: the one that predicts held-out raw torque best.",
        Number("SECONDS", 0.0, open_low=True, words_taken=("auto",), unit="s"),
    )
    null_hz: float | None = option(
        None,
        "Frequency that --rows polynomial removes, Hz: the exponents of its window are moved until it has a zero there.",
        Number("HZ", 0.0, open_low=True, unit="Hz"),
        example=50.0,
    )
    order: int = option(1, "Degree N of the polynomials of --rows polynomial.", Whole("N", 0, 30))
    product_order: int = option(2, "Degree N* at which products are approximated by --rows polynomial.", Whole("N", 0, 30))
    composition: Literal["product", "pointwise"] = option(
        "product",
        "How --rows polynomial forms products: product (at the N* + 1 nodes of the window) or pointwise (of approximated "
        "signals, which are then filtered twice).",
        Choice("NAME", ("product", "pointwise"), what="composition"),
    )
    alpha: float = option(3.0, "Exponent of the window's weight at its newest end (--rows polynomial).", Number("A", 0.0))
    beta: float = option(3.0, "Exponent of the window's weight at its oldest end (--rows polynomial).", Number("B", 0.0))
    max_rows: int = option(
        50_000, "Samples kept per log after filtering; a low-passed signal needs no more.", Whole("N", 100)
    )


@dataclass(frozen=True)
class Fit:
    """How the model is estimated."""

    method: str = option(
        "sdp",
        "Estimator: sdp (every link physically consistent), ols, wls, robust, tls, ridge, essential, recursive, iv, "
        "bpfc (least squares, then the nearest feasible base values), fbpe-wls (sdp without a prior, joints weighted), "
        "manifold and logcholesky (consistent, but they take no constraints), retrieve (under a bounds file).",
        Choice("NAME", where="dynid.estimation.methods.registry:method_names", what="method"),
    )
    split: float | None = option(
        None,
        "Identify on this share of each log, from its start; validate on the rest.",
        Number("SHARE", 0.0, 1.0, open_low=True, open_high=True),
        example=0.65,
    )
    weighted: bool = option(
        True,
        "Count joints by their own noise in sdp, bpfc, manifold and logcholesky; otherwise every row counts the same.",
        Switch(off="--unweighted"),
    )
    condition: str = option(
        "full",
        "Condition on every link: full (physically consistent), or plain, that of Sousa and Cortesao, without the triangle "
        "inequality of the moments of inertia. Feasibility of the other methods' base values is decided under it as well. "
        "manifold and logcholesky know the full one only.",
        Choice("NAME", CONDITIONS, what="condition"),
    )
    margin: float = option(
        1e-6,
        "Smallest eigenvalue of every link's matrix in consistent methods, relative to the link's size in the description.",
        Number("E", 0.0),
    )
    pull: float = option(
        1e-4,
        "Weight, in units of the noise, of a small pull of sdp, fbpe-wls, manifold and logcholesky to the unconstrained solution "
        "along directions that the data do not determine; 0: none, as in the paper, where masses may grow without limit.",
        Number("X", 0.0),
    )
    prior: str = option(
        "auto",
        "Prior of sdp for parameters that the data do not determine: the description (entropic, scaled, euclidean), none, "
        "or auto: entropic, around the nearest consistent body where a link of the description is none, and weakened until it "
        "fits as well as the data can tell; it never pulls friction or rotor inertia.",
        Choice("KIND", PRIORS, what="prior"),
    )
    prior_strength: float = option(
        1.0,
        "Weight of the prior in units of the noise; 1 takes the description to be as uncertain as each parameter's size.",
        Number("WEIGHT", 0.0, open_low=True),
    )
    boxes: bool = option(
        True,
        "Keep the density of every link realisable in the box around its collision or visual shapes, where the description has "
        "any (sdp). Links whose box the data contradict go without it, and this is noted.",
        Switch(),
    )
    bounds: str | None = option(
        None,
        "Bounds for --method retrieve or recursive, CSV (name, lower, upper) or TOML: m1, c1x, I1xx about the centre of "
        "mass, total_mass; for recursive any parameter by its name.",
        File("FILE"),
        example="bounds.csv",
    )
    coefficients: str | None = option(
        None,
        "Retrieve in two steps, from base values that are known already: a run, or a CSV with name or expression, value, "
        "sigma_percent. Logs are then optional and validate. --from takes it as well.",
        File("RUN|CSV"),
        example="coefficients.csv",
    )
    drop_above: float | None = option(
        None,
        "Leave out of a retrieval the coefficients whose relative standard deviation is above this, percent.",
        Number("PERCENT", 0.0, open_low=True),
        example=30.0,
    )
    optimiser: str = option(
        "refine",
        "Search of --method retrieve: refine (from the convex relaxation) or annealing (Algorithm 1 of the paper).",
        Choice("NAME", OPTIMISERS, what="optimiser"),
    )
    starts: int = option(2, "Starts of --method retrieve, annealing over all cores.", Whole("N", 1))
    steps: int = option(10, "Steps of the annealing retrieval, each with a larger penalty (kappa).", Whole("N", 1))
    growth: float = option(
        10.0, "Factor by which the penalty xi of the annealing retrieval grows from step to step.", Number("X", 1.0)
    )
    iterations: int = option(100, "Iterations of the annealing per step.", Whole("N", 1))
    seed: int = option(0, "Seed of everything random.", Whole("N", 0))
    form: str = option(
        "repaired",
        "Form of --method recursive: repaired (equals the batch solution) or literal (as printed by Lomakin and Deutscher).",
        Choice("NAME", ("repaired", "literal"), what="form of recursive least squares"),
    )
    constraints: Mapping[str, Any] = option(
        {}, "Constraints beyond physical consistency, for sdp, bpfc, fbpe-wls and retrieve.", Table()
    )
    conditions: tuple[Mapping[str, Any], ...] = option(
        (), "Conditions of --method retrieve as expressions, such as 'm1 > 2 * m2 if m2 > 1'.", Table(many=True)
    )


@dataclass(frozen=True)
class Work:
    """Where the work runs."""

    engine: str = option(
        "serial",
        "Where the work runs: serial, threads:N, processes:N, or dask[:ADDRESS] for the workers of a Dask cluster, without an "
        "address one on this machine. Results do not depend on the number of workers.",
        EngineName("ENGINE"),
        example="processes:4",
    )


@dataclass(frozen=True)
class Sensor:
    """Body on a force/torque sensor (logs with fx.. in place of joint torque)."""

    frame: str | None = option(
        None,
        "Frame of the sensor: any link of the description; default: the last link.",
        Text("LINK"),
        example="ft_sensor",
    )
    frame_pose: tuple[float, ...] | None = option(
        None,
        "Pose of the sensor in that frame: m, and roll, pitch, yaw in rad.",
        Numbers("X,Y,Z,R,P,Y", 6),
        example=(0.0, 0.0, 0.05, 0.0, 0.0, 0.0),
    )
    imu_pose: tuple[float, ...] | None = option(
        None,
        "Pose in the sensor of the IMU that measured the motion; default: the sensor's own.",
        Numbers("X,Y,Z,R,P,Y", 6),
        example=(0.0, 0.0, 0.02, 0.0, 0.0, 0.0),
    )
    drift: bool = option(False, "Estimate a linear drift of the six offsets of the sensor.", Switch())
    tilt: bool = option(False, "Estimate the direction of gravity: the robot is not mounted level.", Switch())
    static: bool | None = option(
        None,
        "Use the weight on the sensor alone, or its whole motion; default: the weight alone where the sensor hardly turns.",
        Switch(off="--dynamic"),
        example=True,
    )
    mass: float | None = option(
        None, "Known mass of the body on the sensor, kg.", Number("KG", 0.0, open_low=True, unit="kg"), example=2.8
    )
    shape: str | None = option(
        None,
        "Shape that the body on the sensor fills, in its frame: box:X0,Y0,Z0,X1,Y1,Z1, cylinder:X0,Y0,Z0,X1,Y1,Z1,RADIUS or "
        "mesh:FILE.",
        Text("SHAPE"),
        example="box:-0.1,-0.1,0,0.1,0.1,0.2",
    )


POLYNOMIAL = ("window", "null_hz", "order", "product_order", "composition", "alpha", "beta")
"""Options of --rows polynomial."""
ROW_OPTIONS = ("rows", "intervals", *POLYNOMIAL)
"""Options that say which physical statement the rows make."""
OF_ONE_LOG = (*(one.name for one in options_of(Reading, Rows) if one.name != "rows"), "split")
"""Options that another log may have of its own, beside a model that stays."""

GROUPS: Mapping[str, type] = {
    "model": Model,
    "reading": Reading,
    "rows": Rows,
    "estimation": Fit,
    "sensor": Sensor,
    "work": Work,
}
"""Sections of a run file, and the options that stand in each."""


@dataclass(frozen=True)
class Settings(Work, Sensor, Fit, Rows, Reading, Model):
    """Options of a run; the defaults are those of the command line.

    Examples:
        >>> from dynid.run.options import Settings
        >>> Settings(method="wls", split=0.65).method
        'wls'
        >>> Settings(split=2.0)
        Traceback (most recent call last):
        ...
        dynid.errors.InputError: setting 'split' is 2.0, expected a number between 0 and 1
    """

    def __post_init__(self) -> None:
        check_options(self)
        loaded = [name for name in self.effects if name.startswith("load_")]
        if loaded:
            raise InputError(
                f"effect '{loaded[0]}' needs the load of each joint, which is found with the estimate: use --friction load"
            )

    @property
    def friction_model(self) -> str | None:
        """The friction model asked for; where rows are filtered, ``auto`` unless effects were chosen; None for effects as given."""
        if self.friction is not None or self.signals:
            return self.friction
        return "auto" if self.effects == DEFAULT_EFFECTS else None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        known = cls.__dataclass_fields__
        for name in values:
            if name not in known:
                raise UnknownNameError("setting", name, known)
        return cls(**values)

    def changed(self) -> dict[str, Any]:
        """The settings that are not the defaults."""
        plain = Settings()
        return {
            one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) != getattr(plain, one.name)
        }


def all_options() -> Iterator[Field[Any]]:
    """Every option of a run, in order."""
    yield from options_of(*GROUPS.values())


def command_line(
    settings: Settings, robot: str, logs: Sequence[str], validate_on: Sequence[str] = (), config: str = ""
) -> str:
    """The command that repeats a run: only what differs from the defaults, and ``config`` for what no flag can give."""
    words = ["dynid", "identify", robot, *logs]
    for log in validate_on:
        words += ["--validate", log]
    changed = settings.changed()
    if config and any(kind_of(one).needs_file(changed[one.name]) for one in all_options() if one.name in changed):
        words += ["--config", config]
    for one in all_options():
        if one.name in changed and is_flag(one):
            words += kind_of(one).words(flag_of(one), changed[one.name])
    return shlex.join(words)
