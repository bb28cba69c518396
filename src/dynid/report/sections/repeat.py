"""Everything needed to repeat a run."""

from __future__ import annotations

from dataclasses import Field
from pathlib import Path
from typing import Any

from dynid.report.page import Code, Folded, Part, Section, Table
from dynid.report.shown import Shown
from dynid.run.options import GROUPS, kind_of, options_of
from dynid.run.store import RUN_FILE, versions


def repeat_section(shown: Shown) -> Section:
    """Everything needed to repeat a run."""
    run = shown.run
    source = run.robot.source
    files = [("robot", source.path or "built in", source.sha256)]
    files += [("identified on", path, digest) for path, digest in run.logs]
    files += [("validated on", path, digest) for path, digest in run.validation_logs]
    changed = run.settings.changed()
    settings = tuple(
        (one.name, _setting(one, getattr(run.settings, one.name)), "changed" if one.name in changed else "")
        for one in options_of(*GROUPS.values())
    )
    parts: list[Part] = [
        Code(run.command(str((shown.folder or Path()) / RUN_FILE))),
        Table(("file", "path", "sha256"), tuple(files), code=(1, 2)),
        Folded("Settings", (Table(("setting", "value", ""), settings, code=(1,)),)),
        Folded("Versions", (Table(("package", "version"), tuple(versions().items()), code=(1,)),)),
    ]
    text = (
        "The same files with the same hashes and these settings give the same numbers. "
        "The figures of this page lie beside it, in the folder figures, as SVG and PNG files."
    )
    return Section("How to repeat this", text, tuple(parts), "Repeat")


def _setting(one: Field[Any], value: Any) -> str:
    return "–" if value is None else kind_of(one).text(value)
