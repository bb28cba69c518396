"""Two runs side by side: what changed is found and named, what did not change is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench import Bench
from cli_program import app
from dynid.dynamics.simulate import simulate
from dynid.errors import InputError
from dynid.excitation.shapes import random_fourier
from dynid.io.logs.read import write_recording
from dynid.pipeline.compare import ValuePair, compare_results
from dynid.pipeline.folder import save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult

SETTINGS = Settings(method="wls", cutoff_hz=12.0, friction="linear", effects=("viscous", "coulomb", "offset"))


@pytest.fixture(scope="module")
def first(bench: Bench) -> IdentificationResult:
    return identify(bench.urdf, bench.log, SETTINGS)


@pytest.fixture(scope="module")
def second(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> IdentificationResult:
    """The same robot on another day, with twice the viscous friction in joint 2."""
    values = bench.truth.parameters.as_dict()
    changed = bench.truth.with_parameters({"fv2": 2.0 * values["fv2"]})
    motion = random_fourier(changed, 8.0, 4, seed=11).samples(250.0)
    log = write_recording(
        simulate(changed, motion, rate_hz=250.0, seed=11).recording, tmp_path_factory.mktemp("day") / "tuesday.parquet"
    )
    return identify(bench.urdf, log, SETTINGS)


def test_what_changed_is_the_farthest(first: IdentificationResult, second: IdentificationResult) -> None:
    found = compare_results(first, second)
    assert found.differing[0].name == "fv2"
    pair = found.differing[0]
    assert pair.second == pytest.approx(2.0 * pair.first, rel=0.1)
    assert [what for what, *_ in found.changes] == ["logs"]
    assert f"{len(found.differing)} of {found.n_compared} values differ" in found.sentence()


def test_a_run_and_itself(first: IdentificationResult) -> None:
    found = compare_results(first, first)
    assert found.changes == ()
    assert found.differing == ()
    assert found.n_compared == sum(origin != "prior" for origin in first.estimate.origin)


def test_other_effects_leave_values_that_one_run_lacks(bench: Bench, first: IdentificationResult) -> None:
    other = identify(bench.urdf, bench.log, replace(SETTINGS, effects=("viscous", "coulomb"), friction=None))
    found = compare_results(first, other)
    lacking = {pair.name for pair in found.values if pair.second is None}
    assert {"fo1", "fo2", "fo3"} <= lacking
    assert {"effects", "friction"} <= {what for what, *_ in found.changes}


def test_a_value_without_uncertainty_is_never_called_different() -> None:
    assert not ValuePair("m2", "m2", 1.0, 5.0, None, 0.1).differs
    assert not ValuePair("m2", "m2", 1.0, None, 0.1, None).differs
    assert ValuePair("m2", "m2", 1.0, 5.0, 0.1, 0.1).differs


def test_the_same_log_is_predicted_in_one_band(
    bench: Bench, first: IdentificationResult, second: IdentificationResult
) -> None:
    found = compare_results(first, second, [bench.other_log])
    ((log, one, other),) = found.errors
    assert (log, found.band_hz) == (str(bench.other_log), 12.0)
    assert one < other  # the log is of the robot before its friction changed
    with pytest.raises(InputError, match=bench.log.name):
        compare_results(first, second, [bench.log])


def test_command(bench: Bench, first: IdentificationResult, second: IdentificationResult, tmp_path: Path) -> None:
    a, b = save_result(first, tmp_path / "monday"), save_result(second, tmp_path / "tuesday")
    words = ["compare-runs", str(a), str(b), "--on", str(bench.other_log)]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert "fv2" in shown.output
    assert "in a band of 12 Hz" in shown.output
    found = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert found["n_differing"] == sum(one["differs"] for one in found["values"]) >= 1
    assert found["logs"][0]["first"] < found["logs"][0]["second"]


def test_a_run_in_ten_lines(first: IdentificationResult) -> None:
    lines = repr(first).splitlines()
    assert len(lines) <= 10
    assert first.robot.name in lines[0]
    assert any(f"{first.estimate.rank} of {first.estimate.base.n_base}" in line for line in lines)


def test_runs_of_robots_without_a_common_joint_are_refused(first: IdentificationResult) -> None:
    joints = [replace(joint, name=f"other_{joint.name}") for joint in first.robot.joints]
    stranger = replace(first, robot=replace(first.robot, joints=tuple(joints)))
    with pytest.raises(InputError, match="without a joint in common"):
        compare_results(first, stranger)
