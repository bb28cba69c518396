"""The plots of the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.recording.samples import Samples

_MOST_POINTS = 2000
_MEASURED, _PREDICTED = "#7a869a", "#d9480f"


def torque_figure(samples: Samples, prediction: Array, joints: tuple[str, ...], title: str) -> Any:
    """Measured against predicted torque, one strip per joint on one clock."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    assert samples.torque is not None
    rows = np.unique(np.linspace(0, len(samples) - 1, min(len(samples), _MOST_POINTS)).astype(int))
    figure = make_subplots(rows=len(joints), cols=1, shared_xaxes=True, vertical_spacing=0.012)
    time = samples.time[rows].round(4)
    for j, name in enumerate(joints):
        for values, label, colour in (
            (samples.torque[rows, j], "measured", _MEASURED),
            (prediction[rows, j], "predicted", _PREDICTED),
        ):
            figure.add_trace(
                go.Scatter(
                    x=time, y=values.round(5), name=label, legendgroup=label, showlegend=j == 0,
                    line={"color": colour, "width": 1.2},
                ),
                row=j + 1,
                col=1,
            )  # fmt: skip
        figure.update_yaxes(title_text=name, row=j + 1, col=1)
    figure.update_xaxes(title_text="time, s", row=len(joints), col=1)
    figure.update_layout(
        title=title,
        height=120 * len(joints) + 120,
        margin={"l": 70, "r": 10, "t": 60, "b": 40},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": "#808a99"},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom"},
    )
    figure.update_xaxes(gridcolor="rgba(128,138,153,0.25)", zeroline=False)
    figure.update_yaxes(gridcolor="rgba(128,138,153,0.25)", zeroline=False)
    return figure
