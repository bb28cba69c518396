"""The report of a run: what it found, how surely, and how well it predicts."""

from __future__ import annotations

from pathlib import Path

from dynid.files import write_text
from dynid.report.page import Section, Table, page
from dynid.report.plots import torque_figure
from dynid.run.identify import Run
from dynid.run.store import versions
from dynid.validation.consistency import check_model
from dynid.validation.torque import predict


def report_run(run: Run, path: str | Path) -> Path:
    """Write the page of a run."""
    target = Path(path)
    write_text(target, report_page(run))
    return target


def report_page(run: Run) -> str:
    """The page of a run as HTML."""
    sections = [_findings(run), _parameters(run), _torque(run), _consistency(run), _reproduction(run)]
    good = run.estimate.feasible and bool(run.estimate.seen.all())
    return page(f"Dynamic identification of {run.robot.name}", _verdict(run), good, [s for s in sections if s is not None])


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100.0 * fraction:.2f} %"


def _verdict(run: Run) -> list[str]:
    found = run.estimate
    lines = []
    if run.validation is not None:
        lines.append(
            f"Predicts unseen torque to {_percent(run.validation.relative_error)} "
            f"({_percent(run.validation.relative_error_raw)} of the raw signal)."
        )
    own = found.relative_error if run.identification is None else run.identification.relative_error
    lines.append(f"Explains the torque it was identified on to {_percent(own)}.")
    lines.append(f"{found.rank} of {found.base.n_base} base parameters are known from this motion.")
    lines.append(
        "Every link is physically consistent."
        if found.feasible
        else "Some links have parameters that no physical body could have."
    )
    if run.filter is not None:
        lines.append(f"Filter: {run.filter.describe()}.")
    return lines


def _findings(run: Run) -> Section | None:
    return Section("Findings", items=run.notes) if run.notes else None


def _parameters(run: Run) -> Section:
    found = run.estimate
    units = dict(zip(found.standard.names, found.standard.units, strict=True))
    rows = tuple(
        (text, f"{value:.6g}", units.get(name, ""), "-" if origin == "prior" else f"{spread:.2g} %", origin)
        for name, text, value, spread, origin in zip(
            found.base.names,
            found.base.expressions(digits=4),
            found.base_values,
            found.sigma_percent,
            found.origin,
            strict=True,
        )
    )
    table = Table(("base parameter", "value", "unit", "sigma", "from"), rows, numeric=(1, 3))
    return Section(
        "Base parameters",
        "The combinations of parameters that motion can show, with one standard deviation in percent of the value.",
        (table,),
    )


def _torque(run: Run) -> Section | None:
    shown, title = (run.unseen, "Unseen data") if run.unseen else (run.samples, "Identification data")
    if not shown:
        return None
    samples = shown[0]
    prediction = predict(run.robot, run.estimate.standard, samples)
    figure = torque_figure(samples, prediction, run.robot.dof_names, f"{title}: torque, N m or N")
    return Section("Measured and predicted torque", figures=(figure,))


def _consistency(run: Run) -> Section:
    verdict = check_model(run.identified)
    rows = tuple(
        (
            link.name,
            f"{link.mass:.5g}",
            "empty" if link.empty else ("yes" if link.consistent else "no"),
            f"{link.triangle_slack:.3g}",
            link.fault,
        )
        for link in verdict.links
    )
    table = Table(("link", "mass, kg", "consistent", "triangle slack, kg m^2", "fault"), rows, numeric=(1, 3))
    return Section("Physical consistency", tables=(table,))


def _reproduction(run: Run) -> Section:
    logs = [f"identified on {path} (sha256 {digest[:16]})" for path, digest in run.logs]
    logs += [f"validated on {path} (sha256 {digest[:16]})" for path, digest in run.validation_logs]
    settings = ", ".join(f"{name} = {value}" for name, value in run.settings.as_dict().items() if value not in (None, {}))
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    return Section("How to repeat this", items=(*logs, f"settings: {settings}", f"versions: {used}"))
