"""Models drawn from the uncertainty: consistent, spread as the covariance says, and written as files."""

import numpy as np
import pytest

import dynid
from dynid.errors import InputError
from dynid.pipeline.export import export_models
from dynid.pipeline.sample_models import sample_models


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> dynid.IdentificationResult:
    folder = tmp_path_factory.mktemp("drawn")
    dynid.write_urdf(dynid.demo_robot(), folder / "arm.urdf")
    settings = dynid.Settings(method="sdp", cutoff_hz=20.0, friction="linear")
    return dynid.identify(folder / "arm.urdf", dynid.demo_recording(torque_noise=0.02), settings)


def test_draws_are_consistent_and_as_wide_as_the_covariance(run):
    models = sample_models(run, 60)
    assert all(dynid.check_model(model).feasible for model in models)
    base = run.estimate.base
    drawn = np.array([base.base_values(model.parameters) for model in models])
    names = list(base.names)
    for name in ("fv1", "fv3"):  # friction is no part of a body: nothing bends its spread
        k = names.index(name)
        assert drawn[:, k].std() == pytest.approx(run.estimate.sigma[k], rel=0.35)
        assert drawn[:, k].mean() == pytest.approx(run.estimate.base_values[k], abs=run.estimate.sigma[k])


def test_the_same_seed_draws_the_same(run):
    one, two = (sample_models(run, 2, seed=3)[1].parameters.values for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_samples_are_written_beside_the_model(run, tmp_path):
    written = export_models(run, tmp_path / "out", ["urdf", "latex"], samples=2)
    names = [item.path.name for item in written]
    assert names == [f"demo_arm_{end}" for end in ("identified.urdf", "identified.tex", "sample1.urdf", "sample2.urdf")]
    assert all(item.proven for item in written if item.format == "urdf")
    table = (tmp_path / "out" / names[1]).read_text()
    assert "kg m$^2$" in table
    assert table.count(r"\\") == run.estimate.base.n_base + 1


def test_too_many_are_refused(run):
    with pytest.raises(InputError, match=r"--samples is 1001, expected 1 to 1000"):
        sample_models(run, 1001)
