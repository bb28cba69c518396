"""How the robot moves in the log: rests, joints that do not move, jumps of whole turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.recording.checks.shared import FEWEST_ROWS, NOTHING, named, turning_joints
from dynid.recording.cutoff import motion_bandwidth_hz
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.lag import longest_part, noise_level, speed
from dynid.recording.motion import Recording
from dynid.robot.model import Robot


def check_motion(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Time without motion, and joints without motion."""
    if longest_part(recording).n_samples < FEWEST_ROWS:
        return NOTHING
    if recording.velocity is None:
        recording = longest_part(recording)
    v = np.abs(speed(recording))
    fastest = np.quantile(v, 0.98, axis=0)
    noise = np.zeros_like(fastest) if recording.velocity is None else noise_level(recording.velocity)
    spread = np.ptp(recording.position, axis=0)
    still = np.asarray(spread < 1e-3)
    standing = ((v <= np.maximum(0.01 * fastest, 3.0 * noise)) | still).all(axis=1)
    # Short rests are part of a motion; only those at the ends can be cut.
    moving = np.flatnonzero(~standing)
    head, tail = (int(moving[0]), len(v) - 1 - int(moving[-1])) if moving.size else (len(v), 0)
    t = recording.time
    facts: dict[str, Any] = {
        "standstill_share": float(standing.mean()),
        "standstill_head_s": float(t[min(head, len(t) - 1)] - t[0]),
        "standstill_tail_s": float(t[-1] - t[len(t) - 1 - tail]),
        "speed": fastest,
        "velocity_noise": noise,
        "torque_noise": None if recording.torque is None else noise_level(recording.torque),
        "range": spread,
        "bandwidth_hz": motion_bandwidth_hz(longest_part(recording)),
    }
    findings = _standstill(recording, facts)
    resting = named(recording, still)
    if resting:
        findings.append(
            Finding(
                "resting_joint",
                "warning",
                f"joint {', '.join(resting)} does not move: its range is below 0.001",
                "its friction and the inertia about it cannot be identified from this log; lock it or excite it",
                resting,
            )
        )
    return DataCheck(tuple(findings), facts)


def _standstill(recording: Recording, facts: dict[str, Any]) -> list[Finding]:
    share, head_s, tail_s = (facts[f"standstill_{name}"] for name in ("share", "head_s", "tail_s"))
    if share <= 0.02:
        return []
    t = recording.time
    return [
        Finding(
            "standstill",
            "warning" if share > 0.1 else "note",
            f"the robot stands still in {100.0 * share:.0f} % of the rows ({head_s:.2g} s before the motion, "
            f"{tail_s:.2g} s after it)",
            f"identify leaves it out; as if with --from {t[0] + head_s:.4g} --to {t[-1] - tail_s:.4g}; in Python: TrimToMotion()"
            if head_s + tail_s > 0.5
            else "friction is undefined in rests: widen --dead-zone, or record a motion that does not rest",
            values={"share": share, "head_s": head_s, "tail_s": tail_s},
        )
    ]


def check_jumps(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Angles that jump by a whole turn."""
    step = np.abs(np.diff(recording.position, axis=0))
    turns = np.asarray(((np.abs(step - 2.0 * np.pi) < 0.5) | (np.abs(step - 360.0) < 30.0)).any(axis=0))
    wrapped = named(recording, turns & turning_joints(recording, robot))
    if not wrapped:
        return NOTHING
    finding = Finding(
        "wrapped_angle",
        "warning",
        f"position of joint {', '.join(wrapped)} jumps by a whole turn from one row to the next",
        "identify makes it continuous automatically; in Python the first step is Unwrap()",
        wrapped,
    )
    return DataCheck((finding,), {})
