"""The three answers to whether a robot can have some base values."""

from __future__ import annotations

from typing import Literal, TypeAlias

Decision: TypeAlias = Literal["feasible", "boundary", "infeasible"]
