"""The report of a run: what it found, how surely, how well it predicts, and everything needed to repeat it.

It reads a run and computes nothing again. A section of your own is a function from what is shown to a section (or None where
there is nothing to show), registered once:

    >>> from dynid.report.page import Section
    >>> from dynid.report.run_report import register_section, section_makers, unregister_section
    >>> def greeting(shown):
    ...     return Section("Greeting", f"Hello from {shown.run.robot.name}.")
    >>> register_section(greeting)
    >>> greeting in section_makers()
    True
    >>> unregister_section(greeting)  # for the example's sake
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dynid.errors import InputError
from dynid.files import write_bytes, write_text
from dynid.folders import changed_folder
from dynid.report.page import Section, figures_of, page
from dynid.report.png import can_draw_text, png_of
from dynid.report.sections.files import export_section
from dynid.report.sections.order import IN_ORDER, SectionMaker
from dynid.report.sections.repeat import repeat_section
from dynid.report.shown import Shown
from dynid.report.svg import figure_svg
from dynid.report.verdict import verdict_of
from dynid.run.export import Exported
from dynid.run.record import Run
from dynid.run.sealed import add_files

REPORT = "report.html"
FIGURES = "figures"

_MAKERS: list[SectionMaker] = list(IN_ORDER)
"""What the page shows below the verdict, with the sections that were registered."""


def register_section(make: SectionMaker) -> None:
    """Add a section to every report, before the last ones.

    Args:
        make: a function from :class:`~dynid.report.shown.Shown`, which holds the run, to a section, or None to show nothing.

    Examples:
        >>> import dynid
        >>> def duration(shown):
        ...     return dynid.Section("Duration", f"{shown.run.seconds:.1f} s")
        >>> dynid.register_section(duration)
        >>> dynid.unregister_section(duration)
    """
    if make not in _MAKERS:
        _MAKERS.append(make)


def unregister_section(make: SectionMaker) -> None:
    """Remove a section that :func:`register_section` added.

    Args:
        make: the function that was registered.

    Examples:
        >>> import dynid
        >>> def note(shown):
        ...     return dynid.Section("Note", "Tool B was mounted.")
        >>> dynid.register_section(note)
        >>> dynid.unregister_section(note)
    """
    if make not in _MAKERS:
        raise InputError(f"section {make!r} is not registered, expected a function given to register_section")
    _MAKERS.remove(make)


def section_makers() -> tuple[SectionMaker, ...]:
    """The sections that are known at this moment."""
    return tuple(_MAKERS)


def report_run(
    run: Run,
    path: str | Path,
    *,
    exported: Sequence[Exported] = (),
    refusals: Sequence[str] = (),
    sections: Sequence[Section] = (),
    png: bool = False,
) -> Path:
    """Write the report of a run as one HTML page, and its figures as SVG files into the folder ``figures`` beside it.

    Args:
        run: the run.
        path: HTML file to write.
        exported: exported files, which are linked with their proofs.
        refusals: why other files were not written.
        sections: sections put before the last one.
        png: write the figures as PNG files too, which takes some seconds; needs a font on this machine.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> dynid.report_run(run, "report.html").name
        'report.html'
    """
    if png and not can_draw_text():
        raise InputError(
            "no font was found on this machine, so PNG files would lack their words: install one, or take the SVG"
        )
    target = Path(path)
    if target.is_dir():
        raise InputError(f"cannot write '{target}': it is a folder")
    if not target.parent.is_dir():
        raise InputError(f"cannot write '{target}': there is no folder '{target.parent}'")
    with changed_folder(target.parent) as change:
        written = write_report(
            run,
            change.stage / target.name,
            exported=exported,
            refusals=refusals,
            sections=sections,
            png=png,
            place=target.parent,
        )
        add_files(change.stage, [str(file.relative_to(change.stage)) for file in written])
    return target


def write_report(
    run: Run,
    target: Path,
    *,
    exported: Sequence[Exported] = (),
    refusals: Sequence[str] = (),
    sections: Sequence[Section] = (),
    png: bool = False,
    place: Path,
) -> tuple[Path, ...]:
    """The page and its figures into the folder of ``target``, which will be named ``place``; the files written."""
    shown = Shown(run, place)
    parts = _sections(shown, (*sections, export_section(exported, place / target.name, refusals)))
    written = [write_text(target, _page(shown, parts))]
    folder = target.parent / FIGURES
    folder.mkdir(exist_ok=True)
    for figure in figures_of(parts):
        drawing = figure_svg(figure)
        written.append(write_text(folder / f"{figure.name}.svg", drawing))
        if png:
            written.append(write_bytes(folder / f"{figure.name}.png", png_of(drawing)))
    return tuple(written)


def report_page(run: Run) -> str:
    """The page of a run as HTML."""
    shown = Shown(run)
    return _page(shown, _sections(shown))


def report_sections(run: Run, *, sections: Sequence[Section] = ()) -> tuple[Section, ...]:
    """What the page shows below the verdict; what the run does not have is left out or said to be missing."""
    return _sections(Shown(run), sections)


def _sections(shown: Shown, sections: Sequence[Section | None] = ()) -> tuple[Section, ...]:
    made = (*(make(shown) for make in _MAKERS), *sections, repeat_section(shown))
    return tuple(section for section in made if section is not None)


def _page(shown: Shown, sections: Sequence[Section]) -> str:
    run = shown.run
    n, what = run.estimate.n_samples, "poses" if run.filter is None else "samples"
    if run.from_coefficients:
        n, what = run.estimate.n_rows, "coefficients"
    subtitle = f"{run.robot.n_joints} joints, {n} {what}, method {run.estimate.method}, identified in {run.seconds:.1f} s"
    return page(f"Dynamic identification of {run.robot.name}", subtitle, verdict_of(run), sections)
