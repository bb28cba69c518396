"""What nothing in the model explains."""

from __future__ import annotations

from dynid.report.page import Folded, Section, Table, Tabs
from dynid.report.shown import Shown
from dynid.report.torque_plots import (
    autocorrelation_figure,
    independent_samples,
    residual_velocity_figure,
    spectrum_figure,
)


def residual_section(shown: Shown) -> Section | None:
    """What nothing in the model explains."""
    log, run = shown.judged, shown.run
    if log is None:
        return None
    cutoffs = [] if run.filter is None else [("band", run.filter.band_hz)]
    if run.filter is not None and run.filter.cutoff_hz != run.filter.band_hz:
        cutoffs.append(("signals", run.filter.cutoff_hz))
    longest_s = 1.0 if run.filter is None else max(0.5, 5.0 / run.filter.torque_cutoff_hz)
    figures = [("over velocity", residual_velocity_figure(run.robot, log))]
    spectrum = spectrum_figure(run.robot, log, cutoffs)
    correlation = autocorrelation_figure(run.robot, log, longest_s)
    figures += [(label, one) for label, one in (("spectrum", spectrum), ("whiteness", correlation)) if one is not None]
    rows = tuple(
        (
            joint,
            f"{log.residual[:, j].std():.3g}",
            f"{log.residual[:, j].mean():.2g}",
            f"{independent_samples(log.residual[:, j]):.0f}",
        )
        for j, joint in enumerate(run.robot.dof_names)
    )
    table = Table(("joint", "deviation", "mean", f"independent of {len(log.samples)} samples"), rows, numeric=(1, 2, 3))
    text = (
        f"Torque that the model does not explain, of {log.name}. Correlated residuals carry less information than "
        "independent ones: the last column is the number of independent samples."
    )
    return Section("Residual", text, (Tabs(tuple(figures)), Folded("Joint by joint", (table,))))
