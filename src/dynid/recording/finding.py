"""A finding of the data check: one sentence and a fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from dynid.files import plain

Severity: TypeAlias = Literal["note", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or good to know: a sentence, and what to do about it."""

    code: str
    severity: Severity
    sentence: str
    fix: str
    joints: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "code": self.code,
            "severity": self.severity,
            "sentence": self.sentence,
            "fix": self.fix,
            "joints": list(self.joints),
            "values": {name: plain(value) for name, value in self.values.items()},
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Finding:
        """The inverse of :meth:`as_dict`."""
        return cls(
            record["code"],
            record["severity"],
            record["sentence"],
            record["fix"],
            tuple(record["joints"]),
            dict(record["values"]),
        )


def dropped_rows(reasons: str, n_dropped: int, n_rows: int) -> Finding:
    """Rows of a file that were left out while it was read."""
    share = n_dropped / max(n_rows, 1)
    return Finding(
        "dropped_rows",
        "warning" if share > 0.01 else "note",
        f"{reasons} ({n_dropped} of {n_rows} rows of the file)",
        "record without gaps; identify takes the parts between them as logs of their own (in Python: SplitAtGaps)",
        values={"rows": n_dropped, "share": share},
    )


@dataclass(frozen=True)
class DataCheck:
    """Findings, the gravest first, and the facts they were drawn from."""

    findings: tuple[Finding, ...]
    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        ranked = sorted(self.findings, key=lambda finding: SEVERITIES.index(finding.severity))
        object.__setattr__(self, "findings", tuple(ranked))

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the findings."""
        return tuple(finding.code for finding in self.findings)

    def find(self, code: str) -> Finding | None:
        """The finding of that code, None where there is none."""
        return next((finding for finding in self.findings if finding.code == code), None)

    def merged(self, other: DataCheck) -> DataCheck:
        """Both together."""
        return DataCheck(self.findings + other.findings, {**self.facts, **other.facts})

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> DataCheck:
        """The inverse of :meth:`as_dict`."""
        return cls(tuple(Finding.from_dict(one) for one in record["findings"]), dict(record["facts"]))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "findings": [finding.as_dict() for finding in self.findings],
            "facts": {name: plain(value) for name, value in self.facts.items()},
        }
