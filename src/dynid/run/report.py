"""The report of a run: what it found, how surely, how well it predicts, and everything needed to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dynid.errors import InputError
from dynid.files import write_bytes, write_text
from dynid.inertia import mass_com_inertia
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.recording import Recording
from dynid.recording.samples import Samples
from dynid.regression.factor import build_regression
from dynid.report.data_plots import lag_figure, step_figure
from dynid.report.estimate_plots import consistency_figure, sigma_figure, singular_value_figure, trial_figure
from dynid.report.motion_plots import coverage_figure, motion_figure
from dynid.report.page import (
    Code,
    Folded,
    Item,
    Items,
    Level,
    Part,
    Section,
    Table,
    Tabs,
    figures_of,
    page,
)
from dynid.report.png import can_draw_text, png_of
from dynid.report.scene import make_scene
from dynid.report.svg import figure_svg
from dynid.report.torque_plots import (
    Predicted,
    autocorrelation_figure,
    friction_figure,
    independent_samples,
    predicted,
    residual_velocity_figure,
    spectrum_figure,
    torque_figure,
    torque_units,
)
from dynid.run.export import Exported
from dynid.run.identify import Run
from dynid.run.prepare import read_logs, refuse_repeats
from dynid.run.proof_sections import comparison_section, export_section, replay_section, retrieval_section
from dynid.run.settings import Settings
from dynid.run.store import versions
from dynid.run.verdict import percent, verdict_of
from dynid.validation.consistency import check_model
from dynid.validation.data_check import check_recording

_MOST_LOGS = 4
_TORQUE_POINTS, _MOTION_POINTS = 24_000, 14_000  # drawn in all panels together, so that the page stays small
_FLAGS = {"from_s": "--from", "to_s": "--to"}
_NOT_ON_THE_COMMAND_LINE = ("max_rows", "constraints")


def report_run(
    run: Run,
    path: str | Path,
    *,
    exported: Sequence[Exported] = (),
    refusals: Sequence[str] = (),
    sections: Sequence[Section] = (),
) -> Path:
    """Write the page of a run, and its figures as SVG and PNG files into the folder ``figures`` beside it.

    The files in ``exported`` are linked with their proofs, ``refusals`` say why others were not written; ``sections`` are put
    before the last one.
    """
    target = Path(path)
    shown = _Shown(run)
    parts = _sections(shown, (*sections, export_section(exported, target, refusals)))
    write_text(target, _page(shown, parts))
    folder = target.parent / "figures"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"folder '{folder}' for the figures cannot be made: {error.strerror or error}") from None
    for figure in figures_of(parts):
        drawing = figure_svg(figure)
        write_text(folder / f"{figure.name}.svg", drawing)
        if can_draw_text():
            write_bytes(folder / f"{figure.name}.png", png_of(drawing))
    return target


def report_page(run: Run) -> str:
    """The page of a run as HTML."""
    shown = _Shown(run)
    return _page(shown, _sections(shown))


def report_sections(run: Run, *, sections: Sequence[Section] = ()) -> tuple[Section, ...]:
    """What the page shows below the verdict; what the run does not have is left out or said to be missing."""
    return _sections(_Shown(run), sections)


def _sections(shown: _Shown, sections: Sequence[Section | None] = ()) -> tuple[Section, ...]:
    run = shown.run
    made = (
        _robot(shown),
        _torque(shown),
        replay_section(run, shown.judged),
        _parameters(run),
        _consistency(run),
        retrieval_section(run),
        _friction(shown),
        _residual(shown),
        _excitation(shown),
        _filter(run),
        comparison_section(run.comparisons),
        _data(shown),
        *sections,
        _reproduction(run),
    )
    return tuple(section for section in made if section is not None)


@dataclass(frozen=True, eq=False)
class _Shown:
    """What is made again for the page: predictions of the logs, the logs as recorded, and what is wrong with them."""

    run: Run

    @cached_property
    def logs(self) -> tuple[Predicted, ...]:
        """The logs that are drawn, unseen ones first."""
        run = self.run
        files = [Path(path).name for path, _ in run.logs]
        others = files if run.settings.split is not None else [Path(path).name for path, _ in run.validation_logs]
        named = [(f"unseen: {_at(others, i)}", one) for i, one in enumerate(run.unseen)]
        named += [(f"identified on: {_at(files, i)}", one) for i, one in enumerate(run.samples)]
        unseen, own = named[: len(run.unseen)], named[len(run.unseen) :]
        chosen = (unseen[: _MOST_LOGS - 1] + own)[:_MOST_LOGS]
        return tuple(predicted(name, run.identified, one) for name, one in chosen if one.torque is not None)

    @property
    def judged(self) -> Predicted | None:
        """The log on which residuals are looked at: an unseen one where there is one."""
        return self.logs[0] if self.logs else None

    @cached_property
    def recordings(self) -> tuple[Recording, ...]:
        return _recordings(self.run)

    @cached_property
    def checks(self) -> tuple[DataCheck, ...]:
        """Of every log; looked into again for a run that was loaded and whose logs are still there."""
        return self.run.checks or tuple(check_recording(recording, self.run.robot) for recording in self.recordings)

    @property
    def left_out(self) -> int:
        return len(self.run.unseen) + len(self.run.samples) - len(self.logs)


def _at(names: Sequence[str], index: int) -> str:
    return names[index] if index < len(names) else f"log {index + 1}"


def _page(shown: _Shown, sections: Sequence[Section]) -> str:
    run = shown.run
    n = run.estimate.n_samples
    what = "poses" if run.filter is None else "samples"
    subtitle = f"{run.robot.n_joints} joints, {n} {what}, method {run.estimate.method}, identified in {run.seconds:.1f} s"
    return page(f"Dynamic identification of {run.robot.name}", subtitle, verdict_of(run, shown.checks), sections)


def _robot(shown: _Shown) -> Section:
    run = shown.run
    motion: Samples | None = shown.judged.samples if shown.judged is not None else next(iter(run.samples), None)
    text = (
        "Each link as the uniform box that has its ten parameters, at its centre of mass and along its principal axes; "
        "dashed, the box of the description. Red boxes stand for parameters that no physical body has."
    )
    heavy = run.identified.parameters.inertials[:, 0] > 0.0
    if not heavy.all():
        without = [name for name, has in zip(run.robot.links, heavy, strict=True) if not has]
        text += f" No box: {', '.join(without)}, without a positive mass."
    return Section("The robot as identified", text, (make_scene(run.robot, run.identified, motion),), "Robot")


def _torque(shown: _Shown) -> Section | None:
    run = shown.run
    if not shown.logs:
        missing = (
            "A table of poses has no torque over time."
            if run.filter is None
            else "The logs are gone or have changed since, so that torque cannot be shown; the numbers above are as stored."
        )
        return Section("Measured and predicted torque", missing, short="Torque")
    most = max(200, _TORQUE_POINTS // (len(shown.logs) * run.robot.n_dof))
    figures = []
    for place, log in enumerate(shown.logs):
        name = "torque" if place == 0 else f"torque_{place + 1}"
        figures.append((log.name, torque_figure(run.robot, log, name, most)))
    text = "Drag over a strip to zoom, double-click to see all of it again; a click on the legend hides a curve."
    if shown.left_out:
        text += f" {shown.left_out} more logs are not shown."
    return Section("Measured and predicted torque", text, (_error_table(run), Tabs(tuple(figures))), "Torque")


def _error_table(run: Run) -> Table:
    own, unseen = run.identification, run.validation
    header = ["joint", "unit"]
    columns: list[list[str]] = [list(run.robot.dof_names), torque_units(run.robot)]
    for label, error in (("unseen", None if unseen is None else unseen.total), ("own data", own)):
        if error is not None:
            header += [f"RMS error, {label}", f"relative, {label}"]
            columns += [[f"{x:.3g}" for x in error.rmse], [percent(float(x)) for x in error.relative_error_per_joint]]
    return Table(tuple(header), tuple(zip(*columns, strict=True)), numeric=tuple(range(2, len(header))))


def _parameters(run: Run) -> Section:
    found = run.estimate
    units = dict(zip(found.standard.names, found.standard.units, strict=True))
    nominal = found.base.base_values(run.robot.parameters)
    words = {"data": "data", "mixed": "data and prior", "prior": "prior, not excited"}
    rows = tuple(
        (
            text,
            f"{value:.6g}",
            units.get(name, ""),
            "–" if origin == "prior" else f"{spread:.2g} %",
            f"{before:.4g}",
            words[origin],
        )
        for name, text, value, spread, before, origin in zip(
            found.base.names,
            found.base.expressions(digits=4),
            found.base_values,
            found.sigma_percent,
            nominal,
            found.origin,
            strict=True,
        )
    )
    table = Table(("base parameter", "value", "unit", "sigma", "description", "from"), rows, numeric=(1, 3, 4), code=(0,))
    effects = _effect_table(run)
    parts: list[Part] = [sigma_figure(found, units)]
    if effects is not None:
        parts.append(Folded("Friction and rotor inertia of every joint", (effects,)))
    parts.append(Folded(f"All {found.base.n_base} base parameters with their expressions", (table,)))
    parts.append(Folded("Inertial parameters of every link", (_link_table(run),)))
    text = (
        "Base parameters are the combinations that motion can show; sigma is one standard deviation of their value. "
        "What the motion did not excite keeps the value of the description and is marked."
    )
    return Section("What was identified, and how surely", text, tuple(parts), "Parameters")


def _effect_table(run: Run) -> Table | None:
    found = run.estimate.standard
    columns = found.columns[found.n_inertial :]
    if not columns:
        return None
    sigma = dict(zip(run.estimate.base.names, run.estimate.sigma, strict=True))
    rows = tuple(
        (
            column.name,
            column.joint,
            f"{found[column.name]:.5g}",
            f"{sigma[column.name]:.2g}" if column.name in sigma else "–",
            column.unit,
        )
        for column in columns
    )
    return Table(("parameter", "joint", "value", "sigma of its base parameter", "unit"), rows, numeric=(2, 3), code=(0,))


def _link_table(run: Run) -> Table:
    rows = []
    nominal = run.robot.parameters.inertials
    for name, before, after in zip(run.robot.links, nominal, run.estimate.standard.inertials, strict=True):
        mass, center, tensor = mass_com_inertia(after)
        # Products and moments about the centre of mass, in the body's axes.
        moments = ", ".join(f"{tensor[i, j]:.3g}" for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
        rows.append((name, f"{before[0]:.4g}", f"{float(mass):.4g}", ", ".join(f"{x:.3g}" for x in center), moments))
    header = ("link", "description, kg", "mass, kg", "centre of mass, m", "Ixx, Iyy, Izz, Ixy, Ixz, Iyz about it, kg m²")
    return Table(header, tuple(rows), numeric=(1, 2))


def _consistency(run: Run) -> Section:
    verdict = check_model(run.identified)
    rows = tuple(
        (
            link.name,
            f"{link.mass:.5g}",
            "empty" if link.empty else ("yes" if link.consistent else "no"),
            f"{link.triangle_slack:.3g}",
            f"{link.min_eigenvalue:.3g}",
            link.fault,
        )
        for link in verdict.links
    )
    header = ("link", "mass, kg", "consistent", "triangle slack, kg m²", "smallest eigenvalue", "fault")
    table = Table(header, rows, numeric=(1, 3, 4))
    text = (
        "A body exists if its mass is positive and its principal moments obey the triangle inequality. Motion does not show "
        "how a sum is shared among links, so a set that predicts well may still contain bodies that cannot exist."
    )
    return Section(
        "Physical consistency",
        text,
        (consistency_figure(run.robot, run.identified), Folded("Link by link", (table,))),
        "Consistency",
    )


def _friction(shown: _Shown) -> Section | None:
    if shown.judged is None:
        return None
    figure = friction_figure(shown.run.identified, shown.judged)
    if figure is None:
        return None
    names = ", ".join(effect.name for effect in shown.run.robot.effects)
    parts: list[Part] = [figure]
    choice = shown.run.friction
    if choice is not None and choice.trials:
        rows = tuple(
            (trial.model, percent(trial.error), str(trial.n_columns), "chosen" if trial.model == choice.model else "")
            for trial in choice.trials
        )
        table = Table(("model", "error on held-out blocks", "columns", ""), rows, numeric=(1, 2))
        parts.append(Folded("Friction models tried", (table,)))
    return Section("Friction", f"Effects in the model: {names}. Shown is {shown.judged.name}.", tuple(parts))


def _residual(shown: _Shown) -> Section | None:
    log, run = shown.judged, shown.run
    if log is None:
        return None
    cutoffs = [] if run.filter is None else [("cut-off", run.filter.cutoff_hz)]
    if run.filter is not None and run.filter.torque_cutoff_hz != run.filter.cutoff_hz:
        cutoffs.append(("cut-off of torque", run.filter.torque_cutoff_hz))
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
        f"What nothing in the model explains, of {log.name}. Correlated residuals are worth fewer samples than there are: "
        "the last column counts them."
    )
    return Section("Residual", text, (Tabs(tuple(figures)), Folded("Joint by joint", (table,))))


def _excitation(shown: _Shown) -> Section | None:
    run = shown.run
    if not run.samples:
        return None
    most = max(200, _MOTION_POINTS // (2 * run.robot.n_dof))
    first = run.samples[0]
    motion = (
        ("position", motion_figure(run.robot, first, "position", most)),
        ("velocity", motion_figure(run.robot, first, "velocity", most)),
        ("velocity over position", coverage_figure(run.robot, run.samples)),
    )
    name = Path(run.logs[0][0]).name if run.logs else "the first log"
    W = build_regression(run.robot, run.samples).triangle(run.estimate.base)[:, :-1]
    text = f"The motion of {name}, on which the model rests, and what its regressor can tell apart."
    return Section("Excitation", text, (Tabs(motion), singular_value_figure(run.estimate, W)))


def _filter(run: Run) -> Section | None:
    if run.filter is None:
        return None
    text = f"Used: {run.filter.describe()}."
    if not run.trials:
        given = run.settings.cutoff_hz != "auto"
        return Section(
            "Filter", f"{text} {'The settings say so.' if given else 'The filters it was chosen from are not at hand.'}"
        )
    trials = [
        (
            "logged velocity" if trial.filter.velocity == "logged" else "velocity from position",
            trial.filter.cutoff_hz,
            trial.error,
        )
        for trial in run.trials
    ]
    if len({cutoff for _, cutoff, _ in trials}) > 1:
        return Section("Filter", text, (trial_figure(trials, run.filter.cutoff_hz),))
    rows = tuple((source, f"{cutoff:g}", percent(error)) for source, cutoff, error in trials)
    table = Table(("velocity", "cut-off, Hz", "held-out error against raw torque"), rows, numeric=(1, 2))
    return Section("Filter", text, (table,))


def _data(shown: _Shown) -> Section | None:
    run, recordings, checks = shown.run, shown.recordings, shown.checks
    notes = tuple(Item("note", note) for note in run.notes)
    parts: list[Part] = []
    names = [Path(path).name for path, _ in run.logs]
    for place, check in enumerate(checks):
        items = tuple(_finding_item(finding) for finding in check.findings)
        if not items:
            items = (Item("good", f"Nothing is wrong with {_at(names, place)}."),)
        parts.append(Items(items))
        parts.append(Folded(f"Facts about {_at(names, place)}", (_fact_table(check),)))
    clocks = [(_at(names, i), recording.time) for i, recording in enumerate(recordings)][:_MOST_LOGS]
    steps = step_figure(clocks)
    lags = next((figure for figure in (lag_figure(check.facts) for check in checks) if figure is not None), None)
    parts += [figure for figure in (steps, lags) if figure is not None]
    if notes:
        parts.append(Folded("Notes of the run", (Items(notes),)))
    if not parts:
        return None
    text = "" if checks else "The logs are gone or have changed since, so that they could not be looked into again."
    if run.filter is None:
        text = "A table of poses has no clock and no signals to look into."
    return Section("Data check", text, tuple(parts), "Data")


def _finding_item(finding: Finding) -> Item:
    level: Level = finding.severity
    where = (
        f" ({', '.join(finding.joints)})"
        if finding.joints and not any(j in finding.sentence for j in finding.joints)
        else ""
    )
    sentence, fix = finding.sentence + where, finding.fix
    return Item(level, f"{sentence[:1].upper()}{sentence[1:]}.", f"{fix[:1].upper()}{fix[1:]}." if fix else "")


def _fact_table(check: DataCheck) -> Table:
    rows: list[tuple[str, str]] = []
    for name, value in check.as_dict()["facts"].items():
        entries = value.items() if isinstance(value, Mapping) else ((None, value),)
        rows.extend((name.replace("_", " ") + ("" if key is None else f", {key}"), _fact(entry)) for key, entry in entries)
    return Table(("fact", "value"), tuple(rows), code=(1,))


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_fact(entry) for entry in value)
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _recordings(run: Run) -> tuple[Recording, ...]:
    """The logs as they were recorded; none where one is gone or has changed."""
    if run.filter is None:
        return ()
    paths = [Path(path) for path, _ in run.logs]
    if not paths or not all(path.is_file() for path in paths) or refuse_repeats(paths) != [digest for _, digest in run.logs]:
        return ()
    found = read_logs(run.robot, paths, run.settings)
    return tuple(one for one in getattr(found, "recordings", ()))


def _reproduction(run: Run) -> Section:
    source = run.robot.source
    files = [("robot", source.path or "built in", source.sha256)]
    files += [("identified on", path, digest) for path, digest in run.logs]
    files += [("validated on", path, digest) for path, digest in run.validation_logs]
    default = Settings().as_dict()
    settings = tuple(
        (name, _setting(value), "" if value == default[name] else "changed")
        for name, value in run.settings.as_dict().items()
    )
    parts: list[Part] = [
        Code(command_line(run)),
        Table(("file", "path", "sha256"), tuple(files), code=(1, 2)),
        Folded("Settings", (Table(("setting", "value", ""), settings, code=(1,)),)),
        Folded("Versions", (Table(("package", "version"), tuple(versions().items()), code=(1,)),)),
    ]
    text = (
        "The same files with the same hashes and these settings give the same numbers. "
        "The figures of this page lie beside it, in the folder figures, as SVG and PNG files."
    )
    return Section("How to repeat this", text, tuple(parts), "Repeat")


def command_line(run: Run) -> str:
    """The command that repeats a run; settings that are not options of the command are left to its table."""
    words = ["dynid", "identify", run.robot.source.path or run.robot.name, *(path for path, _ in run.logs)]
    for path, _ in run.validation_logs:
        words += ["--validate", path]
    default = Settings().as_dict()
    for name, value in run.settings.as_dict().items():
        if value == default[name] or name in _NOT_ON_THE_COMMAND_LINE:
            continue
        flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
        if isinstance(value, Mapping):
            for joint, position in value.items():
                words += [flag, f"{joint}={position:g}"]
        else:
            text = _setting(value)
            words += [f"{flag}={text}"] if text.startswith("-") else [flag, text]
    return shlex.join(words)


def _setting(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {entry}" for name, entry in value.items()) or "none"
    if isinstance(value, (tuple, list)):
        return ",".join(str(entry) for entry in value) or "none"
    return str(value)
