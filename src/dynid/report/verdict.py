"""The verdict of a run as the head of its report."""

from __future__ import annotations

import numpy as np

from dynid.report.page import Item, Level, Tile, Verdict
from dynid.run.reason import Grade
from dynid.run.record import Run
from dynid.run.verdict import percent, with_verdict

__all__ = ["percent", "verdict_of"]

_LEVELS: dict[Grade, Level] = {"good": "good", "usable with reservations": "warning", "do not use": "error"}
_ENDINGS: dict[Grade, str] = {
    "good": "good, ready to use",
    "usable with reservations": "usable, with reservations",
    "do not use": "do not use it yet",
}


def verdict_of(run: Run) -> Verdict:
    """The verdict that was decided with the run, and the numbers beside it."""
    found = run.verdict or with_verdict(run).verdict
    assert found is not None
    reasons = tuple(Item(reason.level, reason.text, reason.advice) for reason in found.reasons)
    headline = f"{found.opening[:1].upper()}{found.opening[1:]}: {_ENDINGS[found.grade]}"
    return Verdict(_LEVELS[found.grade], headline, reasons, _tiles(run, found.description_error))


def _tiles(run: Run, description: float | None) -> tuple[Tile, ...]:
    found, tiles = run.estimate, _error_tiles(run, description)
    known: Level = "good" if found.rank == found.base.n_base else "warning"
    tiles.append(
        Tile(
            f"{found.rank} / {found.base.n_base}",
            "base parameters",
            f"seen, of {found.base.n_parameters} parameters",
            known,
        )
    )
    verdict = run.consistency
    bodies = [link for link in verdict.links if not link.empty]
    consistent = sum(link.consistent for link in bodies)
    level: Level = "good" if verdict.feasible else "warning"
    tiles.append(Tile(f"{consistent} / {len(bodies)}", "links consistent", "physical bodies", level))
    if not np.isnan(found.condition_number):
        numbers = f"{found.condition_number:.3g}", f"scaled: {found.condition_number_scaled:.3g}"
        tiles.append(Tile(numbers[0], "condition number", numbers[1]))
    if run.filter is not None:
        source = "logged velocity" if run.filter.velocity == "logged" else "velocity from position"
        tiles.append(Tile(f"{run.filter.band_hz:g} Hz", "band of the rows" if run.judged_hz else "low-pass", source))
    return tuple(tiles)


def _error_tiles(run: Run, description: float | None) -> list[Tile]:
    """What the model leaves unexplained: of unseen data where there are any, else of what it was made from."""
    found, own, unseen = run.estimate, run.identification, run.validation
    if unseen is not None:
        remark = "" if description is None else f"description: {percent(description)}"
        better = description is None or unseen.relative_error < description
        return [
            Tile(percent(unseen.relative_error), "unseen torque error", remark, "good" if better else "error"),
            Tile(percent(unseen.relative_error_raw), "unseen, raw torque", "noise included"),
        ]
    if run.from_coefficients:
        return [Tile(f"{found.details['cost']:.3g}", "cost of the coefficients", "sum of squares")]
    if own is None or own.relative_error_raw is None:
        return [Tile(percent(found.relative_error), "error on own data", "not unseen data")]
    return [Tile(percent(own.relative_error), "error on own data", f"raw: {percent(own.relative_error_raw)}")]
