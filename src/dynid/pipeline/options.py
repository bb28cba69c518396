"""Every option of a run, written once: its name, default, meaning, what it may be, and where it belongs.

Command-line flags with their help, the run-file template of ``dynid init``, the settings in ``run.json`` and the command
that repeats a run are all made from the fields below. A new option is one field here, or in a group that verbs
share (``option_groups.py``), and its use where it acts.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import Field, asdict, dataclass, replace
from typing import Any, Literal

from dynid.engine import engine_from
from dynid.errors import InputError, UnknownNameError
from dynid.option_types import (
    DEFAULT_EFFECTS,
    Names,
    Number,
    Numbers,
    Switch,
    Table,
    Text,
    changed_options,
    check_options,
    flag_of,
    is_flag,
    kind_of,
    options_of,
)
from dynid.pipeline.option_groups import (
    BOTH,
    FLOATING,
    READING,
    ROWS,
    SECTIONS,
    WRENCH,
    Model,
    Reading,
    fit_option,
    floating_option,
    row_option,
    sensor_option,
    work_option,
)

POLYNOMIAL = ("window", "window_delay", "null_hz", "order", "product_order", "composition", "alpha", "beta")
"""Options of --rows polynomial."""
ROW_OPTIONS = ("rows", "intervals", *POLYNOMIAL)
"""Options that say which physical statement the rows make."""


@dataclass(frozen=True)
class Settings(Reading, Model):
    """Options of a run; the defaults are those of the command line.

    Examples:
        >>> from dynid.pipeline.options import Settings
        >>> Settings(method="wls", split=0.65).method
        'wls'
        >>> Settings(split=2.0)
        Traceback (most recent call last):
        ...
        dynid.errors.InputError: setting 'split' is 2.0, expected a number between 0 and 1
    """

    rows: str = row_option(
        "torque",
        "Physical statement that makes the rows: torque, energy (work over intervals, no acceleration) or polynomial "
        "(polynomial approximation on a sliding window, no derivative of a signal).",
        Text("KIND", known_in="dynid.pipeline.row_plan:row_kinds", what="kind of rows"),
        only_for=BOTH,
    )
    velocity: Literal["auto", "logged", "position"] = row_option(
        "auto",
        "Velocity: logged, position (differentiated), or auto, whichever predicts held-out raw torque better.",
        Text("SOURCE", choices=("auto", "logged", "position"), what="velocity source"),
    )
    filter: str = row_option(
        "butterworth",
        "Filter of the signals: butterworth (zero-phase), or savgol:WINDOW,ORDER for Savitzky-Golay.",
        Text("NAME"),
        example="savgol:11,2",
        only_for=BOTH,
    )
    filter_on: Literal["rows", "signals"] = row_option(
        "rows",
        "What is filtered: rows, made of lightly filtered signals and then filtered together with torque, which keeps friction "
        "right at reversals; or signals, as the papers do: position, velocity and torque at one cut-off.",
        Text("WHAT", choices=("rows", "signals"), what="choice of what to filter"),
        example="signals",
        only_for=BOTH,
    )
    cutoff_hz: float | Literal["auto"] = row_option(
        "auto",
        "Band of the rows, in which torque is fitted and judged, Hz; auto: the band that predicts held-out torque best. With "
        "--filter-on signals the low-pass of all signals; auto: the cut-off that predicts held-out raw torque best.",
        Number("HZ", 0.0, open_low=True, words_taken=("auto",), unit="Hz"),
        only_for=BOTH,
    )
    signal_band_hz: float | Literal["auto"] = row_option(
        "auto",
        "Low-pass of position and velocity before rows are made of them, Hz; auto: where the spectrum of position meets its "
        "noise, or below. Not with --filter-on signals.",
        Number("HZ", 0.0, open_low=True, words_taken=("auto",), unit="Hz"),
    )
    torque_cutoff_hz: float | None = row_option(
        None,
        "Cut-off for torque alone, Hz; default: the same. Needs --filter-on signals.",
        Number("HZ", 0.0, open_low=True, unit="Hz"),
        example=20.0,
    )
    torque_delay: float | Literal["auto"] = row_option(
        0.0,
        "By how much torque was logged later than position, s, in all joints alike; auto: found in the data with its interval.",
        Number("SECONDS", -1.0, 1.0, words_taken=("auto",), unit="s"),
    )
    filter_order: int = row_option(4, "Order of the zero-phase Butterworth.", Number("N", 1, 12, whole=True), only_for=BOTH)
    dead_zone: float | Literal["auto"] = row_option(
        "auto",
        "Speed below which the sign of dry friction is taken as unknown, rad/s or m/s: torque rows of a joint that is slower are left out "
        "of the fit. auto: none, but stops that spoil the fit of the motion; a sharp sign is zero below three times the velocity noise.",
        Number("SPEED", 0.0, words_taken=("auto",), unit="rad/s"),
    )
    intervals: str = row_option(
        "auto",
        "Intervals of --rows energy: their length in s, auto (about ten per parameter), or the JSON file of "
        "'dynid excite --shape points', whose knots they then join.",
        Text("SECONDS|FILE", path=True, or_number=True),
    )
    window: float | Literal["auto"] = row_option(
        "auto",
        "Window of --rows polynomial, s; auto: the one that predicts held-out raw torque best.",
        Number("SECONDS", 0.0, open_low=True, words_taken=("auto",), unit="s"),
        only_for=BOTH,
    )
    window_delay: float | None = row_option(
        None,
        "Delay t_d of --rows polynomial, s: the time before the newest sample of the --window for which a row holds. Default: that of "
        "a zero of the next polynomial, which is more exact by one degree.",
        Number("SECONDS", 0.0, unit="s"),
        example=0.0147,
    )
    null_hz: float | None = row_option(
        None,
        "Frequency that --rows polynomial removes, Hz: the exponents of its window are moved until it has a zero there.",
        Number("HZ", 0.0, open_low=True, unit="Hz"),
        example=50.0,
    )
    order: int = row_option(1, "Degree N of the polynomials of --rows polynomial.", Number("N", 0, 30, whole=True))
    product_order: int = row_option(
        2, "Degree N* at which products are approximated by --rows polynomial.", Number("N", 0, 30, whole=True)
    )
    composition: Literal["product", "pointwise"] = row_option(
        "product",
        "How --rows polynomial forms products: product (at the N* + 1 nodes of the window) or pointwise (of approximated "
        "signals, which are then filtered twice).",
        Text("NAME", choices=("product", "pointwise"), what="composition"),
    )
    alpha: float = row_option(
        3.0, "Exponent of the window's weight at its newest end (--rows polynomial).", Number("A", 0.0)
    )
    beta: float = row_option(3.0, "Exponent of the window's weight at its oldest end (--rows polynomial).", Number("B", 0.0))
    max_rows: int = row_option(
        50_000, "Samples kept per log after filtering; a low-passed signal needs no more.", Number("N", 100, whole=True)
    )

    method: str = fit_option(
        "sdp",
        "Estimator; sdp, the default, keeps every link physically consistent. Others: ols, wls, robust, tls, ridge, essential, "
        "recursive, iv, bpfc (least squares, then the nearest feasible base values), fbpe-wls (sdp without a prior, joints weighted), "
        "manifold and logcholesky (consistent, but they take no constraints), output-error (simulated motion under the measured torque), "
        "retrieve (under a bounds file).",
        Text("NAME", known_in="dynid.estimation.methods.registry:method_names", what="method"),
        only_for=BOTH,
    )
    split: float | None = fit_option(
        None,
        "Identify on this share of each log, from its start; validate on the rest.",
        Number("SHARE", 0.0, 1.0, open_low=True, open_high=True),
        example=0.65,
        only_for=BOTH,
    )
    weighted: bool = fit_option(
        True,
        "Count joints, or axes of a sensor, by their own noise in sdp, bpfc, manifold and logcholesky; otherwise every row counts "
        "the same.",
        Switch(off="--unweighted"),
        only_for=BOTH,
    )
    condition: str = fit_option(
        "full",
        "Condition on every link: full (physically consistent), or plain, that of Sousa and Cortesao, without the triangle "
        "inequality of the moments of inertia. Feasibility of the other methods' base values is decided under it as well. "
        "manifold and logcholesky know the full one only.",
        Text("NAME", choices=("full", "plain"), what="condition"),
    )
    margin: float = fit_option(
        1e-6,
        "Smallest eigenvalue of every link's matrix in consistent methods, relative to the link's size in the description.",
        Number("E", 0.0),
    )
    regularization: float = fit_option(
        1e-4,
        "Weight, in units of the noise, by which sdp, fbpe-wls, manifold and logcholesky stay near the unconstrained solution "
        "along directions that the data do not determine; 0: none, as in the paper, where masses may grow without limit.",
        Number("X", 0.0),
    )
    prior: str = fit_option(
        "auto",
        "Prior of sdp for parameters that the data do not determine: the description (entropic, scaled, euclidean), none, "
        "or auto: entropic, weakened until it fits as well as the data can tell. If a link of the description is not physically "
        "possible, the nearest possible one is used. Friction and rotor inertia have no prior.",
        Text("KIND", choices=("auto", "none", "euclidean", "scaled", "entropic"), what="prior"),
    )
    prior_strength: float = fit_option(
        1.0,
        "Weight of the prior in units of the noise; 1 takes the description to be as uncertain as each parameter's size.",
        Number("WEIGHT", 0.0, open_low=True),
    )
    boxes: bool = fit_option(
        True,
        "Keep the density of every link realisable in the box around its collision or visual shapes, where the description has "
        "any (sdp). Links whose box the data contradict go without it, and this is noted.",
        Switch(),
    )
    bounds: str | None = fit_option(
        None,
        "Bounds for --method retrieve or recursive, CSV (name, lower, upper) or TOML: m1, c1x, I1xx about the centre of "
        "mass, total_mass; for recursive any parameter by its name.",
        Text("FILE", path=True),
        example="bounds.csv",
    )
    coefficients: str | None = fit_option(
        None,
        "Retrieve in two steps, from base values that are known already: a run, or a CSV with name or expression, value, "
        "sigma_percent. Logs are then optional and validate.",
        Text("RUN|CSV", path=True),
        example="coefficients.csv",
    )
    drop_above: float | None = fit_option(
        None,
        "Leave out of a retrieval the coefficients whose relative standard deviation is above this, percent.",
        Number("PERCENT", 0.0, open_low=True),
        example=30.0,
    )
    optimiser: str = fit_option(
        "refine",
        "Search of --method retrieve: refine (from the convex relaxation) or annealing (Algorithm 1 of the paper).",
        Text("NAME", choices=("refine", "annealing"), what="optimiser"),
    )
    starts: int = fit_option(2, "Starts of --method retrieve, annealing over all cores.", Number("N", 1, whole=True))
    steps: int = fit_option(
        10, "Steps of the annealing retrieval, each with a larger penalty (kappa).", Number("N", 1, whole=True)
    )
    growth: float = fit_option(
        10.0, "Factor by which the penalty xi of the annealing retrieval grows from step to step.", Number("X", 1.0)
    )
    iterations: int = fit_option(100, "Iterations of the annealing per step.", Number("N", 1, whole=True))
    seed: int = fit_option(0, "Seed of everything random.", Number("N", 0, whole=True))
    form: str = fit_option(
        "repaired",
        "Form of --method recursive: repaired (equals the batch solution) or literal (as printed by Lomakin and Deutscher).",
        Text("NAME", choices=("repaired", "literal"), what="form of recursive least squares"),
    )
    threshold: float | None = fit_option(
        None,
        "What a column and its independent part must exceed in --method recursive for its parameter to be identified: a share of its usual "
        "size, or sigma^2 of --form literal. Default: 0.001.",
        Number("X", 0.0),
        example=0.01,
    )
    constraints: Mapping[str, Any] = fit_option(
        {}, "Constraints beyond physical consistency, for sdp, bpfc, fbpe-wls and retrieve.", Table()
    )
    symmetric: tuple[str, ...] = fit_option(
        (),
        "Names of the two sides of a robot, as 'FL_* FR_*': joints paired by them share friction and rotor inertia, their links are mirror "
        "images (sdp, bpfc, fbpe-wls, retrieve). Once for each pair of patterns.",
        Names("A* B*", form="FL_* FR_*"),
        example=("FL_* FR_*",),
    )
    calibrate: tuple[str, ...] = fit_option(
        (),
        "What is found in the data with intervals and undone: zero (of positions), gain (of torque), offset (of torque, which stays in the "
        "model), compliance and backlash (of gears, with encoders at the motors), temperature (friction that changes with time); of one "
        "joint alone zero:JOINT and so on.",
        Names("zero,gain,.."),
        example=("zero", "gain:elbow"),
    )
    conditions: tuple[Mapping[str, Any], ...] = fit_option(
        (), "Conditions of --method retrieve as expressions, such as 'm1 > 2 * m2 if m2 > 1'.", Table(many=True)
    )

    floating: bool | None = floating_option(
        None,
        "Whether the root link floats; default: where feet are named or the log holds the motion of the base (base_vx.., imu_ax..).",
        Switch(),
        example=True,
    )
    feet: tuple[str, ...] = floating_option(
        (),
        "Frames of point feet whose contact forces are not known; columns contact_NAME say when they touch the ground.",
        Names("NAME,NAME,.."),
        example=("FL_FOOT", "FR_FOOT"),
    )
    flat_feet: tuple[str, ...] = floating_option(
        (),
        "Frames of flat feet, whose contact moments are not known either; the root link itself for a robot on a vehicle, whose joints "
        "alone are then used.",
        Names("NAME,NAME,.."),
        example=("left_sole", "right_sole"),
    )
    foot_radius: float | Literal["auto"] = floating_option(
        "auto",
        "Radius of round feet around their frames, m: they touch level ground so far below; auto: the one that fits best, where it "
        "predicts held-out rows better than none.",
        Number("M", 0.0, words_taken=("auto",), unit="m"),
    )
    force_frames: tuple[str, ...] = floating_option(
        (),
        "Frames at which the log has the force on the robot: columns NAME_fx.. and, with moments, NAME_mx.., in the frame's own axes.",
        Names("NAME,NAME,.."),
        example=("l_foot_ft",),
    )

    frame: str | None = sensor_option(
        None,
        "Frame of the sensor: any link of the description; default: the last link.",
        Text("LINK"),
        example="ft_sensor",
    )
    frame_pose: tuple[float, ...] | None = sensor_option(
        None,
        "Pose of the sensor in that frame: m, and roll, pitch, yaw in rad.",
        Numbers("X,Y,Z,R,P,Y", 6),
        example=(0.0, 0.0, 0.05, 0.0, 0.0, 0.0),
    )
    imu_pose: tuple[float, ...] | None = sensor_option(
        None,
        "Pose in the sensor, or in the root link of a robot on a floating base, of the IMU that measured the motion; default: its own.",
        Numbers("X,Y,Z,R,P,Y", 6),
        example=(0.0, 0.0, 0.02, 0.0, 0.0, 0.0),
        only_for=(WRENCH, FLOATING),
    )
    drift: bool = sensor_option(False, "Estimate a linear drift of the six offsets of the sensor.", Switch())
    flip: bool = sensor_option(False, "Turn the sign of the wrench: the sensor reports what the body does to it.", Switch())
    static: bool | None = sensor_option(
        None,
        "Use the weight on the sensor alone, or its whole motion; default: the weight alone where the sensor hardly turns.",
        Switch(off="--dynamic"),
        example=True,
    )
    mass: float | None = sensor_option(
        None,
        "Known mass of the body on the sensor, or of a whole robot on a floating base, kg.",
        Number("KG", 0.0, open_low=True, unit="kg"),
        example=2.8,
        only_for=(WRENCH, FLOATING),
    )
    shape: str | None = sensor_option(
        None,
        "Shape that the body on the sensor fills, in its frame: box:X0,Y0,Z0,X1,Y1,Z1, cylinder:X0,Y0,Z0,X1,Y1,Z1,RADIUS or "
        "mesh:FILE.",
        Text("SHAPE"),
        example="box:-0.1,-0.1,0,0.1,0.1,0.2",
    )

    engine: str = work_option(
        "serial",
        "Where the work runs: serial, threads:N, processes:N, or dask[:ADDRESS] for the workers of a Dask cluster, without an "
        "address one on this machine. Results differ by round-off alone, by less than 1e-9.",
        Text("ENGINE", valid=engine_from),
        example="processes:4",
    )

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
        if self.friction is not None or self.filter_on == "signals":
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
        return changed_options(self)

    def for_other_logs(self, changes: Mapping[str, Any], logs: str) -> Settings:
        """The settings by which a run reads other logs, whole unless ``changes`` cut them; filtered they are as its own were."""
        other = [name for name in changes if name not in Reading.__dataclass_fields__]
        if other:
            raise InputError(
                f"setting '{other[0]}' was given, but {logs} are filtered as their run was: leave it out, or identify again"
            )
        return replace(self, **({"from_s": None, "to_s": None} | dict(changes)))


def all_options() -> list[Field[Any]]:
    """Every option of a run, in order."""
    return options_of(Settings, *SECTIONS.values())


OF_ONE_LOG = (*(one.name for one in options_of(Settings, READING, ROWS) if one.name != "rows"), "split")
"""Options that another log may have of its own, beside a model that stays."""


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
