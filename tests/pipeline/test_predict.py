"""Predicted torque and its parts, against Pinocchio and the formula of friction."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pinocchio
import pyarrow.parquet
import pytest

from bench import PLAIN, Bench
from cli_program import dynid
from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.io.demo import demo_robot, demo_samples
from dynid.model.friction import without_friction
from dynid.pipeline.predict import PARTS, predict_samples


@pytest.fixture(scope="module")
def run(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("predict") / "run"
    done = dynid("identify", bench.urdf, bench.log, *PLAIN, "-o", folder, "--export", "json", "--json")
    assert done.returncode == 0, done.stderr
    return folder


def test_parts_are_those_of_pinocchio_and_add_up() -> None:
    robot = demo_robot("viscous,coulomb,armature")
    samples = demo_samples(robot, seconds=1.0, seed=3)
    found = predict_samples(robot, samples)
    model = pinocchio_model(without_friction(robot.with_effects([])))
    data = model.createData()
    for k in (0, 17, 60):
        q, v, a = samples.position[k], samples.velocity[k], samples.acceleration[k]
        gravity = pinocchio.computeGeneralizedGravity(model, data, q)
        assert found.values["gravity"][k] == pytest.approx(gravity, abs=1e-9)
        assert found.values["inertia"][k] == pytest.approx(
            pinocchio.rnea(model, data, q, v, a) - pinocchio.rnea(model, data, q, v, 0 * a), abs=1e-9
        )
        rotor = [robot.parameters[f"Ia{j + 1}"] * a[j] for j in range(robot.n_dof)]
        assert found.values["rotor"][k] == pytest.approx(rotor, abs=1e-9)
    assert sum(found.values[name] for name in PARTS) == pytest.approx(found.values["predicted"], abs=1e-9)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npz", ".mcap"])
def test_a_log_becomes_a_file(bench: Bench, run: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"torque{suffix}"
    done = dynid("predict", run, bench.other_log, "-o", target, "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["files"] == [str(target)]
    assert record["relative_error_raw"][0] < 0.1
    if suffix == ".parquet":
        columns = pyarrow.parquet.read_table(target).to_pydict()
        joint = bench.truth.joint_names[0]
        measured, predicted, residual = (
            np.array(columns[f"{name}_{joint}"]) for name in ("measured", "predicted", "residual")
        )
        assert measured - predicted == pytest.approx(residual)
    if suffix == ".mcap":
        from mcap.reader import make_reader

        with target.open("rb") as file:
            found = list(make_reader(file).iter_messages())
        topics = {channel.topic for _, channel, _ in found}
        assert topics == {f"/dynid/torque/{name}" for name in bench.truth.joint_names}
        assert {"measured", "predicted", "residual", "friction"} <= set(json.loads(found[0][2].data))
        assert found[0][0].encoding == "jsonschema"


def test_a_run_is_recorded_while_it_is_identified(bench: Bench, tmp_path: Path) -> None:
    target = tmp_path / "run.mcap"
    words = ("identify", bench.urdf, bench.log, *PLAIN, "-o", tmp_path / "run", "--export", "json", "--record", target)
    done = dynid(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert str(target) in json.loads(done.stdout)["files"]
    assert target.stat().st_size > 1000
    wrong = dynid(*words[:-1], tmp_path / "run.txt")
    assert wrong.returncode == 2
    assert "expected the suffix .parquet, .csv, .npz, .mcap" in wrong.stderr
