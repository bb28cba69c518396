"""The clock: its unit, irregular steps, gaps."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.motion import Recording
from dynid.robot.model import Robot


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
                "time_unit",
                "error" if median > 1.0 else "warning",
                f"the median step of the clock is {median:.4g} s, a rate of {1.0 / median:.4g} Hz",
                'check the unit of the time column, which a mapping file (--mapping FILE) states: units = {time = "ms"}',
                values={"step_s": median},
            )
        )
    if irregular > 0.001:
        findings.append(
            Finding(
                "jitter",
                "warning" if irregular > 0.01 else "note",
                f"sampling is irregular: steps from {1e3 * steps.min():.2g} to {1e3 * steps.max():.2g} ms, "
                f"median {1e3 * median:.4g} ms, {recording.rate_hz:.4g} Hz on average",
                f"identify resamples it on the logged clock; in Python: Resample(period_s={median:.2g})",
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
        "gaps",
        "warning" if bad else "note",
        f"rows are missing in {count} places: up to {1e3 * steps[longest]:.3g} ms, at {recording.time[longest]:.4g} s",
        f"identify takes the parts between as logs of their own; in Python: SplitAtGaps({0.5 * steps[longest]:.2g})"
        if bad
        else "resampling on the logged clock bridges gaps this short",
        values={"count": int(count), "longest_s": float(steps[longest])},
    )
