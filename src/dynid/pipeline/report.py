"""The report of a run: what it found, how surely, how well it predicts, and everything needed to repeat it.

It reads a run and computes nothing again. A section of your own is a function from what is shown to a section (or None where
there is nothing to show), registered once:

    >>> from dynid.report.page import Section
    >>> from dynid.pipeline.report import register_section, section_makers
    >>> def greeting(shown):
    ...     return Section("Greeting", f"Hello from {shown.run.robot.name}.")
    >>> forget = register_section(greeting)
    >>> greeting in section_makers()
    True
    >>> forget()  # for the example's sake
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from dynid.errors import InputError, reason_of
from dynid.files import refuse_target, write_bytes, write_text
from dynid.folders import changed_folder
from dynid.pipeline.manifest import add_files
from dynid.pipeline.model_files import Exported
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.sections.body import BODY_SECTIONS
from dynid.pipeline.sections.closing import advice_section, comparison_section, export_section, repeat_section
from dynid.pipeline.sections.context import Shown
from dynid.pipeline.sections.data import data_section, excitation_section, filtering_section
from dynid.pipeline.sections.head import title_of, verdict_of
from dynid.pipeline.sections.model import consistency_section, parameters_section, retrieval_section, robot_section
from dynid.pipeline.sections.torque import friction_section, replay_section, residual_section, torque_section
from dynid.report.figure import can_draw_text, figure_svg, png_of
from dynid.report.page import Section, figures_of, page

SectionMaker: TypeAlias = Callable[[Shown], Section | None]
"""What makes a section of what is shown; None where there is nothing to show."""
IN_ORDER: tuple[SectionMaker, ...] = (
    robot_section,
    torque_section,
    replay_section,
    parameters_section,
    consistency_section,
    retrieval_section,
    friction_section,
    residual_section,
    advice_section,
    excitation_section,
    filtering_section,
    comparison_section,
    data_section,
)
"""What the page shows below the verdict."""
REPORT = "report.html"
FIGURES = "figures"
_MAKERS: list[SectionMaker] = list(IN_ORDER)
"""What the page shows below the verdict, with the sections that were registered."""


def register_section(make: SectionMaker) -> Callable[[], None]:
    """Add a section to every report, before the last ones.

    Args:
        make: a function from :class:`~dynid.pipeline.sections.context.Shown`, which holds the run, to a section, or None to show nothing.

    Returns:
        a function that takes the registration back.

    Examples:
        >>> import dynid
        >>> def duration(shown):
        ...     return dynid.Section("Duration", f"{shown.run.seconds:.1f} s")
        >>> forget = dynid.register_section(duration)
        >>> forget()
    """
    if make not in _MAKERS:
        _MAKERS.append(make)
    return partial(unregister_section, make)


def unregister_section(make: SectionMaker) -> None:
    """Remove a section that :func:`register_section` added.

    Args:
        make: the function that was registered.

    Examples:
        >>> import dynid
        >>> from dynid.pipeline.report import unregister_section
        >>> def note(shown):
        ...     return dynid.Section("Note", "Tool B was mounted.")
        >>> _ = dynid.register_section(note)
        >>> unregister_section(note)
    """
    if make not in _MAKERS:
        raise InputError(f"section {make!r} is not registered, expected a function given to register_section")
    _MAKERS.remove(make)


def section_makers() -> tuple[SectionMaker, ...]:
    """The sections that are known at this moment."""
    return tuple(_MAKERS)


def report_result(
    run: IdentificationResult,
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
        >>> from dynid.pipeline.report import report_result
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> report_result(run, "report.html").name
        'report.html'
    """
    if png and not can_draw_text():
        raise InputError(
            "no font was found on this machine, so PNG files would lack their words: install one, or take the SVG"
        )
    target = Path(path)
    refuse_target(target)
    if not target.parent.is_dir():
        raise InputError(f"cannot write '{target}': there is no folder '{target.parent}'")
    with changed_folder(target.parent) as change:
        written, notes = write_report(
            run,
            change.stage / target.name,
            exported=exported,
            refusals=refusals,
            sections=sections,
            png=png,
            place=target.parent,
        )
        add_files(change.stage, [str(file.relative_to(change.stage)) for file in written])
    for note in notes:
        logging.getLogger("dynid").warning(note)
    return target


def write_report(
    run: IdentificationResult,
    target: Path,
    *,
    exported: Sequence[Exported] = (),
    refusals: Sequence[str] = (),
    sections: Sequence[Section] = (),
    png: bool = False,
    place: Path,
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The page and its figures into the folder of ``target``, which will be named ``place``: the files written, and notes on
    sections that could not be made."""
    shown = Shown(run, place)
    graded = () if run.verdict is None else run.verdict.files
    closing = export_section(exported, place / target.name, refusals, graded)
    parts, notes = _sections(shown, (*sections, closing))
    written = [write_text(target, _page(shown, parts))]
    folder = target.parent / FIGURES
    folder.mkdir(exist_ok=True)
    for figure in figures_of(parts):
        drawing = figure_svg(figure)
        written.append(write_text(folder / f"{figure.name}.svg", drawing))
        if png:
            written.append(write_bytes(folder / f"{figure.name}.png", png_of(drawing)))
    return tuple(written), notes


def report_page(run: IdentificationResult) -> str:
    """The page of a run as HTML."""
    shown = Shown(run)
    return _page(shown, _sections(shown)[0])


def report_sections(run: IdentificationResult, *, sections: Sequence[Section] = ()) -> tuple[Section, ...]:
    """What the page shows below the verdict; what the run does not have is left out or said to be missing."""
    return _sections(Shown(run), sections)[0]


def _sections(shown: Shown, sections: Sequence[Section | None] = ()) -> tuple[tuple[Section, ...], tuple[str, ...]]:
    """The sections, and notes on those that could not be made: one that fails takes no other with it."""
    notes: list[str] = []

    def made(make: SectionMaker) -> Section | None:
        try:
            return make(shown)
        except Exception as error:  # sections of other packages may raise anything
            title = getattr(make, "__name__", "section").removesuffix("_section").replace("_", " ").strip().capitalize()
            notes.append(f"section '{title}' of the report could not be made: {reason_of(error)}")
            return Section(title, f"This section could not be made: {reason_of(error)}.")

    makers = _MAKERS if shown.run.body is None else (*BODY_SECTIONS, *(make for make in _MAKERS if make not in IN_ORDER))
    each = (*(made(make) for make in makers), *sections, made(repeat_section))
    return tuple(section for section in each if section is not None), tuple(notes)


def _page(shown: Shown, sections: Sequence[Section]) -> str:
    return page(*title_of(shown.run), verdict_of(shown.run), sections)
