"""Frequency response of the kernels of polynomial approximation.

``g^(k)`` should answer ``exp(i 2 pi f t)`` with ``(i 2 pi f)^k`` times the answer of ``g``. Drawn are the gains
``|G_k(f)| / (2 pi f)^k``, one curve for all derivatives as long as kernels are continuous, and for their taps how far
they part from one another, ``|H_k / ((i 2 pi f)^k H_0) - 1|``: the error that sampling brings into a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.kernel_filter import Rule, sample_kernel
from dynid.recording.polynomial import PolynomialApproximation

_COLOURS = ("#d9480f", "#1971c2", "#2f9e44", "#9c36b5", "#7a869a")
_DECADES = 2.5  # drawn below half the sampling rate
_POINTS = 400
_FLOOR = 1e-6


def kernel_figure(
    settings: PolynomialApproximation,
    sample_period_s: float,
    derivatives: Sequence[int] = (0, 1),
    rule: Rule = "trapezoidal",
    exact: bool = True,
) -> Any:
    """A plotly figure: gain of each derivative over frequency, below it the error of its taps; noise gains in the legend."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    if not derivatives:
        raise InputError("no derivative to draw, expected at least one")
    kernels = [settings.kernel(k) for k in derivatives]
    taps = [sample_kernel(kernel, sample_period_s, rule, exact) for kernel in kernels]
    smooth = sample_kernel(settings.kernel(), sample_period_s, rule, exact)
    highest = 0.5 / sample_period_s
    frequencies = np.geomspace(highest * 10.0**-_DECADES, highest, _POINTS)
    rate = 2j * np.pi * frequencies
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.65, 0.35])

    def draw(values: Array, label: str, row: int, colour: str, dash: str = "solid", shown: bool = True) -> None:
        figure.add_trace(
            go.Scatter(
                x=frequencies,
                y=np.maximum(values, _FLOOR),
                name=label,
                showlegend=shown,
                line={"color": colour, "width": 1.4, "dash": dash},
            ),
            row=row,
            col=1,
        )

    for k, kernel, sampled in zip(derivatives, kernels, taps, strict=True):
        colour = _COLOURS[k % len(_COLOURS)]
        draw(np.abs(kernel.frequency_response(frequencies) / rate**k), kernel.name, 1, colour)
        response = sampled.frequency_response(frequencies) / rate**k
        draw(np.abs(response), f"{kernel.name} sampled, noise gain {sampled.noise_gain:.3g}", 1, colour, "dot")
        if k > 0:
            parted = np.abs(response / smooth.frequency_response(frequencies) - 1.0)
            draw(parted, f"error of {kernel.name}", 2, colour, shown=False)
    figure.update_yaxes(title_text="gain", type="log", row=1, col=1)
    figure.update_yaxes(title_text="error of a row", type="log", row=2, col=1)
    figure.update_xaxes(type="log")
    figure.update_xaxes(title_text="frequency, Hz", row=2, col=1)
    figure.update_layout(
        title=(
            f"N = {settings.order}, T = {1e3 * settings.window_s:g} ms, alpha = {settings.alpha:g}, "
            f"beta = {settings.beta:g}, delay {1e3 * smooth.delay_s:.3g} ms, samples of {1e3 * sample_period_s:g} ms"
        ),
        height=560,
        margin={"l": 70, "r": 10, "t": 60, "b": 40},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": "#808a99"},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom"},
    )
    figure.update_xaxes(gridcolor="rgba(128,138,153,0.25)", zeroline=False)
    figure.update_yaxes(gridcolor="rgba(128,138,153,0.25)", zeroline=False)
    return figure
