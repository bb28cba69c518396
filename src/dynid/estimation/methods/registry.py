"""Methods by the names that users type; each is imported when it is asked for.

A method of your own is a class with ``name``, ``laws`` and ``estimate``, registered once:

    >>> from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
    >>> from dynid.estimation.methods.registry import method_named, method_names, register_method
    >>> class Classical(OrdinaryLeastSquares):
    ...     name = "classical"
    >>> forget = register_method(Classical)
    >>> "classical" in method_names(), method_named("classical").name
    (True, 'classical')
    >>> forget()  # for the example's sake

A class that needs options of a run has a class method ``from_options(options, robot, tell)``, which takes what it needs from
the settings by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dynid.engine import Tell, silent
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.bodies import with_symmetry

if TYPE_CHECKING:
    from dynid.estimation.constraints.base import Constraint
    from dynid.estimation.result import Method
    from dynid.model.robot import Robot


@dataclass(frozen=True)
class Entry:
    """Where a method's class is, and what it knows."""

    module: str
    kind: str
    own: type[Any] | None = None
    consistent: bool = False
    """Its links are always physically consistent."""
    takes: tuple[str, ...] = ()
    """What it knows beyond full consistency: constraints, bounds, conditions, condition (full or plain)."""

    @property
    def method(self) -> type[Any]:
        """The class itself."""
        if self.own is not None:
            return self.own
        found: type[Any] = getattr(import_module(f"dynid.estimation.{self.module}"), self.kind)
        return found


_METHODS = {
    "ols": Entry("methods.least_squares", "OrdinaryLeastSquares"),
    "wls": Entry("methods.least_squares", "WeightedLeastSquares"),
    "robust": Entry("methods.least_squares", "IteratedReweighted"),
    "tls": Entry("methods.total", "TotalLeastSquares"),
    "ridge": Entry("methods.least_squares", "Ridge"),
    "essential": Entry("methods.essential", "EssentialParameters"),
    "recursive": Entry("methods.recursive", "RecursiveLeastSquares", takes=("bounds",)),
    "iv": Entry("methods.instrumental", "InstrumentalVariables"),
    "output-error": Entry("methods.output_error", "OutputError", consistent=True),
    "sdp": Entry("methods.sdp", "FeasibleSDP", consistent=True, takes=("constraints", "condition")),
    "bpfc": Entry("methods.sdp", "CorrectedLeastSquares", consistent=True, takes=("constraints", "condition")),
    "fbpe-wls": Entry("methods.sdp", "WeightedFeasibleSDP", consistent=True, takes=("constraints", "condition")),
    "manifold": Entry("methods.manifold", "Manifold", consistent=True),
    "logcholesky": Entry("methods.manifold", "LogCholesky", consistent=True),
    "retrieve": Entry(
        "methods.retrieval",
        "PenaltyRetrieval",
        consistent=True,
        takes=("constraints", "bounds", "conditions", "condition"),
    ),
}
METHODS = tuple(_METHODS)
"""The methods that come with the package."""


def register_method(method: type[Any], *, consistent: bool = False, takes: Sequence[str] = ()) -> Callable[[], None]:
    """Register a method under its ``name``, for the command line too.

    Args:
        method: a class with ``name`` and ``estimate(regression, base, prior)``. Where it needs options of a run it has a class
            method ``from_options(options, robot, tell)``.
        consistent: whether its links are always physically consistent.
        takes: what it accepts beyond full consistency: ``constraints``, ``bounds``, ``conditions``, ``condition``.

    Returns:
        a function that takes the registration back.

    Examples:
        >>> import dynid
        >>> class Plain(dynid.OrdinaryLeastSquares):
        ...     name = "plain"
        >>> forget = dynid.register_method(Plain)
        >>> dynid.method_named("plain").name
        'plain'
        >>> forget()
    """
    name = getattr(method, "name", None)
    if not isinstance(name, str) or not callable(getattr(method, "estimate", None)):
        raise InputError(f"method {method!r} has no name or no estimate(regression, base, prior), expected both")
    if name in METHODS:
        raise InputError(f"method '{name}' comes with the package, choose another name")
    _METHODS[name] = Entry(method.__module__, method.__qualname__, method, consistent, tuple(takes))
    return partial(unregister_method, name)


def unregister_method(name: str) -> None:
    """Remove a method that :func:`register_method` added; those of the package stay.

    Args:
        name: of the method.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.methods.registry import unregister_method
        >>> unregister_method("ols")
        Traceback (most recent call last):
        ...
        dynid.errors.InputError: method 'ols' comes with the package and cannot be removed
    """
    if name in METHODS:
        raise InputError(f"method '{name}' comes with the package and cannot be removed")
    entry_named(name)
    del _METHODS[name]


def method_names() -> tuple[str, ...]:
    """Names of all registered methods.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.methods.registry import method_names
        >>> method_names()[:2]
        ('ols', 'wls')
    """
    return tuple(_METHODS)


def entry_named(name: str) -> Entry:
    """What is known of a method."""
    if name not in _METHODS:
        raise UnknownNameError("method", name, method_names())
    return _METHODS[name]


def methods_that_take(what: str) -> tuple[str, ...]:
    """Names of the methods that know constraints, bounds or conditions."""
    return tuple(name for name, entry in _METHODS.items() if what in entry.takes)


def method_named(name: str, constraints: Sequence[Constraint] = (), **options: Any) -> Method:
    """The method of a name.

    Args:
        name: as on the command line.
        constraints: constraints, such as ``dynid.TotalMass``, for methods that take them.
        options: further options of the method by name.

    Returns:
        the method, a value with options and no fitted state.

    Examples:
        >>> import dynid
        >>> dynid.method_named("sdp", [dynid.TotalMass(upper=30.0)], weighted=True).weighted
        True
    """
    entry = entry_named(name)
    for what, given in (("constraints", constraints), ("bounds", options.get("bounds"))):
        _refuse_untaken(name, entry, what, given)
    if constraints:
        options = {**options, "constraints": tuple(constraints)}
    method: Method = entry.method(**options)
    return method


def method_from_options(name: str, options: Mapping[str, Any], robot: Robot, tell: Tell = silent) -> Method:
    """The method of that name as the options of a run ask for it."""
    entry = entry_named(name)
    if options.get("symmetric"):
        options = {**options, "constraints": with_symmetry(options["constraints"], options["symmetric"], robot)}
    for what in ("constraints", "bounds", "conditions"):
        _refuse_untaken(name, entry, what, options.get(what))
    condition = options.get("condition") or "full"
    if entry.consistent and condition != "full" and "condition" not in entry.takes:
        others = " or ".join(methods_that_take("condition"))
        raise InputError(
            f"method '{name}' knows the full condition only, '{condition}' was given; --method {others} takes both"
        )
    build = getattr(entry.method, "from_options", None)
    method: Method = entry.method() if build is None else build(options, robot, tell)
    return method


def options_given(options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Those options of a run that say something, by name."""
    return {name: options[name] for name in names if options.get(name) is not None}


def _refuse_untaken(name: str, entry: Entry, what: str, given: Any) -> None:
    if given and what not in entry.takes:
        others = " or ".join(methods_that_take(what))
        raise InputError(f"method '{name}' takes no {what}, some were given; --method {others} does")
