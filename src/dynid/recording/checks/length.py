"""Whether the log is long enough."""

from __future__ import annotations

from dynid.recording.checks.shared import FEWEST_ROWS, NOTHING
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.motion import Recording
from dynid.recording.steps.lowpass import EDGE_S
from dynid.robot.model import Robot

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
    return DataCheck((Finding("short", "error", sentence, "record a longer motion, 10 s and more", values=values),), {})
