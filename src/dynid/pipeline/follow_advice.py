"""Advice is followed: the best extension that an option adds is added, the robot is identified anew, and what it did is measured."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dynid.option_types import flag_of, kind_of
from dynid.pipeline.options import Settings, all_options
from dynid.pipeline.result import IdentificationResult

MOST = 3
"""Options that are added one after the other."""


def with_option(settings: Settings, option: str) -> Settings:
    """The settings with what an advice adds on the command line, such as ``--spring elbow=torsion``.

    Examples:
        >>> from dynid.pipeline.follow_advice import with_option
        >>> from dynid.pipeline.options import Settings
        >>> with_option(Settings(), "--spring elbow=torsion").spring
        ({'joint': 'elbow', 'kind': 'torsion'},)
        >>> with_option(Settings(), "--torque-delay auto").torque_delay
        'auto'
    """
    flag, text = shlex.split(option)
    one = next(one for one in all_options() if flag_of(one) == flag)
    kind = kind_of(one)
    value: Any = kind.parse([text], flag) if kind.repeated else kind.parse(text, flag)
    change: dict[str, Any] = {one.name: (*getattr(settings, one.name), *value) if kind.repeated else value}
    return replace(settings, **change)


def follow_advice(settings: Settings, run_with: Callable[[Settings], IdentificationResult]) -> IdentificationResult:
    """The run after its advice was followed, at most three times; advice that made the error worse is taken back, and said.

    Args:
        settings: of the first run.
        run_with: identifies with some settings.
    """
    run, said = run_with(settings), list[str]()
    for _ in range(MOST):
        option = next((one.option for one in run.advice if one.option is not None), None)
        if option is None:
            break
        tried = with_option(settings, option)
        then = run_with(tried)
        data = "unseen" if run.validation is not None else "identified"
        errors = f"the error of {data} torque went from {100.0 * _error(run):.3g} to {100.0 * _error(then):.3g} %"
        if _error(then) > _error(run):
            said.append(f"advice was not followed: with {option} {errors}")
            break
        said.append(f"advice was followed: with {option} {errors}")
        run, settings = then, tried
    if not said:
        said.append("there was no advice to follow that an option adds")
    return run.changed(notes=(*said, *run.notes))


def _error(run: IdentificationResult) -> float:
    """Of unseen torque, where there is any."""
    found = run.validation or run.identification
    return float("nan") if found is None else float(found.relative_error)
