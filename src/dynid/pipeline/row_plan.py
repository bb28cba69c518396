"""The row source of a run: which physical statement its samples make.

Kinds of rows are registered by name, those of other packages too:

    >>> from dynid.regression.torque_rows import TorqueRows
    >>> from dynid.pipeline.row_plan import RowKind, register_rows, row_kinds
    >>> forget = register_rows(RowKind("plain_torque", lambda plan, robot, samples: TorqueRows(robot, tuple(samples))))
    >>> "plain_torque" in row_kinds()
    True

``dynid identify --rows plain_torque`` then makes its rows that way, in a program that has registered it.

    >>> forget()
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dynid.errors import InputError, UnknownNameError
from dynid.files import read_json
from dynid.model.robot import Robot
from dynid.pipeline.options import Settings
from dynid.regression.row_filter import BandLimit, FilteredRows
from dynid.regression.row_source import RowSource
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import MappedSamples, Samples, SampleStream

if TYPE_CHECKING:
    from dynid.regression.floating_rows import Foot
    from dynid.regression.polynomial_rows import Composition
    from dynid.signals.polynomial_kernels import PolynomialApproximation

DEFAULT_WINDOW_S = 0.044
"""The paper's window, for where none was chosen."""


@dataclass(frozen=True)
class RowPlan:
    """How the rows of a run are made; stored with it."""

    kind: str = "torque"
    band_hz: float | None = None
    """Band of filtered torque rows; None where they are not filtered."""
    interval_s: float | None = None
    knots_s: tuple[float, ...] | None = None
    polynomial: PolynomialApproximation | None = None
    composition: Composition = "product"
    """How positions enter nonlinear expressions of the polynomial rows."""
    feet: tuple[str, ...] = ()
    """Frames at which a robot on a floating base has unknown forces; ``:flat`` behind those that take moments too."""
    foot_radius: float | None = None
    """Radius of the round ones among them, m."""
    acceleration: str | None = None
    """Whether accelerations of a robot on a floating base are ``logged`` or ``derived``."""
    imu: tuple[float, ...] = ()
    """Bias of the accelerometer, m/s^2, and of the gyroscope, rad/s, and the delay of both, s, which are undone."""

    def source(self, robot: Robot, samples: Sequence[Samples | SampleStream]) -> RowSource:
        """The rows of a robot over samples."""
        return kind_named(self.kind).make(self, robot, samples)

    @property
    def of_recorded(self) -> bool:
        """Whether the rows are made of signals as recorded, not of filtered ones."""
        return kind_named(self.kind).of_recorded

    def contact_frames(self, robot: Robot) -> tuple[Foot, ...]:
        """The feet of a robot that the plan names."""
        from dynid.model.frames import frame_named
        from dynid.regression.floating_rows import Foot

        named = [name.partition(":") for name in self.feet]
        return tuple(
            Foot(frame_named(robot, name), flat == "flat", 0.0 if flat else self.foot_radius or 0.0)
            for name, _, flat in named
        )

    def as_dict(self) -> dict[str, Any]:
        plain = asdict(self)
        return {name: value for name, value in plain.items() if value is not None and value != ()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> RowPlan:
        options = dict(record)
        if options.get("knots_s") is not None:
            options["knots_s"] = tuple(options["knots_s"])
        options |= {name: tuple(options.get(name, ())) for name in ("feet", "imu")}
        if options.get("polynomial") is not None:
            from dynid.signals.polynomial_kernels import PolynomialApproximation

            options["polynomial"] = PolynomialApproximation(**options["polynomial"])
        return cls(**options)


Make: TypeAlias = Callable[[RowPlan, Robot, Sequence[Any]], RowSource]


@dataclass(frozen=True)
class RowKind:
    """A kind of rows by its name, and how its source is made.

    Args:
        name: what ``--rows`` and ``Settings(rows=...)`` call it.
        make: a function from the plan, the robot and a sequence of samples to a row source.
        of_recorded: whether it takes signals as recorded instead of filtered ones.

    Examples:
        >>> import dynid
        >>> dynid.RowKind("plain", lambda plan, robot, samples: dynid.TorqueRows(robot, tuple(samples))).of_recorded
        False
    """

    name: str
    make: Make
    of_recorded: bool = False


def _torque(plan: RowPlan, robot: Robot, samples: Sequence[Samples | SampleStream]) -> RowSource:
    rows = TorqueRows(robot, tuple(samples))
    return rows if plan.band_hz is None else FilteredRows(rows, BandLimit(plan.band_hz))


def _energy(plan: RowPlan, robot: Robot, samples: Sequence[Any]) -> RowSource:
    """Energy rows; the length of their intervals follows from that of the logs where it is left open."""
    from dynid.regression.energy_rows import EnergyRows, chosen_interval_s

    length = plan.interval_s
    if length is None and plan.knots_s is None:
        durations, periods = zip(*map(_duration_and_period_s, samples), strict=True)
        length = chosen_interval_s(len(robot.parameters), durations, periods)
    return EnergyRows(robot, tuple(samples), length, plan.knots_s)


def _duration_and_period_s(samples: Any) -> tuple[float, float]:
    """Length and mean period of samples, or of the log that a stream of them is made of."""
    while isinstance(samples, MappedSamples):
        samples = samples.stream
    if isinstance(samples, Samples):
        return samples.duration_s, samples.duration_s / max(len(samples) - 1, 1)
    return samples.duration_s, samples.period_s


def _polynomial(plan: RowPlan, robot: Robot, samples: Sequence[Samples | SampleStream]) -> RowSource:
    from dynid.regression.polynomial_rows import PolynomialRows
    from dynid.signals.polynomial_kernels import PolynomialApproximation

    settings = plan.polynomial or PolynomialApproximation()
    return PolynomialRows(robot, tuple(samples), settings, plan.composition)


def _floating(plan: RowPlan, robot: Robot, samples: Sequence[Samples | SampleStream]) -> RowSource:
    """Rows of a robot on a floating base; a filter acts on what the null space of its contacts has left."""
    from dynid.regression.floating_rows import FloatingRows

    rows = FloatingRows(robot, tuple(samples), plan.contact_frames(robot))
    return rows if plan.band_hz is None else FilteredRows(rows, BandLimit(plan.band_hz))


_KINDS = {
    kind.name: kind
    for kind in (
        RowKind("torque", _torque),
        RowKind("energy", _energy),
        RowKind("polynomial", _polynomial, of_recorded=True),
        RowKind("floating", _floating),
    )
}
_BUILT_IN = tuple(_KINDS)


def register_rows(kind: RowKind) -> Callable[[], None]:
    """Make a kind of rows known under its name, on the command line too.

    Args:
        kind: the kind; its name is that of no kind of the package.

    Returns:
        a function that takes the registration back.

    Examples:
        >>> import dynid
        >>> kind = dynid.RowKind("plain", lambda plan, robot, samples: dynid.TorqueRows(robot, tuple(samples)))
        >>> forget = dynid.register_rows(kind)
        >>> dynid.Settings(rows="plain").rows
        'plain'
        >>> forget()
    """
    if kind.name in _BUILT_IN:
        raise InputError(f"rows '{kind.name}' come with the package, choose another name")
    _KINDS[kind.name] = kind
    return partial(unregister_rows, kind.name)


def unregister_rows(name: str) -> None:
    """Forget a kind of rows that :func:`register_rows` added."""
    added = [known for known in _KINDS if known not in _BUILT_IN]
    if name not in added:
        raise UnknownNameError("registered kind of rows", name, added)
    del _KINDS[name]


def row_kinds() -> tuple[str, ...]:
    """Names of all kinds of rows that are known at this moment.

    Examples:
        >>> row_kinds()[:3]
        ('torque', 'energy', 'polynomial')
    """
    return tuple(_KINDS)


def kind_named(name: str) -> RowKind:
    """The kind of rows of that name."""
    if name not in _KINDS:
        raise UnknownNameError("kind of rows", name, row_kinds())
    return _KINDS[name]


def plan_rows(settings: Settings, window_s: float | None = None, band_hz: float | None = None) -> RowPlan:
    """The plan that the settings ask for; ``window_s`` and ``band_hz`` where they were chosen by the data."""
    if settings.rows == "energy":
        interval_s, knots_s = _intervals(settings.intervals)
        return RowPlan("energy", interval_s=interval_s, knots_s=knots_s)
    if settings.rows == "polynomial":
        return RowPlan("polynomial", polynomial=approximation(settings, window_s), composition=settings.composition)
    return RowPlan(settings.rows, band_hz)


def approximation(settings: Settings, window_s: float | None = None) -> PolynomialApproximation:
    """The kernels that the settings ask for."""
    length = settings.window if settings.window != "auto" else (window_s or DEFAULT_WINDOW_S)
    from dynid.signals.polynomial_kernels import PolynomialApproximation, null_frequency

    kernels = PolynomialApproximation(
        order=settings.order,
        product_order=settings.product_order,
        window_s=float(length),
        alpha=settings.alpha,
        beta=settings.beta,
        requested_delay_s=settings.window_delay,
    )
    return kernels if settings.null_hz is None else null_frequency(kernels, settings.null_hz)[0]


def _intervals(text: str) -> tuple[float | None, tuple[float, ...] | None]:
    """Length of the intervals, or the knots of a designed motion; neither for ``auto``."""
    if text == "auto":
        return None, None
    try:
        length = float(text)
    except ValueError:
        return None, _knots(Path(text))
    if not (math.isfinite(length) and length > 0.0):
        raise InputError(
            f"--intervals is '{text}', expected a positive number of seconds, auto, or a file of 'dynid excite'"
        )
    return length, None


def _knots(path: Path) -> tuple[float, ...]:
    record = read_json(path, "file of --intervals")
    knots = record.get("knots")
    if not isinstance(knots, list) or len(knots) < 2 or not all(isinstance(time, int | float) for time in knots):
        raise InputError(
            f"'{path}' has no knots, expected a list of times under 'knots' as 'dynid excite --shape points --json' writes it"
        )
    return tuple(float(time) for time in knots)
