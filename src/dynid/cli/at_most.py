"""``--at-most``: the error up to which a verb ends well."""

from __future__ import annotations

import math

import typer

from dynid.cli.console import percent, show_failure
from dynid.errors import InputError


def check_at_most(at_most: float | None, expected: str = "a fraction such as 0.05") -> None:
    """Refuse a limit that no error can be held against."""
    if at_most is not None and not 0.0 <= at_most < math.inf:
        raise InputError(f"--at-most is {at_most:g}, expected {expected}")


def end_above(error: float, at_most: float | None) -> None:
    """Exit code 1 where the error is larger than allowed, or is no number."""
    if at_most is not None and not error <= at_most:
        show_failure(f"the error is {percent(error)}, more than the {percent(at_most)} allowed")
        raise typer.Exit(1)
