"""What one identification found, on one screen: verdict, errors, the worst joints, what is not known, what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.cli.console import percent
from dynid.cli.screen import Screen

if TYPE_CHECKING:
    from dynid.finding import JointGrade, Verdict
    from dynid.pipeline.export import Published
    from dynid.pipeline.result import IdentificationResult


def show_run_screen(run: IdentificationResult, published: Published) -> None:
    """Print the screen of a run that was written."""
    screen = Screen()
    if run.verdict is not None:
        screen.line(headline(run.verdict), run.verdict.grade)
    _errors(screen, run)
    _files(screen, run, published)
    if run.body is None:
        consistent = "yes, every link" if run.consistency.feasible else f"no: {', '.join(run.consistency.inconsistent)}"
        screen.line(f"physically consistent: {consistent}")
    for text in retrieval_lines(run.retrieval):
        screen.line(text)
    _joints(screen, run)
    unknown = not_known(run)
    if unknown:
        screen.line(unknown)
    screen.findings(_findings(run))
    for note in (*published.refusals, *run.notes):
        screen.remark(note)
    report = next((path for path in published.files if path.suffix == ".html"), None)
    if report is not None:
        screen.last(f"report: {report}")
    screen.last(f"next: {next_step(run, published.folder)}")
    screen.show()


def headline(verdict: Verdict) -> str:
    """The verdict in one short sentence."""
    poor = sum(joint.grade != "good" for joint in verdict.joints)
    beside = f", but {poor} of {len(verdict.joints)} joints are not good" if poor else ""
    return f"verdict: {verdict.grade}: {verdict.opening}{beside}"


def retrieval_lines(details: Mapping[str, Any]) -> list[str]:
    """How far a retrieval is from the best possible, what it violates, and what the joints carry; nothing for other methods."""
    if not details:
        return []
    violated = ", ".join(details["violated"]) or "none"
    lines = [
        (
            f"cost {details['cost']:.5g}, no feasible set costs less than {details['lower_bound']:.5g}, gap {details['gap']:.2g}; "
            f"constraints violated: {violated}"
        )
    ]
    wrenches = details.get("largest_joint_wrench", ())
    if wrenches:
        forces = ", ".join(f"{entry['force']:.3g}" for entry in wrenches)
        moments = ", ".join(f"{entry['moment']:.3g}" for entry in wrenches)
        lines.append(f"largest joint forces {forces} N, moments {moments} N m")
    return lines


def _errors(screen: Screen, run: IdentificationResult) -> None:
    own, unseen, verdict = run.identification, run.validation, run.verdict
    parts = []
    if unseen is not None:
        parts.append(f"unseen {percent(unseen.relative_error)} (raw {percent(unseen.relative_error_raw)})")
    if run.rows.kind == "static":
        parts.append(f"{run.estimate.n_samples} poses {percent(run.estimate.relative_error)}")
    elif own is not None:
        parts.append(f"identified on {percent(own.relative_error)} (raw {percent(own.relative_error_raw)})")
    if verdict is not None and verdict.description_error is not None:
        parts.append(f"description {percent(verdict.description_error)}")
    if parts:
        screen.line(f"{run.measured} error: {', '.join(parts)}")
    if run.rows.kind not in ("torque", "static", "wrench") and run.row_error is not None:
        unseen_rows = "" if run.row_validation is None else f", unseen {percent(run.row_validation.relative_error)}"
        screen.line(f"error of {run.rows.kind} rows: identified on {percent(run.row_error.relative_error)}{unseen_rows}")


def _files(screen: Screen, run: IdentificationResult, published: Published) -> None:
    """The models that were written, with the unseen error of each and whether it is ready to use."""
    graded = {one.path: one for one in run.verdict.files} if run.verdict is not None else {}
    useless = run.verdict is not None and run.verdict.grade == "do not use"
    names = [path.name for path in published.files if path.suffix not in (".html",) and path.name != "run.json"]
    told = []
    for name in names:
        own = graded.get(name)
        error = "" if own is None or own.unseen is None else f" {percent(own.unseen)}"
        ready = (
            "" if own is None else " ready to use" if own.ready else f" NOT ready{'' if useless else f' ({own.worst.name})'}"
        )
        told.append(f"{name}{error}{ready}")
    if told:
        error = " (unseen error of each)" if any(one.unseen is not None for one in graded.values()) else ""
        screen.line(f"files in {published.folder}{error}: {', '.join(told)}")


def _joints(screen: Screen, run: IdentificationResult) -> None:
    """The joints with the largest errors: unseen error as a bar, noise, friction, and the error to expect elsewhere."""
    joints = () if run.verdict is None else run.verdict.joints
    if not joints:
        return
    friction = _friction(run, [joint.name for joint in joints])
    own = run.identification
    known = {} if own is None else dict(zip([one.name for one in joints], own.relative_error_per_channel, strict=True))
    rows = []
    for joint in sorted(joints, key=lambda one: -one.expected):
        error = joint.unseen if run.validation is not None else float(known.get(joint.name, float("nan")))
        size = error if error is not None and error == error else 0.0
        rows.append(
            (
                joint.name,
                percent(error),
                size,
                percent(joint.floor),
                friction.get(joint.name, "-"),
                _beyond(joint),
                joint.grade,
            )
        )
    first = "unseen" if run.validation is not None else "known"
    screen.table(("joint", first, "", "noise", "friction", "other motion", "grade"), rows, text=(0, 6))


def _beyond(joint: JointGrade) -> str:
    """Error to expect on other motion; beyond 999 % the number says nothing more."""
    return "> 999 %" if joint.expected > 9.99 else percent(joint.expected, 1)


def _friction(run: IdentificationResult, names: Sequence[str]) -> dict[str, str]:
    """Torque of friction of each joint at its mean speed; empty where there are no samples or no friction."""
    import numpy as np

    if not run.samples or not any(effect.is_friction for effect in run.model.effects):
        return {}
    speed = np.abs(np.concatenate([one.velocity for one in run.samples])).mean(axis=0)
    found = run.friction(speed)[0]
    if len(found) != len(names):
        return {}
    units = {joint.name: "N" if joint.kind == "prismatic" else "N m" for joint in run.robot.moving_joints}
    return {name: f"{value:.3g} {units.get(name, 'N m')}" for name, value in zip(names, found, strict=True)}


def not_known(run: IdentificationResult) -> str:
    """How many parameters the data leave open; empty where they determine all."""
    import numpy as np

    found = run.estimate
    if run.body is not None:
        return ""
    vague = int(np.count_nonzero(found.seen & (found.sigma_percent > 100.0)))
    kept = found.base.n_base - min(found.rank, int(np.count_nonzero(found.seen)))
    parts = []
    if vague:
        parts.append(f"{vague} of {found.base.n_base} parameters have an uncertainty larger than their value")
    if kept:
        parts.append(f"{kept} are not determined and keep the description's values")
    return f"not known: {'; '.join(parts)} (--table)" if parts else ""


MOTION = "motion"
"""Word in the reason of a joint whose motion determines it too badly; such a joint needs another log."""


def _findings(run: IdentificationResult) -> Iterator[tuple[str, str, str]]:
    """Level, what is wrong, and what mends it, the gravest first."""
    verdict = run.verdict
    if verdict is None:
        return
    graded = sorted((joint for joint in verdict.joints if joint.reason), key=lambda joint: joint.reason)
    of_joints = [
        (reason, [joint.name for joint in group]) for reason, group in groupby(graded, key=lambda joint: joint.reason)
    ]
    options = [one.option for one in run.advice if one.option]
    for level in ("error", "warning"):
        for reason in verdict.reasons:
            if reason.level == level and reason.code != "joints":
                yield level, reason.what, reason.remedy
            elif reason.level == level:
                for why, names in of_joints:
                    yield level, f"{', '.join(names)}: {why}", _mend(why, run, options)
    for reason in verdict.reasons:
        if reason.code == "files" and reason.level == "note":  # what a file cannot hold matters to whoever loads it
            yield "note", reason.what, reason.remedy
    for option in dict.fromkeys(options):
        cause = next(one for one in run.advice if one.option == option)
        yield "warning", f"{cause.joint}: {cause.cause}", f"add {option} to this command, or --apply-advice"
    for level in ("error", "warning"):
        for finding in run.findings:
            if finding.level == level and not any(finding.what in reason.what for reason in verdict.reasons):
                yield level, finding.what, finding.remedy


def _mend(why: str, run: IdentificationResult, options: Sequence[str]) -> str:
    """The command that makes such a joint better."""
    if MOTION in why:
        return f"record a richer motion: dynid excite {_robot_path(run)} -o motion.csv"
    return f"add {options[0]} to this command" if options else "look at the residual in the report"


def _robot_path(run: IdentificationResult) -> str:
    """The description as the user would type it here."""
    path = run.robot.source.path
    return "ROBOT" if not path else min(os.path.relpath(path), str(path), key=len)


def next_step(run: IdentificationResult, folder: Path) -> str:
    """What to do after this run."""
    if run.body is not None:
        return f"dynid export {folder} --to json"
    if run.validation is None and run.filter is not None:
        return "add --split 0.65 or --validate LOG to this command, to know how well the model predicts"
    if any(one.option for one in run.advice):
        return "add --apply-advice to this command"
    if run.verdict is not None and run.verdict.grade == "good":
        return f"dynid export {folder} --to urdf,mjcf,c; dynid validate {folder} OTHER_LOG"
    if run.verdict is not None and any(MOTION in joint.reason for joint in run.verdict.joints):
        return f"dynid excite {_robot_path(run)} -o motion.csv, record it, identify again"
    return f"look at the report, then dynid validate {folder} OTHER_LOG"
