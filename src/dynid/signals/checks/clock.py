"""Checks of rows and their clock: its unit, steps and gaps, the length of the log, repeated rows, what reading found, and values that
cannot be.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.finding import DataCheck, Finding, dropped_rows
from dynid.model.robot import Robot
from dynid.signals.measures import FEWEST_ROWS, NOTHING
from dynid.signals.recording import Recording, beyond
from dynid.signals.steps.cuts import repeated_rows
from dynid.signals.steps.filters import EDGE_S


def check_clock(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Steps of the clock against their median."""
    steps = np.diff(recording.time)
    median = float(np.median(steps))
    irregular = float(np.mean(np.abs(steps - median) > 0.02 * median))
    gaps = np.flatnonzero(steps > max(3.0 * median, 1e-6))
    facts = {
        "step_min_s": float(steps.min()),
        "step_median_s": median,
        "step_mean_s": float(steps.mean()),
        "step_max_s": float(steps.max()),
        "step_spread": float(steps.std() / steps.mean()),
        "irregular_share": irregular,
        "gaps": len(gaps),
    }
    findings = []
    if not 5.0 <= 1.0 / median <= 20_000.0:
        findings.append(
            Finding(
                "error" if median > 1.0 else "warning",
                f"the median step of the clock is {median:.4g} s, a rate of {1.0 / median:.4g} Hz",
                'check the unit of the time column, which a mapping file (--mapping FILE) states: units = {time = "ms"}',
                code="time_unit",
                values={"step_s": median},
            )
        )
    if irregular > 0.001:
        findings.append(
            Finding(
                "warning" if irregular > 0.01 else "note",
                f"sampling is irregular: steps from {1e3 * steps.min():.2g} to {1e3 * steps.max():.2g} ms, "
                f"median {1e3 * median:.4g} ms, {recording.rate_hz:.4g} Hz on average",
                f"identify resamples it on the logged clock; in Python: Resample(period_s={median:.2g})",
                code="jitter",
                values={"share": irregular, "step_min_s": float(steps.min()), "step_max_s": float(steps.max())},
            )
        )
    if gaps.size:
        longest = int(gaps[np.argmax(steps[gaps])])
        findings.append(_gap(recording, steps, median, gaps.size, longest))
    return DataCheck(tuple(findings), facts)


def _gap(recording: Recording, steps: Array, median: float, count: int, longest: int) -> Finding:
    bad = steps[longest] > max(0.1, 10.0 * median)
    return Finding(
        "warning" if bad else "note",
        f"rows are missing in {count} places: up to {1e3 * steps[longest]:.3g} ms, at {recording.time[longest]:.4g} s",
        f"identify takes the parts between as logs of their own; in Python: SplitAtGaps({0.5 * steps[longest]:.2g})"
        if bad
        else "resampling on the logged clock bridges gaps this short",
        code="gaps",
        values={"count": int(count), "longest_s": float(steps[longest])},
    )


HELD_OUT = 0.3
"""Share at the end of a log on which a filter is judged when it is chosen."""
SHORTEST_S = 2.0 * EDGE_S / HELD_OUT
"""Seconds of log of which something is left when both ends of the held-out share are dropped."""


def check_length(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Logs that nothing is left of once filters have taken their ends."""
    n, duration = recording.n_samples, recording.duration_s
    if duration < SHORTEST_S:
        why = (
            f"filters lose {EDGE_S:g} s at both ends of a log and of the {100.0 * HELD_OUT:.0f} % of it that is held out to "
            f"choose the filter, expected at least {SHORTEST_S:g} s"
        )
    elif n < FEWEST_ROWS:
        why = f"expected at least {FEWEST_ROWS} rows"
    else:
        return NOTHING
    sentence = f"log of {n} rows and {duration:.3g} s is too short to identify from: {why}"
    values = {"rows": n, "duration_s": duration}
    return DataCheck((Finding("error", sentence, "record a longer motion, 10 s and more", code="short", values=values),), {})


def check_repeated(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """A logger that samples faster than the robot sends writes rows twice."""
    arrays = [getattr(recording, name) for name in recording.quantities if not name.startswith("reference")]
    repeated = repeated_rows(arrays)
    share = float(np.mean(repeated[1:]))
    facts = {"repeated_share": share}
    if share < 0.001:
        return DataCheck((), facts)
    finding = Finding(
        "warning" if share > 0.01 else "note",
        f"{100.0 * share:.1f} % of the rows repeat the row before in every column",
        "the logger samples faster than the robot sends: log on the robot's clock; in Python: DropRepeated() before Resample()",
        code="repeated_rows",
        values={"share": share, "rows": int(np.count_nonzero(repeated))},
    )
    return DataCheck((finding,), facts)


def check_reading(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Findings of the reader, such as rows that were left out."""
    source = recording.source
    if source.n_dropped and not source.findings:
        reason = "rows that hold NaN or repeat a stamp were left out"
        return DataCheck((dropped_rows(reason, source.n_dropped, source.n_rows_in_file),), {})
    return DataCheck(source.findings, {})


def check_values(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Numbers that no machine can have: no other check makes sense for such a log, and their squares overflow."""
    for name in recording.quantities:
        values = getattr(recording, name)
        place = beyond(name, values)
        if place is not None:
            row, k = place
            joint = recording.joint_names[k]
            finding = Finding(
                "error",
                f"{name.replace('_', ' ')} of joint {joint} is {values[place]:.4g} in row {row + 1}, which no robot has",
                "check the column and its unit",
                where=(joint,),
                code="impossible_value",
                values={"row": row + 1, "value": float(values[place])},
            )
            return DataCheck((finding,), {})
    return DataCheck((), {})
