"""The verdict of a report: how well the model predicts, what is known, whether its bodies could exist, what to check."""

from __future__ import annotations

import numpy as np

from dynid.estimation.outcome import Outcome
from dynid.report.page import Item, Level, Tile, Verdict
from dynid.run.record import Run
from dynid.validation.torque import validate

POOR, USELESS = 0.10, 0.30
"""Relative torque errors on unseen data from which a model is called poor, and not to be used."""
VAGUE_SHARE = 0.5
"""Share of base parameters that may be known no better than to their own size: small ones always are."""


def percent(fraction: float | None) -> str:
    """A share in percent, a dash where there is none."""
    if fraction is None or not np.isfinite(fraction):
        return "–"
    return f"{100.0 * fraction:.3g}\u00a0%"


def verdict_of(run: Run) -> Verdict:
    """What the reader of a report came for: how well the model predicts, and what to check."""
    found, unseen = run.estimate, run.validation
    description = _description_error(run)
    reasons = [_prediction_item(run, description), _seen_item(run), _consistency_item(run)]
    if found.outcome not in (Outcome.SOLVED, Outcome.RANK_DEFICIENT):
        level: Level = "warning" if found.outcome.usable else "error"
        reasons.append(Item(level, f"The method ended with: {found.outcome.value}."))
    faults = [finding for check in run.checks for finding in check.findings if finding.severity != "note"]
    if faults:
        grave = any(finding.severity == "error" for finding in faults)
        count = f"{len(faults)} finding{'s' if len(faults) > 1 else ''} in the logs"
        reasons.append(Item("error" if grave else "warning", f"{count}: {faults[0].sentence}.", "See the data check below."))
    levels = {item.level for item in reasons}
    worst: Level = "error" if "error" in levels else ("warning" if "warning" in levels else "good")
    if unseen is not None:
        opening = f"Predicts unseen torque to {percent(unseen.relative_error)}"
    elif run.from_coefficients:
        opening = f"Retrieved from {found.n_rows} coefficients, not validated on torque"
    else:
        own = found.relative_error if run.identification is None else run.identification.relative_error
        opening = f"Explains what it was identified on to {percent(own)}"
    ending = {"good": "ready to use", "warning": "usable, with reservations", "error": "do not use it yet", "note": ""}
    return Verdict(worst, f"{opening}: {ending[worst]}", tuple(reasons), _tiles(run, description))


def _description_error(run: Run) -> float | None:
    """Torque error of the description itself on the same samples; None where it has no inertials or there are no samples."""
    judged = run.unseen or run.samples
    if not judged or not np.any(run.robot.parameters.inertials):
        return None
    return validate(run.robot, run.robot.parameters, judged, run.judged_hz).relative_error


def _prediction_item(run: Run, description: float | None) -> Item:
    found, unseen = run.estimate, run.validation
    own = found.relative_error if run.identification is None else run.identification.relative_error
    before = "" if description is None else f" The description it started from is off by {percent(description)}."
    if unseen is None:
        if run.from_coefficients:
            return Item(
                "warning",
                f"Retrieved from {found.n_rows} given coefficients; no log shows how well it predicts torque.",
                "Give a log to know: dynid validate RUN LOG --cutoff-hz F.",
            )
        if run.filter is None:
            return Item("note", f"The inertia matrices and gravity of the table are explained to {percent(own)}.")
        return Item(
            "warning",
            f"Not validated on unseen data; identified on data it explains to {percent(own)}.{before}",
            "Give --validate LOG or --split 0.65 to know how well it predicts.",
        )
    error = unseen.relative_error
    if not np.isfinite(error) or (description is not None and error >= description):
        return Item("error", f"Unseen torque is predicted no better than by the description: {percent(error)}.{before}")
    if error > USELESS:
        return Item(
            "error",
            f"Unseen torque is predicted to {percent(error)}: the model explains little of the torque.{before}",
            "Look at the data check and at the residual: units, signs, clocks, a load or a contact.",
        )
    if error > POOR:
        return Item(
            "warning",
            f"Unseen torque is predicted to {percent(error)}, poor for a rigid robot.{before}",
            "Look at the residual over velocity for friction that the model lacks, and try --friction auto.",
        )
    if error > 2.5 * own + 0.01:
        return Item(
            "warning",
            f"Unseen torque is predicted to {percent(error)}, but what it was identified on to {percent(own)}.{before}",
            "A richer motion or a method with a prior would close the gap.",
        )
    raw = "" if unseen.relative_error_raw is None else f", {percent(unseen.relative_error_raw)} of the raw signal"
    return Item("good", f"Unseen torque is predicted to {percent(error)}{raw}.{before}")


def _seen_item(run: Run) -> Item:
    found = run.estimate
    vague = int(np.count_nonzero(found.seen & (found.sigma_percent > 100.0)))
    beyond = f"; {vague} of them no better than to 100 %" if vague else ""
    if run.from_coefficients:
        text = f"{found.rank} of {found.base.n_base} base parameters are fixed by the coefficients{beyond}."
        return Item("good" if found.rank == found.base.n_base else "note", text)
    text = f"{found.rank} of {found.base.n_base} base parameters are determined by the data{beyond}."
    if found.rank < found.base.n_base:
        return Item(
            "warning", text, "The others keep the description's values: a motion that excites them would determine them."
        )
    if vague > VAGUE_SHARE * found.base.n_base:
        return Item("warning", text, "A richer motion, see dynid excite, or a longer log would determine them.")
    return Item("good", text)


def _consistency_item(run: Run) -> Item:
    broken = run.consistency.inconsistent
    if not broken:
        return Item("good", "Every link is physically consistent: simulators will accept it.")
    shown = ", ".join(broken[:4]) + (" and others" if len(broken) > 4 else "")
    infeasible = run.feasibility is not None and run.feasibility.decision == "infeasible"
    proven = " It is proven that no consistent links have these base values." if infeasible else ""
    return Item(
        "warning",
        f"{len(broken)} link{'s have' if len(broken) > 1 else ' has'} parameters that no physical body could have: {shown}."
        + proven,
        "Torque is predicted all the same; a simulator needs a method that keeps bodies physical, or `dynid repair`.",
    )


def _tiles(run: Run, description: float | None) -> tuple[Tile, ...]:
    found, own, unseen = run.estimate, run.identification, run.validation
    tiles = []
    if unseen is not None:
        remark = "" if description is None else f"description: {percent(description)}"
        better = description is None or unseen.relative_error < description
        tiles.append(Tile(percent(unseen.relative_error), "unseen torque error", remark, "good" if better else "error"))
        tiles.append(Tile(percent(unseen.relative_error_raw), "unseen, raw torque", "noise included"))
    elif run.from_coefficients:
        tiles.append(Tile(f"{found.details['cost']:.3g}", "cost of the coefficients", "sum of squares"))
    elif own is None or own.relative_error_raw is None:
        tiles.append(Tile(percent(found.relative_error), "error on own data", "not unseen data"))
    else:
        tiles.append(Tile(percent(own.relative_error), "error on own data", f"raw: {percent(own.relative_error_raw)}"))
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
