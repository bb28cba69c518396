"""Logs for the tests of the readers: three joints, 40 rows, known values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.signals.recording import Recording

ARM = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint")
N = 40
RNG = np.random.default_rng(7)
T = np.arange(N) * 0.008
Q, DQ, TAU, CURRENT = RNG.normal(size=(4, N, 3))


@dataclass(frozen=True)
class Arm:
    joint_names: tuple[str, ...] = ARM


def write_csv(path: Path, columns: dict[str, np.ndarray], delimiter: str = ",", decimal: str = ".") -> Path:
    rows = [delimiter.join(columns)]
    rows += [
        delimiter.join(repr(value.item()).replace(".", decimal) for value in row)
        for row in zip(*columns.values(), strict=True)
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def numbered(prefix: str, values: np.ndarray, start: int = 1, form: str = "{prefix}{k}") -> dict[str, np.ndarray]:
    return {form.format(prefix=prefix, k=start + j): values[:, j] for j in range(values.shape[1])}


def plain() -> dict[str, np.ndarray]:
    return {"t": T} | numbered("q", Q) | numbered("dq", DQ) | numbered("tau", TAU)


def check(recording, velocity=True, torque=True):
    assert isinstance(recording, Recording)
    np.testing.assert_allclose(recording.time - recording.time[0], T, atol=2e-7)
    np.testing.assert_array_equal(recording.position, Q)
    if velocity:
        np.testing.assert_array_equal(recording.velocity, DQ)
    if torque:
        np.testing.assert_array_equal(recording.torque, TAU)


def by_name(form: str) -> dict[str, np.ndarray]:
    words = {"q": Q, "dq": DQ, "tau": TAU}
    return {"t": T} | {
        form.format(x=word, joint=joint, short=joint.removesuffix("_joint")): values[:, k]
        for word, values in words.items()
        for k, joint in enumerate(ARM)
    }


@dataclass(frozen=True)
class Held:
    """An arm with a locked joint, as a robot tells it."""

    locked: dict[str, float]
    described_joints: tuple[str, ...] = ARM

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.described_joints if name not in self.locked)


def held_log(at: float = 0.5) -> dict[str, np.ndarray]:
    return plain() | {"q2": np.full(N, at), "dq2": np.zeros(N)}
