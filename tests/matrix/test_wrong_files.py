"""Every file that a verb takes, in turn replaced by one that it cannot be: exit code 2 and a sentence that names it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from matrix_place import DATA, ON_RUNS, OTHERS, Place, cell

COMMANDS: dict[str, tuple[object, ...]] = {
    **OTHERS,
    **{
        f"identify {kind}": ("identify", *DATA[kind], "-o", "wrong")
        for kind in ("torque", "floating", "streamed", "poses", "sensor")
    },
    "identify coefficients": ("identify", *DATA["coefficients"], "--method", "retrieve", "-o", "wrong"),
    "identify mapped": ("identify", "arm.urdf", "log1.csv", "--mapping", "mapping.toml", "-o", "wrong"),
    "identify configured": ("identify", "--config", "dynid.toml", "-o", "wrong"),
    "identify bounded": ("identify", *DATA["torque"], "--method", "recursive", "--bounds", "bounds.csv", "-o", "wrong"),
    "store add": ("store", "add", "arm.urdf", "log1.csv", "--to", "new", "--robot-id", "A", "--day", "2026-03-05"),
    "compare": ("compare", *DATA["torque"][:2]),
    "excite evaluated": ("excite", "arm.urdf", "--evaluate", "motion.csv", "--acceleration", 5),
    "excite within limits": ("excite", "arm.urdf", "--evaluate", "motion.csv", "--robot-limits", "limits.toml"),
    "identify constrained": ("identify", "arm.urdf", "log1.csv", "--constraints", "constraints.toml", "-o", "wrong"),
    "watch a bag": ("watch", "arm.urdf", "--source", "mcap:log.mcap"),
    **{f"{name} of a run": words for name, words in ON_RUNS.items() if "export" not in name},
    "export of a run": ("export", "RUN", "--to", "urdf", "-o", "models"),
}
WRONG = ("empty", "text", "bytes", "folder", "missing", "a log", "a robot")


def places(words: tuple[object, ...]) -> Iterator[int]:
    """Positions of the words that name something to be read."""
    for at, word in enumerate(words):
        if at and str(words[at - 1]) in ("-o", "--to"):
            continue
        if (
            str(word) in ("RUN", "STORE")
            or str(word).startswith("run:")
            or str(word).endswith((".csv", ".urdf", ".toml", ".mcap"))
        ):
            yield at


def wrong_file(place: Place, word: str, kind: str) -> Path:
    """A file of this kind under a name like the word's."""
    folder = place.folder / "wrong" / kind.replace(" ", "_")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"given{Path(word).suffix}"
    content = {"empty": b"", "text": b"no such thing\nas a table\n", "bytes": bytes(range(256)) * 8}
    if kind in content:
        target.write_bytes(content[kind])
    elif kind == "folder":
        target.mkdir(exist_ok=True)
    elif kind != "missing":
        shutil.copy(place.folder / {"a log": "log1.csv", "a robot": "arm.urdf"}[kind], target)
    return target


def cells() -> list[object]:
    return [
        cell(name, str(at), kind)
        for name, words in COMMANDS.items()
        for at in places(words)
        for kind in WRONG
        if kind != {".csv": "a log", ".urdf": "a robot"}.get(Path(str(words[at])).suffix)
    ]


@pytest.mark.parametrize("kind", ["empty", "text", "bytes", "a robot"])
def test_a_stream_of_no_rows_is_refused(place: Place, kind: str) -> None:
    wrong = wrong_file(place, "log1.csv", kind)
    done = place.ends("watch", "arm.urdf", "--json", stdin=str(wrong))
    assert done.returncode == 2
    assert "standard input: no row was read" in done.stderr or "stdin: no time column" in done.stderr


@pytest.mark.parametrize("given", cells())
def test_every_wrong_file_is_named(place: Place, given: tuple[str, str, str]) -> None:
    name, at, kind = given
    words = list(COMMANDS[name])
    wrong = wrong_file(place, str(words[int(at)]), kind)
    prefix = "mcap:" if str(words[int(at)]).startswith("mcap:") else ""
    words[int(at)] = f"{prefix}{wrong}"
    words = ["run:torque" if word == "RUN" else word for word in words]
    done = place.ends(*words, "--json", stdin="log1.csv" if words[0] == "watch" else "")
    assert done.returncode == 2, done.stdout[-500:]
    assert wrong.name in done.stderr.splitlines()[-1]
