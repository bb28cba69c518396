"""Options of ``dynid payload`` and ``dynid gains``: written once, checked, and refused where they would have no effect."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from typer.main import get_command

from cli_program import dynid
from dynid.cli.app import app
from dynid.errors import InputError, UnknownNameError
from dynid.run.excite_options import ExciteSettings
from dynid.run.gains_asked import gains_of
from dynid.run.gains_options import GainsSettings
from dynid.run.option import flag_of, kind_of, same_option
from dynid.run.options import Fit, Sensor
from dynid.run.payload_options import OnSensor, PayloadSettings
from dynid.run.simulate_options import SimulateSettings
from dynid.run.watch_options import WatchSettings
from messages import facts

GIVEN = {
    "frame_pose": (0.0,) * 6, "imu_pose": (0.0,) * 6, "filter": "none", "drift": True, "tilt": True, "static": False,
    "gravity": (0.0, 0.0, -9.8),
}  # fmt: skip
"""Every option of a sensor at a value that is not its default."""


@pytest.mark.parametrize(
    ("verb", "settings"),
    [
        ("payload", PayloadSettings),
        ("gains", GainsSettings),
        ("watch", WatchSettings),
        ("simulate", SimulateSettings),
        ("excite", ExciteSettings),
    ],
)
def test_every_option_is_a_flag_with_its_help(verb: str, settings: type) -> None:
    flags = {name: one for one in get_command(app).commands[verb].params for name in one.opts}  # type: ignore[attr-defined]
    for one in fields(settings):
        shown = flags[flag_of(one)].help.replace("\\[", "[")
        assert shown.startswith(one.metadata["help"]), one.name


def test_a_flag_keeps_its_other_names() -> None:
    flags = {name: one for one in get_command(app).commands["payload"].params for name in (*one.opts, *one.secondary_opts)}  # type: ignore[attr-defined]
    assert flags["--link"] is flags["--frame"]
    assert flags["--dynamic"] is flags["--static"]


def test_an_option_of_another_group_is_the_same_but_for_its_words() -> None:
    own = next(one for one in fields(Fit) if one.name == "weighted")
    again = same_option(Fit, "weighted", "In other words.")
    assert again.metadata == {**own.metadata, "help": "In other words."}
    assert kind_of(again) is kind_of(own)
    assert again.default is own.default


def test_settings_of_a_sensor_become_those_of_a_run() -> None:
    asked = PayloadSettings(**GIVEN, mass=2.0, frame="tool0", rate_hz=100.0)
    chosen = asked.for_sensor()
    for one in fields(Sensor):
        assert getattr(chosen, one.name) == getattr(asked, one.name)
    assert (chosen.filter, chosen.gravity, chosen.rate_hz) == ("none", (0.0, 0.0, -9.8), 100.0)
    assert PayloadSettings().for_sensor().changed() == {}


@pytest.mark.parametrize("name", [one.name for one in fields(OnSensor)])
def test_options_of_a_sensor_are_refused_beside_a_run(name: str) -> None:
    flag = "--" + name.replace("_", "-")
    with pytest.raises(InputError, match=facts(flag, "--sensor")):
        PayloadSettings(**{name: GIVEN[name]}).for_run()
    PayloadSettings(mass=1.0, each=True, from_s=2.0).for_run()


@pytest.mark.parametrize("given", [{"tool": "tool.json"}, {"each": True}, {"gain_percent": 0.0}])
def test_options_of_a_run_are_refused_beside_a_sensor(given: dict[str, object]) -> None:
    with pytest.raises(InputError, match=facts("--tool", "--each", "--gain-percent", "--sensor")):
        PayloadSettings(**given).for_sensor()


@pytest.mark.parametrize(
    ("settings", "given", "fact"),
    [
        (PayloadSettings, {"mass": -1.0}, facts("mass", "-1.0", "kg")),
        (PayloadSettings, {"gain_percent": -1.0}, facts("gain_percent", "-1.0")),
        (PayloadSettings, {"frame_pose": (1.0,)}, facts("frame_pose", "6 numbers")),
        (PayloadSettings, {"rate_hz": 0.0}, facts("rate_hz", "0.0", "Hz")),
        (GainsSettings, {"gains_prior_percent": 0.0}, facts("gains_prior_percent", "0.0")),
        (GainsSettings, {"gains_prior": "many"}, facts("gains_prior", "many")),
    ],
)
def test_values_that_an_option_cannot_have(settings: type, given: dict[str, object], fact: str) -> None:
    with pytest.raises(InputError, match=fact):
        settings(**given)


def test_an_unknown_method_of_gains_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"'luck'.*tls.*sdp.*ols"):
        GainsSettings(method="luck")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("robot", "asked", "reading", "flag"),
    [
        ("arm.urdf", {}, {}, "--robot"),
        (None, {"effects": ("viscous",)}, {}, "--effects"),
        (None, {}, {"cutoff_hz": 4.0}, "--cutoff-hz"),
        (None, {}, {"velocity": "logged"}, "--velocity"),
    ],
)
def test_what_a_run_says_already_is_refused_beside_it(tmp_path: Path, robot, asked, reading, flag: str) -> None:
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(InputError, match=facts(flag, "run")):
        gains_of(str(tmp_path), ["log.csv"], robot, GainsSettings(mass=1.0, **asked), reading)


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("run",), "expected RUN LOG"),
        (("run", "log.csv", "--sensor", "ft.csv"), "give one of the two"),
        (("run", "log.csv", "--robot", "arm.urdf"), "--robot belongs to --sensor"),
        (("run", "log.csv", "--format", "lego"), "'lego'"),
        (("run", "log.csv", "-o", "load.txt"), "--format"),
        (("--sensor", "ft.csv", "--frame-pose", "0,0,0,0,0,0"), "--robot ROBOT"),
        (("--sensor", "ft.csv", "--gear-ratios", "100"), "--gear-ratios"),
    ],
)
def test_the_command_refuses_before_it_reads(words: tuple[str, ...], fact: str) -> None:
    done = dynid("payload", *words)
    assert done.returncode == 2
    assert fact in done.stderr
