"""What can go wrong, named.

Every failure that dynid raises on purpose descends from :class:`DynidError`, so that a program can catch one class; the
command line turns any of them into one sentence and exit code 2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


def listed(names: Collection[str], most: int = 8, *, of: str = "") -> str:
    """Names for a sentence; of many the first ones and how many more there are, or how many ``of`` a kind there are in all.

    >>> listed(["a", "b", "c"], 2), listed(["a", "b", "c"], 2, of="columns")
    ('a, b and 1 more', 'a, b, .. (3 columns)')
    """
    shown = ", ".join(list(names)[:most])
    if len(names) <= most:
        return shown or ("none" if of else "")
    return f"{shown}, .. ({len(names)} {of})" if of else f"{shown} and {len(names) - most} more"


class DynidError(Exception):
    """Root of every error that dynid raises on purpose.

    Examples:
        >>> import dynid
        >>> issubclass(dynid.InputError, dynid.DynidError)
        True
    """


class InputError(DynidError):
    """A file, column, joint or option is not as expected; the text names it, what was expected and what was found.

    Examples:
        >>> import dynid
        >>> try:
        ...     dynid.read_robot("missing.urdf")
        ... except dynid.InputError as error:
        ...     print("missing.urdf" in str(error))
        True
    """


class TooShortError(InputError):
    """No log is long enough to identify from."""


class NoRowsError(InputError):
    """What was asked for holds no row to identify from, such as a part of a log in which none lies."""


class UnknownNameError(InputError):
    """A name that is not among those available; carries what was asked for and what there is."""

    def __init__(self, what: str, name: str, available: Iterable[str], where: str = "") -> None:
        self.name = name
        self.available = tuple(available)
        place = f" in {where}" if where else ""
        super().__init__(f"unknown {what} '{name}'{place}; available: {', '.join(self.available) or 'none'}")


class MissingPackageError(InputError):
    """An optional package is needed for what was asked; carries the line that installs it."""

    def __init__(self, package: str, purpose: str, extra: str | None = None) -> None:
        self.package = package
        self.extra = extra
        install = f"pip install 'dynid[{extra}]'" if extra else f"pip install {package}"
        super().__init__(f"{purpose} needs the package '{package}': {install}")


class InconsistentModelError(DynidError):
    """A parameter set that no physical body can have was about to be used where that is not allowed.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot().with_parameters({"m3": -1.0})
        >>> try:
        ...     dynid.write_urdf(robot, "arm.urdf")
        ... except dynid.InconsistentModelError as error:
        ...     print("1 of 7 links" in str(error))
        True
    """


def reason_of(error: Exception) -> str:
    """One line on what went wrong: our own sentences as they are, errors of others with their kind."""
    text = " ".join(str(error).split())
    if isinstance(error, DynidError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class DynidWarning(UserWarning):
    """Root of every warning that dynid issues.

    Examples:
        >>> import warnings
        >>> import dynid
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", dynid.DynidWarning)
        ...     robot = dynid.demo_robot()
    """
