"""Command line and Python have one set of defaults, option by option."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import pytest
from typer.main import get_command

import dynid
from bench import Bench
from cli_program import app
from dynid.apps.actuators import verb as actuators
from dynid.apps.actuators.options import ActuatorSettings
from dynid.apps.fleet import verb as store
from dynid.apps.gains import verb as gains
from dynid.apps.gains.options import GainsSettings
from dynid.apps.online import verb as watch
from dynid.apps.online.options import OnlineSettings
from dynid.apps.online.rows import RowOptions
from dynid.apps.online.session import make_watcher
from dynid.apps.payload import verb as payload
from dynid.apps.payload.options import PayloadSettings
from dynid.cli.verbs import compare, identify, validate
from dynid.cli.verbs import motion as simulate
from dynid.estimation.estimate import default_method
from dynid.estimation.methods.registry import METHODS
from dynid.io.robots.read import read_robot
from dynid.option_types import default_of, options_of
from dynid.pipeline.export import write_result
from dynid.pipeline.options import Settings
from dynid.pipeline.robot_setup import method_of
from dynid.pipeline.row_plan import RowPlan, approximation
from dynid.pipeline.simulate import simulate_log
from dynid.pipeline.simulate_options import SimulateSettings
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.regression.polynomial_rows import OnlinePolynomialRows, PolynomialRows, polynomial_regression
from dynid.validation.replay import replay

SETTINGS: Mapping[str, tuple[Any, tuple[type, ...]]] = {
    "identify": (identify.identify, (Settings,)),
    "validate": (validate.validate, (Settings,)),
    "compare": (compare.compare, (Settings,)),
    "payload": (payload.payload, (PayloadSettings,)),
    "gains": (gains.gains, (GainsSettings, Settings)),
    "actuators": (actuators.actuators, (ActuatorSettings,)),
    "simulate": (simulate.simulate, (SimulateSettings,)),
    "watch": (watch.watch, (OnlineSettings, Settings)),
}
"""The settings that each verb makes of its flags, and that Python takes."""


def default(function: Callable[..., Any], name: str) -> Any:
    return inspect.signature(function).parameters[name].default


def options() -> list[tuple[str, str]]:
    """Every flag of every verb, by the name that Python has for it."""
    return [(verb, name) for verb in SETTINGS for name in flags_of(verb)]


@functools.cache
def flags_of(verb: str) -> dict[str, Any]:
    """Flags of a verb that are options of its settings."""
    command = get_command(app).commands[verb]  # type: ignore[attr-defined]
    known = {one.name for settings in SETTINGS[verb][1] for one in fields(settings)}
    return {one.name: one for one in command.params if one.name in known and one.param_type_name == "option"}


@pytest.mark.parametrize(("verb", "name"), options())
def test_a_flag_left_out_is_the_default_of_python(verb: str, name: str) -> None:
    """The flag itself has no default, so the settings decide; the one that its help states is theirs."""
    flag = flags_of(verb)[name]
    if verb == "validate" and name == "window":  # the one of --replay, not that of polynomial rows
        assert flag.default == default(replay, "window_s")
        return
    assert flag.default is None
    one = next(one for settings in SETTINGS[verb][1] for one in options_of(settings) if one.name == name)
    value = default_of(one)
    stated = f"[default: {one.metadata['kind'].text(value)}]" if value not in (None, {}, ()) else ""
    assert flag.help.replace("\\[", "[").endswith(stated)
    if not stated:
        assert "[default" not in flag.help


@pytest.mark.parametrize(
    ("function", "names", "settings"),
    [
        (dynid.identify_gains, {"method": "method", "frame": "frame", "mass": "mass", "total": "total"}, GainsSettings),
        (dynid.identify_gains, {"prior": "gains_prior"}, GainsSettings),
        (dynid.identify_payload, {"link": "frame", "tool": "tool", "gain_sigma": "gain_percent"}, PayloadSettings),
        (
            simulate_log,
            {name: name for name in ("rate_hz", "torque_noise", "encoder_bits", "seed", "joints")},
            SimulateSettings,
        ),
        (PolynomialRows, {"composition": "composition"}, Settings),
        (OnlinePolynomialRows, {"composition": "composition"}, Settings),
        (polynomial_regression, {"composition": "composition"}, Settings),
        (RowPlan, {"composition": "composition"}, Settings),
    ],
)
def test_functions_have_the_defaults_of_the_options(
    function: Callable[..., Any], names: Mapping[str, str], settings: type
) -> None:
    for argument, option in names.items():
        assert default(function, argument) == getattr(settings(), option), argument


def test_gains_of_a_data_sheet_are_as_uncertain() -> None:
    assert default(dynid.identify_gains, "prior_sigma") == GainsSettings().gains_prior_percent / 100.0


def test_other_arguments_of_the_verbs() -> None:
    assert (
        default(identify.identify, "export") is default(write_result, "formats") is None
    )  # DEFAULT_FORMATS of a robot that moved
    assert default(compare.compare, "methods") is None  # all of them
    assert default(dynid.compare, "methods") == METHODS
    for name in ("where", "from_day", "to_day"):
        assert default(store.identify, name) is default(dynid.identify_store, name) is None


def test_estimate_takes_the_method_of_identify(bench: Bench) -> None:
    robot = read_robot(bench.urdf, "viscous,coulomb,offset,armature")
    data = build_regression(robot, dynid.demo_samples(robot))
    assert default_method(data) == method_of(Settings(), robot)
    assert dynid.estimate(data, reduce_to_base(robot)).method == Settings().method


def test_a_watch_is_that_of_the_options(bench: Bench) -> None:
    made = make_watcher(bench.urdf, Settings(), OnlineSettings())
    assert made.settings == OnlineSettings()
    assert made.rows == RowOptions(polynomial=approximation(Settings()))
    plain = dynid.Watcher(made.robot)
    assert (plain.settings, plain.rows) == (made.settings, made.rows)
    assert [repr(effect) for effect in made.robot.effects] == [
        repr(effect) for effect in read_robot(bench.urdf, list(Settings().effects)).effects
    ]


def test_the_dead_zone_of_a_watch_is_what_its_help_says(bench: Bench) -> None:
    """None by default; one that is given is that of every joint."""
    text = flags_of("watch")["dead_zone"].help
    assert "none by default" in text
    assert "auto" not in text
    coulomb = {effect.name: effect for effect in make_watcher(bench.urdf, Settings(), OnlineSettings()).robot.effects}[
        "coulomb"
    ]
    assert coulomb.dead_zone == 0.0
    given = make_watcher(bench.urdf, Settings(), OnlineSettings(dead_zone=0.02)).robot
    assert {effect.name: effect for effect in given.effects}["coulomb"].dead_zone == (0.02,) * 4
