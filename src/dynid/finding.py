"""What is wrong or good to know, and the verdict that follows: one form for logs, models, runs and pages.

Finding    how grave it is, what it is, where, and what to do about it
DataCheck  all findings on one log, and the facts that they were drawn from
Verdict    whether a result can be used: the gravest reason decides
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from dynid.codec import from_record, to_record
from dynid.files import plain

Level: TypeAlias = Literal["error", "warning", "note", "good"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note", "good")
"""The gravest first."""
Grade: TypeAlias = Literal["good", "usable", "do not use"]
BASE = ("base force", "base moment")
"""What is judged of a floating base beside its joints."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or good to know.

    Args:
        level: how grave it is.
        what: one sentence.
        remedy: what to do about it.
        where: joints, files, links or parameters that it is about, as the user names them.
        code: a stable word for it, such as ``torque_sign``.
        values: the numbers behind it.

    Examples:
        >>> from dynid.finding import Finding, Verdict
        >>> Finding("warning", "the last line is cut off", "record again", code="cut_off").as_dict()["level"]
        'warning'
    """

    level: Level
    what: str
    remedy: str = ""
    where: tuple[str, ...] = ()
    code: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "level": self.level,
            "where": ", ".join(self.where),
            "what": self.what,
            "remedy": self.remedy,
            "code": self.code,
            "values": plain(self.values),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Finding:
        """The inverse of :meth:`as_dict`."""
        where = tuple(record["where"].split(", ")) if record["where"] else ()
        return cls(record["level"], record["what"], record["remedy"], where, record["code"], dict(record["values"]))


def dropped_rows(reasons: str, n_dropped: int, n_rows: int) -> Finding:
    """Rows of a file that were left out while it was read."""
    share = n_dropped / max(n_rows, 1)
    return Finding(
        "warning" if share > 0.01 else "note",
        f"{reasons} ({n_dropped} of {n_rows} rows of the file)",
        "record without gaps; identify takes the parts between them as logs of their own (in Python: SplitAtGaps)",
        code="dropped_rows",
        values={"rows": n_dropped, "share": share},
    )


@dataclass(frozen=True)
class DataCheck:
    """Findings, the gravest first, and the facts they were drawn from."""

    findings: tuple[Finding, ...]
    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        ranked = sorted(self.findings, key=lambda finding: LEVELS.index(finding.level))
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


@dataclass(frozen=True)
class JointGrade:
    """What is known of one joint.

    Args:
        name: the joint.
        unseen: error of its unseen torque, relative to its own; None where nothing is unseen.
        floor: what the noise of its sensor alone would leave.
        expected: error expected on other motion within the range of the log.
        grade: what follows.
        reason: why it is less than good; empty where it is good.
    """

    name: str
    unseen: float | None
    floor: float
    expected: float
    grade: Grade
    reason: str = ""


def not_good(joints: Sequence[JointGrade]) -> str:
    """How many joints are not good, and what of a floating base is not, in words; empty where all are."""
    poor = [joint.name for joint in joints if joint.grade != "good"]
    count, of_base = sum(name not in BASE for name in poor), [name for name in poor if name in BASE]
    of_joints = [f"{count} of {sum(joint.name not in BASE for joint in joints)} joints"] if count else []
    return " and ".join([*of_joints, *of_base])


@dataclass(frozen=True)
class FileJoint:
    """What a written file makes of one joint.

    Args:
        name: the joint.
        unseen: error of its unseen torque by the file, relative to its own; None where nothing is unseen.
        loss: root mean square of the torque that the format lacks of the estimate's, relative to the joint's own.
        drift: by which it strays at the end of free runs of 0.1 s, rad or m; None where the file cannot run.
    """

    name: str
    unseen: float | None
    loss: float
    drift: float | None


@dataclass(frozen=True)
class FileGrade:
    """How well a written file predicts, loaded by its own library.

    Args:
        path: name of the file in the run's folder.
        format: ``urdf``, ``mjcf`` or ``sdf``.
        unseen: error of unseen torque over all joints; None where nothing is unseen.
        joints: the same joint by joint.
        lacks: what the format cannot hold of the model.
        ready: whether it can be used as it is.
    """

    path: str
    format: str
    unseen: float | None
    joints: tuple[FileJoint, ...]
    lacks: tuple[str, ...]
    ready: bool

    @property
    def worst(self) -> FileJoint:
        """The joint that loses most."""
        return max(self.joints, key=lambda joint: joint.loss)


@dataclass(frozen=True)
class Verdict:
    """Whether what was identified can be used.

    Args:
        opening: how well it predicts, in a few words.
        reasons: what the grade follows from; the gravest reason decides.
        description_error: torque error of the description itself on the same samples, where it has inertials.
        joints: what is known of each joint.
        files: how well each simulator file of the model predicts.

    Examples:
        >>> from dynid.finding import Finding, Verdict
        >>> reason = Finding("warning", "not validated on unseen data", "give --split 0.65")
        >>> Verdict("explains its own log to 2 %", (reason,)).grade
        'usable'
    """

    opening: str
    reasons: tuple[Finding, ...]
    description_error: float | None = None
    joints: tuple[JointGrade, ...] = ()
    files: tuple[FileGrade, ...] = ()

    @property
    def grade(self) -> Grade:
        """The gravest reason decides."""
        levels = {reason.level for reason in self.reasons}
        if "error" in levels:
            return "do not use"
        return "usable" if "warning" in levels else "good"

    @property
    def sentence(self) -> str:
        """Grade, prediction, every reason for less than good and which files are ready to use, in one line."""
        told = [reason.what.rstrip(".") for reason in self.reasons if reason.level in ("error", "warning")]
        lines = [f"{self.grade}: {self.opening}", *told]
        if self.files and not any(reason.code == "files" and reason.what.rstrip(".") in told for reason in self.reasons):
            lines.append(self.files_sentence)
        return "; ".join(lines)

    @property
    def files_sentence(self) -> str:
        """Which files are ready to use, and which joint of the others loses how much; a file is no better than its model."""
        if self.grade == "do not use":
            return "none of its files is ready to use"
        ready = [one.path for one in self.files if one.ready]
        others = [
            f"{one.path} ({one.worst.name} loses {100.0 * one.worst.loss:.2g} % of its torque)"
            for one in self.files
            if not one.ready
        ]
        parts = ([f"ready to use: {', '.join(ready)}"] if ready else []) + (
            [f"not ready to use: {', '.join(others)}"] if others else []
        )
        return "; ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: ``grade``, ``sentence`` and ``reasons`` are what scripts rely on."""
        return {
            "grade": self.grade,
            "sentence": self.sentence,
            "opening": self.opening,
            "reasons": [
                {"level": one.level, "text": one.what, "advice": one.remedy, "code": one.code} for one in self.reasons
            ],
            "description_error": self.description_error,
            "joints": to_record(self.joints),
            "files": to_record(self.files),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Verdict:
        """The inverse of :meth:`as_dict`."""
        reasons = tuple(
            Finding(one["level"], str(one["text"]), str(one["advice"]), code=str(one.get("code", "")))
            for one in record["reasons"]
        )
        error = record["description_error"]
        joints = tuple(from_record(JointGrade, one) for one in record.get("joints", ()))
        files = tuple(from_record(FileGrade, one) for one in record.get("files", ()))
        return cls(str(record["opening"]), reasons, None if error is None else float(error), joints, files)
