"""The result of an identification: the same torque by every way to ask for it, tables, and folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states
from dynid.pipeline.folder import load_result
from dynid.pipeline.result import IdentificationResult

SETTINGS = dynid.Settings(method="sdp", cutoff_hz=20.0, friction="linear")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> IdentificationResult:
    urdf = tmp_path_factory.mktemp("result") / "arm.urdf"
    dynid.write_urdf(dynid.demo_robot(), urdf)
    return dynid.identify(urdf, dynid.demo_recording(), SETTINGS)


@pytest.fixture(scope="module")
def states(result: IdentificationResult) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, v, a, *_ = random_states(result.model, 20, seed=3)
    return q, v, a


def test_the_torque_is_the_sum_of_its_parts(result: IdentificationResult, states: tuple[np.ndarray, ...]) -> None:
    q, v, a = states
    parts = (
        np.einsum("sij,sj->si", result.mass_matrix(q), a) + result.coriolis(q, v) + result.gravity(q) + result.friction(v)
    )
    assert np.allclose(result.predict(q, v, a), parts, rtol=1e-9, atol=1e-9)
    assert np.allclose(result.predict(q, v, a), inverse_dynamics(result.model, q, v, a))


def test_the_mass_matrix_is_symmetric_and_positive(result: IdentificationResult, states: tuple[np.ndarray, ...]) -> None:
    M = result.mass_matrix(states[0])
    assert np.allclose(M, np.swapaxes(M, 1, 2), atol=1e-9)
    assert np.linalg.eigvalsh(M).min() > 0.0


def test_forward_dynamics_is_the_inverse_of_prediction(result: IdentificationResult, states: tuple[np.ndarray, ...]) -> None:
    q, v, a = states
    assert np.allclose(result.forward_dynamics(q, v, result.predict(q, v, a)), a, rtol=1e-6, atol=1e-6)


def test_other_libraries_give_the_same_gravity(result: IdentificationResult, states: tuple[np.ndarray, ...]) -> None:
    pin = pytest.importorskip("pinocchio")
    model = result.to_pinocchio()
    expected = [pin.computeGeneralizedGravity(model, model.createData(), q) for q in states[0]]
    assert np.allclose(result.gravity(states[0]), expected, atol=1e-9)
    assert result.to_mujoco().nv == result.model.n_dof


def test_tables_hold_every_base_parameter(result: IdentificationResult) -> None:
    found = result.estimate
    assert [one["name"] for one in result.parameters] == list(found.base.names)
    assert all(one["lower"] <= one["value"] <= one["upper"] for one in result.parameters)
    assert result.covariance.shape == (found.base.n_base,) * 2
    text = result.to_latex()
    assert text.count(r"\\") == found.base.n_base + 1
    frame = pytest.importorskip("pandas") and result.to_pandas()
    assert frame.loc[found.base.names[0], "value"] == found.base_values[0]


def test_findings_name_their_file(result: IdentificationResult) -> None:
    named = [one for one in result.findings if one.code]
    assert all(one.where[0] == result.logs[0][0] for one in named)
    assert len(result.findings) == len(result.notes) + sum(len(check) for check in result.checks)


def test_a_saved_result_is_loaded_again(result: IdentificationResult, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "run", formats=["json"])
    again = load_result(folder)
    assert np.array_equal(again.estimate.base_values, result.estimate.base_values)
    assert np.allclose(again.covariance, result.covariance)
    assert again.verdict == result.verdict
    assert result.report(tmp_path / "page.html").read_text("utf-8").startswith("<!doctype html>")


def test_unseen_logs_are_predicted_in_memory_and_from_files(result: IdentificationResult, tmp_path: Path) -> None:
    unseen = dynid.demo_recording(seed=5)
    found = result.validate(unseen)
    dynid.write_recording(unseen, tmp_path / "unseen.csv")
    assert result.validate(tmp_path / "unseen.csv").relative_error == pytest.approx(found.relative_error, rel=1e-6)
    assert result.validate(tmp_path / "unseen.csv", from_s=1.0).relative_error != found.relative_error
    assert 0.0 < found.relative_error < 0.02
    with pytest.raises(dynid.InputError, match="cutoff_hz"):
        result.validate(unseen, cutoff_hz=3.0)
