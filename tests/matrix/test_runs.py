"""Every verb that takes a run, on every kind of run."""

from __future__ import annotations

import pytest

from dynid.pipeline.row_plan import row_kinds
from matrix_place import ON_RUNS, RUNS, Place, cell

QUICK = ("torque", "poses", "coefficients", "sensor")
IN_QUICK = (
    "validate",
    "validate with a filter",
    "validate torque",
    "export urdf",
    "export json",
    "report",
    "check",
    "payload",
)


def cells() -> list[object]:
    return [
        cell(kind, verb, slow=not (kind in QUICK and (verb in IN_QUICK or (kind == "torque" and "export" not in verb))))
        for kind in RUNS
        for verb in ON_RUNS
    ]


@pytest.mark.parametrize("given", cells())
def test_every_verb_on_every_kind_of_run(place: Place, given: tuple[str, str]) -> None:
    kind, verb = given
    words = [f"run:{kind}" if word == "RUN" else word for word in ON_RUNS[verb]]
    done = place.ends(*words, "--json", stdin="log3.csv" if words[0] == "watch" else "")
    if kind in ("torque", "streamed", "signals", "split", *set(row_kinds()) - {"floating"}) and verb in (
        "validate",
        "report",
        "check",
        "payload",
    ):
        assert done.returncode < 2, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("given", [cell(kind, verb) for kind in QUICK for verb in ON_RUNS if "export" not in verb])
def test_the_text_of_every_verb(place: Place, given: tuple[str, str]) -> None:
    kind, verb = given
    words = [f"run:{kind}" if word == "RUN" else word for word in ON_RUNS[verb]]
    place.ends(*words, stdin="log3.csv" if words[0] == "watch" else "")
