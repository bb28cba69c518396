"""What MuJoCo warns of, collected: left alone it goes to the terminal and into ``MUJOCO_LOG.TXT`` of the present folder.

MuJoCo warns where a simulation leaves all bounds, and then sets the state back to the beginning: positions that follow are
finite and mean nothing. Whoever steps MuJoCo therefore has to look at what was collected.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_ONE_AT_A_TIME = threading.RLock()
"""MuJoCo has one place for the function that takes its warnings."""

_DOF = re.compile(r"\bat DOF (\d+)\b")


@contextmanager
def mujoco_warnings() -> Iterator[list[str]]:
    """Warnings of everything that MuJoCo does inside, in the order of time, each once."""
    import mujoco

    said: list[str] = []

    def take(text: str) -> None:
        if text not in said:
            said.append(text)

    with _ONE_AT_A_TIME:
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(take)
        try:
            yield said
        finally:
            mujoco.set_mju_user_warning(before)


def with_joint_names(warning: str, joints: Sequence[str]) -> str:
    """MuJoCo's sentence with the name of the joint in place of its number; ``joints`` in MuJoCo's order of degrees of freedom."""

    def name(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"at joint '{joints[number]}'" if number < len(joints) else found[0]

    return _DOF.sub(name, warning).strip().rstrip(".")
