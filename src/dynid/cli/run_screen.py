"""What one identification found, on one screen: verdict, errors, the worst joints, what is not known, what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.cli.console import percent, show, show_table
from dynid.cli.screen import NO_END, Screen, fold

if TYPE_CHECKING:
    from dynid.finding import FileGrade, JointGrade, Verdict
    from dynid.pipeline.export import Published
    from dynid.pipeline.result import IdentificationResult


def show_run_screen(run: IdentificationResult, published: Published, whole: bool = False) -> None:
    """Print the screen of a run that was written; ``whole``: with every joint, finding and note."""
    if whole:
        _show_details(run, published)
    screen = Screen(whole)
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


def _show_details(run: IdentificationResult, published: Published) -> None:
    """What the screen has no room for: how rows were made, what they show, advice, what is proven, the files joint by joint."""
    from dynid.estimation.advice import advice_lines

    found, lines = run.estimate, []
    if run.filter is not None:
        lines.append(f"filter: {run.filter.describe()}")
    if run.from_coefficients:
        lines.append(
            f"{run.robot.name}: {found.n_rows} coefficients fix {found.rank} of {found.base.n_base} base parameters"
        )
    elif run.body is None:
        lines.append(
            f"{run.robot.name}: {found.n_samples} {'poses' if run.filter is None else 'samples after filtering'} show {found.rank} of "
            f"{found.base.n_base} base parameters, condition number {found.condition_number:.4g} (scaled "
            f"{found.condition_number_scaled:.4g})"
        )
    lines += [f"advice: {line}" for line in advice_lines(run.advice)]
    lines += _possible(run)
    lines += [f"{item.format}: {note}" for item in published.exported for note in item.notes]
    lines += [f"written: {path}" for path in published.files]
    for line in lines:
        for part in fold(line, NO_END):
            show(part)
    if run.verdict is not None:
        _show_files(run.verdict.files)
    show()


def _show_files(files: Sequence[FileGrade]) -> None:
    """Unseen torque by each simulator file, joint by joint, and which of them are ready to use."""
    if not files:
        return
    names = [joint.name for joint in files[0].joints]
    rows = [
        (name, *(percent(one.joints[j].loss if one.unseen is None else one.joints[j].unseen) for one in files))
        for j, name in enumerate(names)
    ]
    if files[0].unseen is not None:
        rows.append(("all joints", *(percent(one.unseen) for one in files)))
    rows.append(("ready to use", *("yes" if one.ready else "no" for one in files)))
    what = "lacks of its torque" if files[0].unseen is None else "unseen torque error"
    show_table((f"{what}, by file", *(one.format for one in files)), rows, text=(0,))


def _possible(run: IdentificationResult) -> Iterator[str]:
    """What is proven of the base values."""
    verdict = run.feasibility
    if verdict is None:
        return
    words = {
        "bodies": "yes",
        "certificate": "yes, other links than those of the model prove it",
        "direction": "no, see the notes",
        "": "not decided, see the notes",
    }
    matrix = f" ({verdict.inertia_matrix})" if verdict.inertia_matrix else ""
    yield f"base values physically possible: {words[verdict.proof]}{matrix}"


def headline(verdict: Verdict) -> str:
    """The verdict in one short sentence: that of a model not to be used begins with its cause."""
    from dynid.finding import not_good

    if verdict.grade == "do not use":
        cause = _cause(verdict)
        told = verdict.opening.rpartition(" to ")[2] in cause  # the error itself is the cause
        return f"verdict: do not use: {verdict.opening if told else f'{cause}; it {verdict.opening}'}"
    poor = not_good(verdict.joints)
    beside = f", but {poor} are not good" if poor else ""
    return f"verdict: {verdict.grade}: {verdict.opening}{beside}"


def _cause(verdict: Verdict) -> str:
    """Why a model is not to be used."""
    first = next(reason for reason in verdict.reasons if reason.level == "error")
    if first.code == "joints":
        worst = max(verdict.joints, key=lambda joint: joint.expected)
        return f"{worst.name} may be wrong by {_beyond(worst)} on other motion"
    return f"{first.what[:1].lower()}{first.what[1:].rstrip('.')}"


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
    if run.rows.kind not in ("torque", "static", "wrench", "floating") and run.row_error is not None:
        unseen_rows = "" if run.row_validation is None else f", unseen {percent(run.row_validation.relative_error)}"
        screen.line(f"error of {run.rows.kind} rows: identified on {percent(run.row_error.relative_error)}{unseen_rows}")


def _files(screen: Screen, run: IdentificationResult, published: Published) -> None:
    """The models that were written, with the unseen error of each and whether it is ready to use."""
    graded = {one.path: one for one in run.verdict.files} if run.verdict is not None else {}
    useless = run.verdict is not None and run.verdict.grade == "do not use"
    names = [path.name for path in published.files if path.suffix not in (".html",) and path.name != "run.json"]
    told = [f"{name}{'' if name not in graded else _grade_of(graded[name], useless)}" for name in names]
    if told:
        error = " (unseen error of each)" if any(one.unseen is not None for one in graded.values()) else ""
        screen.line(f"files in {published.folder}{error}: {', '.join(told)}")


def _grade_of(file: FileGrade, useless: bool) -> str:
    """Unseen error of a file and whether it is ready to use, with the joint that loses most unless its model is useless."""
    error = "" if file.unseen is None else f" {percent(file.unseen)}"
    if file.ready:
        return f"{error} ready to use"
    return f"{error} NOT ready" + ("" if useless else f" ({file.worst.name} loses {percent(file.worst.loss, 0)})")


def _joints(screen: Screen, run: IdentificationResult) -> None:
    """The joints with the largest errors: unseen error as a bar, noise, friction, and the error to expect elsewhere."""
    joints = () if run.verdict is None else run.verdict.joints
    if not joints:
        return
    friction = _friction(run)
    own = run.identification
    known = {} if own is None else dict(zip(run.robot.dof_names, own.relative_error_per_channel, strict=True))
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
    """Error to expect on other motion; beyond 100 %, which no model at all has, the number says nothing more."""
    return "> 100 %" if joint.expected > 1.0 else percent(joint.expected, 1)


def _friction(run: IdentificationResult) -> dict[str, str]:
    """Torque of friction of each joint at its mean speed, half of the difference between both directions: an offset is none.

    Empty where there are no samples or no friction.
    """
    import numpy as np

    if not run.samples or not any(effect.is_friction for effect in run.model.effects):
        return {}
    speed = np.abs(np.concatenate([one.velocity for one in run.samples])).mean(axis=0)
    forth, back = run.friction(np.stack([speed, -speed]))
    found = 0.5 * (forth - back)
    units = {joint.name: "N" if joint.kind == "prismatic" else "N m" for joint in run.robot.moving_joints}
    return {name: f"{value:.3g} {units.get(name, 'N m')}" for name, value in zip(run.robot.dof_names, found, strict=True)}


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
    options = [one.option for one in run.advice if one.option is not None]
    for level in ("error", "files", "warning"):
        for reason in verdict.reasons:
            if level == "files" and reason.code == "files" and reason.level == "note":  # it matters to whoever loads one
                yield "note", reason.what, reason.remedy
            elif reason.level == level and reason.code != "joints":
                yield level, reason.what, reason.remedy
            elif reason.level == level:
                for why, names in of_joints:
                    yield level, f"{', '.join(names)}: {why}", _mend(why, run, names)
    for option in dict.fromkeys(options):
        cause = next(one for one in run.advice if one.option == option)
        yield "warning", f"{cause.joint}: {cause.cause}", f"add {option} to this command, or --apply-advice"
    for level in ("error", "warning"):
        for finding in run.findings:
            if finding.level == level and not any(finding.what in reason.what for reason in verdict.reasons):
                yield level, finding.what, finding.remedy


def _mend(why: str, run: IdentificationResult, joints: Sequence[str]) -> str:
    """The command that makes such joints better."""
    if MOTION in why:
        return f"record a richer motion: {_excite(run)}"
    option = next((one.option for one in run.advice if one.option and one.joint in joints), None)
    if option is not None:
        return f"add {option} to this command"
    if "gain" in why:
        return "check the gain of its torque: --calibrate gain gives it with its interval"
    return "look at the residual in the report"


def _robot_path(run: IdentificationResult) -> str:
    """The description as the user would type it here."""
    path = run.robot.source.path
    return "ROBOT" if not path else min(os.path.relpath(path), str(path), key=len)


def _excite(run: IdentificationResult) -> str:
    """The command that makes another motion."""
    feet = [
        f" --{flag} {','.join(own)}"
        for flag, own in (("feet", run.settings.feet), ("flat-feet", run.settings.flat_feet))
        if own
    ]
    return f"dynid excite {_robot_path(run)}{''.join(feet)} -o motion.csv"


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
        return f"{_excite(run)}, record it, identify again"
    return f"look at the report, then dynid validate {folder} OTHER_LOG"
