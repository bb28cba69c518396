"""Options written once: flags, checks, run files and the command that repeats a run follow from one field."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cli_program import app
from dynid.cli.schema import takes_options
from dynid.errors import InputError, UnknownNameError
from dynid.option_types import flag_of, is_flag, kind_of, options_of
from dynid.pipeline.option_groups import ESTIMATION
from dynid.pipeline.options import Settings, all_options, command_line
from dynid.pipeline.run_file import read_run_file, write_run_file
from messages import facts

OPTIONS = all_options()
OTHER = Settings(
    effects=("viscous",), friction="linear", gravity=(0.0, 0.0, -9.0), lock={"elbow": 0.5}, fix_bodies="earlier",
    coupling=("6:5=1", "4:a=-0.5"), motor_effects=("viscous", "armature"), spring=({"joint": "2", "kind": "linear"},), side="motor",
    from_s=0.5, to_s=-2.0, drive_gains=(1.0, 2.5), preset="rtde", mapping="my columns.toml",
    joints=("a", "b"), gear_ratios=(3.0, -4.0), ignore_torque=("a", "b"), rate_hz=100.0, episode=2, topic="/js",
    stream="on", engine="threads:2", zero={"elbow": 1.5708}, symmetric=("FL_* FR_*", "HL_* HR_*"),
    rows="energy", velocity="position", filter="savgol:11,2", cutoff_hz=8.0, torque_cutoff_hz=9.0,
    filter_on="signals", trim=False, signal_band_hz=70.0, filter_order=3,
    dead_zone=0.1, intervals="0.2", window=0.05, window_delay=0.02, null_hz=50.0, order=2, product_order=3, composition="pointwise",
    alpha=4.0, beta=5.0, max_rows=1000, method="wls", split=0.5, weighted=False, boxes=False, condition="plain", margin=1e-4,
    regularization=0.0, prior="none", prior_strength=2.0, bounds="b.csv",
    coefficients="c.csv", drop_above=30.0, optimiser="annealing", starts=3, steps=5, growth=2.0, iterations=7, seed=4,
    frame="tool0", frame_pose=(0.0, 0.1, -0.2, 0.0, 0.0, 1.5), imu_pose=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0), drift=True, flip=True, static=False,
    mass=2.5, shape="box:0,0,0,1,1,1", torque_delay=0.004, calibrate=("zero", "gain:elbow"),
    floating=True, feet=("a", "b"), flat_feet=("c",), foot_radius=0.02, force_frames=("d", "e"),
    form="literal", threshold=0.02, constraints={"total_mass": {"upper": 27.0}}, conditions=({"expression": "m1 > m2"},),
)  # fmt: skip
"""Every option at a value that is not its default."""


def test_the_example_changes_every_option() -> None:
    assert sorted(OTHER.changed()) == sorted(one.name for one in fields(Settings))


@pytest.mark.parametrize("one", [one for one in OPTIONS if is_flag(one)], ids=lambda one: one.name)
def test_a_flag_gives_back_what_it_was_made_from(one) -> None:
    value = getattr(OTHER, one.name)
    seen: dict[str, object] = {}
    program = typer.Typer()

    @program.command()
    @takes_options(OPTIONS)
    def verb(given: dict[str, object] | None = None) -> None:
        seen.update(given or {})

    done = CliRunner().invoke(program, kind_of(one).words(flag_of(one), value))
    assert done.exit_code == 0, done.output
    assert seen == {one.name: value}


@pytest.mark.parametrize(("word", "value"), [("--weighted", True), ("--unweighted", False), ("--no-weighted", False)])
def test_a_switch_may_have_a_word_of_its_own_for_off(word: str, value: bool) -> None:
    seen: dict[str, object] = {}
    program = typer.Typer()

    @program.command()
    @takes_options(options_of(Settings, ESTIMATION))
    def verb(given: dict[str, object] | None = None) -> None:
        seen.update(given or {})

    assert CliRunner().invoke(program, [word]).exit_code == 0
    assert seen == {"weighted": value}


def test_every_option_has_its_meaning_in_the_help() -> None:
    text = CliRunner().invoke(app, ["identify", "--help-all"], terminal_width=500).output
    for one in OPTIONS:
        if is_flag(one):
            assert flag_of(one) in text, one.name
        assert len(one.metadata["help"]) > 15


def test_a_run_file_gives_back_every_setting(tmp_path: Path) -> None:
    path = write_run_file(tmp_path / "dynid.toml", "arm.urdf", ["log.csv"], OTHER)
    found = read_run_file(path).settings({})
    files = ("mapping", "bounds", "coefficients", "fix_bodies")
    assert [Path(getattr(found, name)).name for name in files] == [getattr(OTHER, name) for name in files]
    assert replace(found, **{name: getattr(OTHER, name) for name in files}) == OTHER


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    path = write_run_file(tmp_path / "dynid.toml", "arm.urdf", ["log.csv"], replace(OTHER, method="ols"))
    assert read_run_file(path).settings({"method": "sdp"}).method == "sdp"


def test_the_command_names_what_differs_and_only_that() -> None:
    assert command_line(Settings(), "arm.urdf", ["a log.csv"]) == "dynid identify arm.urdf 'a log.csv'"
    words = shlex.split(command_line(OTHER, "arm.urdf", ["log.csv"], ["unseen.csv"], "dynid.toml"))
    assert words[:4] == ["dynid", "identify", "arm.urdf", "log.csv"]
    assert words[words.index("--validate") + 1] == "unseen.csv"
    assert words[words.index("--config") + 1] == "dynid.toml"
    for one in OPTIONS:
        if is_flag(one):
            flags = (flag_of(one), f"--no-{flag_of(one)[2:]}")
            assert any(word.split("=")[0] in flags for word in words), one.name


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"split": 1.5}, facts("split", "1.5", "0", "1")),
        ({"starts": 0}, facts("starts", "0", "1")),
        ({"starts": 1.5}, "'starts' is 1.5"),
        ({"starts": True}, "'starts' is True"),
        ({"filter_order": 13}, "'filter_order' is 13"),
        ({"cutoff_hz": "fast"}, facts("cutoff_hz", "fast", "auto")),
        ({"cutoff_hz": float("nan")}, "'cutoff_hz' is nan"),
        ({"gravity": (1.0, 2.0)}, facts("gravity", "1.0", "2.0", "3")),
        ({"lock": {"a": "b"}}, "'lock' is {'a': 'b'}"),
        ({"lock": [1]}, "'lock' is \\[1\\]"),
        ({"effects": 3}, "'effects' is 3"),
        ({"preset": 3}, "'preset' is 3, expected text"),
        ({"constraints": 3}, "'constraints' is 3, expected a table"),
        ({"conditions": {"a": 1}}, "'conditions' is"),
        ({"max_rows": 5}, "'max_rows' is 5"),
        ({"effects": ("load_coulomb",)}, "load_coulomb"),
    ],
)
def test_values_that_an_option_cannot_have(changes: dict[str, object], facts: str) -> None:
    with pytest.raises(InputError, match=facts):
        Settings(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["method", "friction", "prior", "velocity", "rows", "optimiser", "form", "composition", "condition"]
)
def test_unknown_names_list_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"'luck'.*available"):
        Settings(**{name: "luck"})


@pytest.mark.parametrize(
    ("flag", "text", "facts"),
    [
        ("--cutoff-hz", "5,6", "--cutoff-hz is '5,6'"),
        ("--lock", "elbow", "--lock is ''"),
        ("--gravity", "1,2", "--gravity has 2 numbers"),
        ("--starts", "1.5", "--starts is '1.5'"),
        ("--split", "half", "--split is 'half'"),
    ],
)
def test_a_flag_that_cannot_be_read(flag: str, text: str, facts: str) -> None:
    done = CliRunner().invoke(app, ["identify", "arm.urdf", "log.csv", flag, text])
    assert isinstance(done.exception, InputError)
    assert facts in str(done.exception)


def test_options_load_nothing_heavy() -> None:
    program = (
        "import sys, dynid.pipeline.options, dynid.cli.schema\n"
        "sys.exit(', '.join(n for n in ('numpy', 'scipy', 'numba', 'pinocchio') if n in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_option_has_a_section() -> None:
    assert sorted(one.name for one in OPTIONS) == sorted(one.name for one in fields(Settings))


def test_other_logs_are_read_whole_and_filtered_as_the_run_was() -> None:
    own = Settings(from_s=2.0, to_s=9.0, cutoff_hz=8.0, preset="rtde")
    found = own.for_other_logs({"from_s": 1.0, "preset": None}, "sensor logs")
    assert found == Settings(from_s=1.0, cutoff_hz=8.0)
    with pytest.raises(InputError, match=facts("cutoff_hz", "sensor logs", "filtered as their run was")):
        own.for_other_logs({"cutoff_hz": 5.0}, "sensor logs")
