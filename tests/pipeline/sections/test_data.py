"""The plot of kernels shows what the kernels answer."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.pipeline.sections.data import kernel_figure
from dynid.signals.kernel_filter import RowKernel
from dynid.signals.polynomial_kernels import PolynomialApproximation
from messages import facts

PAPER = PolynomialApproximation()
DT = 0.004


def test_gains_and_row_errors_of_the_papers_settings() -> None:
    figure = kernel_figure(PAPER, DT)
    traces = {trace.name: trace for trace in figure.data}
    assert list(traces) == ["g", "g sampled, noise gain 0.237", "g'", "g' sampled, noise gain 3.72e+03", "error of g'"]
    f = np.asarray(traces["g"].x)
    assert f[-1] == pytest.approx(125.0)
    np.testing.assert_allclose(traces["g"].y, np.abs(PAPER.kernel().frequency_response(f)), atol=2e-6)
    # By parts: the kernels of a signal and of its derivative have one and the same gain.
    np.testing.assert_allclose(traces["g'"].y, traces["g"].y, rtol=1e-9, atol=1e-9)
    low = f < 20.0
    error = RowKernel.of(PAPER, DT).sampling_error(f[low])
    np.testing.assert_allclose(np.asarray(traces["error of g'"].y)[low], np.maximum(error, 1e-6), rtol=1e-9)
    assert "delay 14.7 ms" in figure.layout.title.text


def test_a_derivative_that_the_exponents_forbid_is_refused() -> None:
    with pytest.raises(InputError, match=facts("3", "derivative")):
        kernel_figure(PAPER, DT, derivatives=(0, 3))
    with pytest.raises(InputError, match="no derivative to draw"):
        kernel_figure(PAPER, DT, derivatives=())
