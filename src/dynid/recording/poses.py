"""A table of poses: inertia matrix and gravity torque at each of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dynid.arrays import Array, matrix
from dynid.errors import InputError
from dynid.recording.checked import checked_joint_names
from dynid.recording.source import RecordingSource


@dataclass(frozen=True, eq=False)
class StaticRecording:
    """A table of poses with the inertia matrix and the gravity torque of each.

    Args:
        position: ``(n, joints)``, rad or m.
        joint_names: name of every column.
        inertia: ``M(q)``, ``(n, joints, joints)``; None where the table has none.
        gravity: ``g(q)``, ``(n, joints)``, N m or N; None where the table has none.
        source: where the table came from.

    Examples:
        >>> import dynid, numpy as np
        >>> dynid.StaticRecording(np.zeros((4, 1)), ("elbow",), gravity=np.ones((4, 1))).gravity.shape
        (4, 1)
    """

    position: Array
    joint_names: tuple[str, ...]
    inertia: Array | None = None
    gravity: Array | None = None
    source: RecordingSource = field(default_factory=RecordingSource)

    def __post_init__(self) -> None:
        names = checked_joint_names(self.joint_names)
        object.__setattr__(self, "joint_names", names)
        position = matrix("position", self.position, (None, len(names)))
        object.__setattr__(self, "position", position)
        if len(position) == 0:
            raise InputError("pose table holds no rows, expected at least one")
        if self.inertia is None and self.gravity is None:
            raise InputError("pose table holds neither inertia nor gravity, expected at least one of them")
        if self.inertia is not None:
            inertia = matrix("inertia", self.inertia, (len(position), len(names), len(names)))
            gap = float(np.abs(inertia - inertia.transpose(0, 2, 1)).max())
            scale = float(np.abs(inertia).max())
            if gap > 1e-6 * scale:
                raise InputError(f"inertia is not symmetric: entries differ by up to {gap:.3g} of {scale:.3g}")
            object.__setattr__(self, "inertia", inertia)
        if self.gravity is not None:
            object.__setattr__(self, "gravity", matrix("gravity", self.gravity, position.shape))

    @property
    def n_samples(self) -> int:
        """Number of poses."""
        return len(self.position)

    @property
    def n_joints(self) -> int:
        """Number of joints."""
        return len(self.joint_names)
