"""Following advice: options become settings, better runs are kept, worse ones are taken back, and both are said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.estimation.advice import Advice
from dynid.io.demo import demo_recording, demo_robot
from dynid.pipeline.follow_advice import follow_advice, with_option
from dynid.pipeline.options import Settings


@pytest.mark.parametrize(
    ("option", "name", "value"),
    [
        ("--torque-delay auto", "torque_delay", "auto"),
        ("--gravity auto", "gravity", "auto"),
        ("--spring elbow=cable", "spring", ({"joint": "elbow", "kind": "cable"},)),
        ('--coupling "wrist:elbow=-1"', "coupling", ("wrist:elbow=-1",)),
        ("--drive-gains 10,9.5", "drive_gains", (10.0, 9.5)),
    ],
)
def test_an_option_becomes_a_setting(option: str, name: str, value: Any) -> None:
    assert getattr(with_option(Settings(), option), name) == value


def test_springs_add_up() -> None:
    both = with_option(with_option(Settings(), "--spring a=cable"), "--spring b=torsion")
    assert [one["joint"] for one in both.spring] == ["a", "b"]


def made(error: float, option: str | None) -> Any:
    advice = () if option is None else (Advice("elbow", "a cause", 0.5, option),)
    run = SimpleNamespace(advice=advice, notes=(), validation=SimpleNamespace(relative_error=error))
    run.changed = lambda notes: SimpleNamespace(**{**vars(run), "notes": notes})
    return run


@pytest.mark.parametrize(
    ("errors", "kept", "words"),
    [
        ((0.02, 0.01), 0.01, ["was followed"]),
        ((0.02, 0.03), 0.02, ["was not followed"]),
        ((0.04, 0.03, 0.02, 0.01), 0.01, ["was followed"] * 3),
    ],
)
def test_worse_runs_are_taken_back(errors: tuple[float, ...], kept: float, words: list[str]) -> None:
    runs = iter([made(error, "--spring elbow=cable") for error in errors[:-1]] + [made(errors[-1], None)])
    run = follow_advice(Settings(), lambda _: next(runs))
    assert run.validation.relative_error == kept
    assert [word in note for word, note in zip(words, run.notes, strict=True)] == [True] * len(words)


def test_late_torque_is_mended() -> None:
    log = demo_recording(seconds=12.0)
    late = np.column_stack([np.interp(log.time - 0.03, log.time, own) for own in np.asarray(log.torque).T])
    wrong = dynid.Recording(time=log.time, position=log.position, torque=late, joint_names=log.joint_names)
    settings = Settings(friction="smooth", cutoff_hz=8.0, method="ols", split=0.65)
    run = follow_advice(settings, lambda own: dynid.identify(demo_robot(), wrong, own))
    assert run.settings.torque_delay == pytest.approx(0.03, abs=2e-3)
    assert run.notes[0].startswith("advice was followed: with --torque-delay auto")
