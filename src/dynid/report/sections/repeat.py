"""Everything needed to repeat a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field
from pathlib import Path
from typing import Any

from dynid.report.page import Code, Folded, Part, Section, Table
from dynid.report.shown import Shown
from dynid.run.option import kind_of, options_of
from dynid.run.options import GROUPS, Settings
from dynid.run.store import RUN_FILE, versions


def repeat_section(shown: Shown) -> Section:
    """Everything needed to repeat a run."""
    run = shown.run
    source = run.robot.source
    files = [("robot", source.path or "built in", source.sha256)]
    files += [("identified on", path, digest) for path, digest in run.logs]
    files += [("validated on", path, digest) for path, digest in run.validation_logs]
    figures = "The figures of this page lie beside it, in the folder figures, as SVG and PNG files."
    return how_to_repeat(run.command(str((shown.folder or Path()) / RUN_FILE)), files, run.settings, figures)


def how_to_repeat(command: str, files: Sequence[tuple[str, str, str]], settings: Settings, remark: str = "") -> Section:
    """The command, the files with their hashes and the settings of any run."""
    changed = settings.changed()
    rows = tuple(
        (one.name, _setting(one, getattr(settings, one.name)), "changed" if one.name in changed else "")
        for one in options_of(*GROUPS.values())
    )
    parts: list[Part] = [
        Code(command),
        Table(("file", "path", "sha256"), tuple(files), code=(1, 2)),
        Folded("Settings", (Table(("setting", "value", ""), rows, code=(1,)),)),
        Folded("Versions", (Table(("package", "version"), tuple(versions().items()), code=(1,)),)),
    ]
    text = "The same files with the same hashes and these settings give the same numbers. " + remark
    return Section("How to repeat this", text.rstrip(), tuple(parts), "Repeat")


def _setting(one: Field[Any], value: Any) -> str:
    return "–" if value is None else kind_of(one).text(value)
