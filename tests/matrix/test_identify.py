"""``identify``: every kind of data by every method, every friction model and every engine."""

from __future__ import annotations

import json

import pytest

from dynid.model.effects.friction_models import friction_choices
from matrix_place import DATA, ENGINES_TO_TRY, LINEAR, METHODS, RUNS, Place, cell, every_other

QUICK_DATA = ("torque", "poses", "sensor", "coefficients")
ANSWERED = ("torque", "energy", "polynomial", "streamed", "signals", "split", "poses")
"""Data on which every method must find something."""
FRICTIONS = friction_choices()


def methods() -> list[object]:
    quick = every_other(METHODS, 1)
    return [
        cell(kind, method, slow=not (kind == "torque" or (kind in QUICK_DATA and quick(method))))
        for kind in DATA
        for method in METHODS
    ]


@pytest.mark.parametrize("given", methods())
def test_every_method_on_every_kind_of_data(place: Place, given: tuple[str, str]) -> None:
    kind, method = given
    done = place.ends("identify", *DATA[kind], "--method", method, "-o", f"{kind}_{method}".replace(" ", "_"), "--json")
    if kind in ANSWERED and (kind, method) not in {
        ("poses", "iv"),
        ("poses", "output-error"),
    }:  # instruments are made by simulating a motion
        assert done.returncode < 2, done.stderr
        assert json.loads(done.stdout)["method"] == method


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_the_text_of_every_method(place: Place, method: str) -> None:
    done = place.ends("identify", *DATA["torque"], "--method", method, "-o", f"text_{method}")
    assert done.returncode < 2, done.stderr
    assert "verdict: " in done.stdout


@pytest.mark.parametrize(
    "given",
    [cell(model, stream, slow=stream == "on" or model != "linear") for model in FRICTIONS for stream in ("off", "on")],
)
def test_every_friction_model(place: Place, given: tuple[str, str]) -> None:
    model, stream = given
    words = ("--friction", model, "--stream", stream, "--method", "wls", "--cutoff-hz", 8, "--export", "json,urdf,mjcf")
    done = place.ends("identify", "arm.urdf", "log1.csv", *words, "-o", f"{model}_{stream}", "--json")
    assert done.returncode < 2, done.stderr


@pytest.mark.parametrize(
    "given",
    [cell(engine, kind, slow=engine not in ("serial", "threads:2")) for engine in ENGINES_TO_TRY for kind in ("off", "on")],
)
def test_every_engine(place: Place, given: tuple[str, str]) -> None:
    engine, stream = given
    words = ("--engine", engine, "--stream", stream, "--method", "wls", *LINEAR)
    done = place.ends("identify", "arm.urdf", "log1.csv", *words, "-o", "engine", "--json")
    assert done.returncode < 2, done.stderr


def test_every_kind_of_run_is_made() -> None:
    assert set(RUNS) == {*DATA, "store"}
