"""A verdict as a value: its grade, one sentence, and the reasons, each with what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, cast

ReasonLevel: TypeAlias = Literal["good", "note", "warning", "error"]
Grade: TypeAlias = Literal["good", "usable with reservations", "do not use"]


@dataclass(frozen=True)
class Reason:
    """One reason of a verdict: how grave it is, a sentence, and what to do about it."""

    level: ReasonLevel
    text: str
    advice: str = ""


@dataclass(frozen=True)
class RunVerdict:
    """Whether the model of a run can be used.

    Args:
        opening: how well it predicts, in a few words.
        reasons: what the grade follows from; the gravest reason decides.
        description_error: torque error of the description itself on the same samples, where it has inertials.
    """

    opening: str
    reasons: tuple[Reason, ...]
    description_error: float | None = None

    @property
    def grade(self) -> Grade:
        """The gravest reason decides."""
        levels = {reason.level for reason in self.reasons}
        if "error" in levels:
            return "do not use"
        return "usable with reservations" if "warning" in levels else "good"

    @property
    def sentence(self) -> str:
        """Grade, prediction and every reason for less than good, in one line."""
        told = [reason.text.rstrip(".") for reason in self.reasons if reason.level in ("error", "warning")]
        return "; ".join((f"{self.grade}: {self.opening}", *told))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: ``grade``, ``sentence`` and ``reasons`` are what scripts rely on."""
        return {
            "grade": self.grade,
            "sentence": self.sentence,
            "opening": self.opening,
            "reasons": [asdict(reason) for reason in self.reasons],
            "description_error": self.description_error,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RunVerdict:
        reasons = tuple(
            Reason(cast(ReasonLevel, str(one["level"])), str(one["text"]), str(one["advice"])) for one in record["reasons"]
        )
        error = record["description_error"]
        return cls(str(record["opening"]), reasons, None if error is None else float(error))
