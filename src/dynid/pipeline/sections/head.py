"""The head of the report of a run: its title, its verdict, and the numbers beside it."""

from __future__ import annotations

import numpy as np

from dynid.finding import Grade, Level
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.sections.body import SENSOR_TITLE, body_tiles, sensor_subtitle
from dynid.pipeline.verdict import percent, with_verdict
from dynid.report.page import Head, Tile

_LEVELS: dict[Grade, Level] = {"good": "good", "usable": "warning", "do not use": "error"}
_ENDINGS: dict[Grade, str] = {
    "good": "good, ready to use",
    "usable": "usable, with reservations",
    "do not use": "do not use it yet",
}


def verdict_of(run: IdentificationResult) -> Head:
    """The verdict that was decided with the run, and the numbers beside it."""
    found = run.verdict or with_verdict(run).verdict
    assert found is not None
    ending = _ENDINGS[found.grade]
    if found.grade == "good" and found.files and not any(one.ready for one in found.files):
        ending = "good, but no simulator file holds all of it"
    elif found.grade == "good" and not all(one.ready for one in found.files):
        ending = f"good, ready to use as {' and '.join(one.format.upper() for one in found.files if one.ready)}"
    headline = f"{found.opening[:1].upper()}{found.opening[1:]}: {ending}"
    if run.body is not None:
        unseen = None if run.validation is None else run.validation.relative_error
        return Head(_LEVELS[found.grade], headline, found.reasons, body_tiles(run.body, unseen))
    return Head(_LEVELS[found.grade], headline, found.reasons, _tiles(run, found.description_error))


def _tiles(run: IdentificationResult, description: float | None) -> tuple[Tile, ...]:
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


def _error_tiles(run: IdentificationResult, description: float | None) -> list[Tile]:
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


def title_of(run: IdentificationResult) -> tuple[str, str]:
    """Title and subtitle: what was identified, from how much, by which method."""
    if run.body is not None:
        return SENSOR_TITLE, sensor_subtitle(run.body)
    n, what = run.estimate.n_samples, "poses" if run.filter is None else "samples after filtering"
    if run.from_coefficients:
        n, what = run.estimate.n_rows, "coefficients"
    subtitle = f"{run.robot.n_joints} joints, {n} {what}, method {run.estimate.method}, identified in {run.seconds:.1f} s"
    return f"Dynamic identification of {run.robot.name}", subtitle
