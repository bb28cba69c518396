"""Options of ``dynid payload`` and ``dynid gains``: written once, checked, and refused where they would have no effect."""

from __future__ import annotations

from dataclasses import fields

import pytest
from typer.main import get_command

from cli_program import app, dynid
from dynid.apps.gains.options import GainsSettings
from dynid.apps.online.options import OnlineSettings
from dynid.apps.payload.options import SENSOR, PayloadSettings
from dynid.errors import InputError
from dynid.excitation.options import ExciteSettings
from dynid.option_types import flag_of, kind_of, options_of, same_option
from dynid.pipeline.option_groups import SENSOR as OF_RUN_ON_SENSOR
from dynid.pipeline.options import Settings
from dynid.pipeline.simulate_options import SimulateSettings
from messages import facts

GIVEN = {
    "frame_pose": (0.0,) * 6, "imu_pose": (0.0,) * 6, "filter": "none", "drift": True, "static": False, "flip": True,
    "gravity": (0.0, 0.0, -9.8),
}  # fmt: skip
"""Every option of a sensor at a value that is not its default."""


@pytest.mark.parametrize(
    ("verb", "settings"),
    [
        ("payload", PayloadSettings),
        ("gains", GainsSettings),
        ("watch", OnlineSettings),
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
    own = next(one for one in fields(Settings) if one.name == "weighted")
    again = same_option(Settings, "weighted", "In other words.", group="Here")
    assert again.metadata == {**own.metadata, "help": "In other words.", "group": "Here", "only_for": ()}
    assert kind_of(again) is kind_of(own)
    assert again.default is own.default


def test_settings_of_a_sensor_become_those_of_a_run() -> None:
    asked = PayloadSettings(**GIVEN, mass=2.0, frame="tool0", rate_hz=100.0)
    chosen = asked.for_sensor()
    for one in options_of(Settings, OF_RUN_ON_SENSOR):
        assert getattr(chosen, one.name) == getattr(asked, one.name)
    assert (chosen.filter, chosen.gravity, chosen.rate_hz) == ("none", (0.0, 0.0, -9.8), 100.0)
    assert PayloadSettings().for_sensor().changed() == {}


@pytest.mark.parametrize("name", [one.name for one in options_of(PayloadSettings, SENSOR)])
def test_options_of_a_sensor_are_refused_beside_a_run(name: str) -> None:
    flag = "--" + name.replace("_", "-")
    with pytest.raises(InputError, match=facts(flag, "--sensor")):
        PayloadSettings(**{name: GIVEN[name]}).refuse_sensor()
    PayloadSettings(mass=1.0, each=True, from_s=2.0).refuse_sensor()


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
