"""The verdict on a run: good, usable with the joints named that are not good, or not to be used, with the reasons.

It is decided here once and stored with the run; terminal, JSON and report show it and decide nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.errors import reason_of
from dynid.estimation.friction.passivity import FrictionReach, driving_joints, passivity_of
from dynid.estimation.result import Outcome
from dynid.finding import FileGrade, Finding, JointGrade, Level, Verdict, not_good
from dynid.pipeline.file_grades import grade_files
from dynid.pipeline.joint_grades import GOOD, USABLE, grade_joints, overall_grade
from dynid.pipeline.option_groups import FLOATING
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.signal_filter import STILL
from dynid.pipeline.wrench import judge_body
from dynid.validation.free_run import windows_for
from dynid.validation.prediction import row_error, validate
from dynid.validation.replay import Replay, replay

POOR, USELESS = 0.10, 0.30
"""Relative errors of rows from which a model of poses or coefficients is called poor, and not to be used."""
AS_GOOD = 1.25
"""Factor on the description's own error up to which a model is as good as it."""
NEVER_MOVED = "never_moved"
"""Code of the reason of a run from logs in which no joint moved."""
DRIFT_SHARE = 0.5
"""Share of its own motion by which a joint may drift from it in a window of the replay."""


def percent(fraction: float | None) -> str:
    """A share in percent, a dash where there is none."""
    if fraction is None or not np.isfinite(fraction):
        return "–"
    return f"{100.0 * fraction:.3g}\u00a0%"


def with_verdict(run: IdentificationResult) -> IdentificationResult:
    """The run with its replay and its verdict; a body on a sensor is judged by its wrench."""
    if run.body is not None:
        unseen = "known" if run.validation is None else "unseen"
        return run.changed(verdict=judge_body(run.body, run.judged_error, unseen))
    found, failure = _replayed(run)
    moved = run.changed(replay=found)
    try:
        files, broken = grade_files(moved), ""
    except Exception as error:  # whatever another library stumbles over, the model was identified
        files, broken = (), reason_of(error)
    return moved.changed(verdict=verdict_on(moved, failure, files, broken))


def verdict_on(
    run: IdentificationResult, replay_failure: str = "", files: tuple[FileGrade, ...] = (), files_failure: str = ""
) -> Verdict:
    """What the user came for: how well the model predicts, and what to check.

    Args:
        run: with its replay, where it has one.
        replay_failure: why it has none; empty where nothing was to be replayed.
        files: how well its simulator files predict.
        files_failure: why that is not known; empty where it is.
    """
    found, joints = run.estimate, grade_joints(run)
    description = _description_error(run)
    reasons = [
        *_motion(run),
        _prediction(run, description, joints),
        *_joint_reasons(joints),
        *_base_left_out(run),
        *_search(run),
        _determined(run),
        _consistency(run),
    ]
    if run.replay is not None or replay_failure:
        reasons.append(_replay_reason(run, replay_failure))
    reasons += _friction(run)
    faults = _faults_of_logs(run)
    if found.outcome not in (Outcome.SOLVED, Outcome.RANK_DEFICIENT):
        level: Level = "warning" if found.outcome.usable else "error"
        faults.insert(0, Finding(level, f"The method ended with: {found.outcome.value}."))
    if any(reason.level == "error" for reason in (*reasons, *faults)):  # a file is no better than its model
        files = tuple(replace(one, ready=False) for one in files)
    else:
        reasons += _file_reasons(files, files_failure)
    return Verdict(_opening(run), (*reasons, *faults), description, joints, files)


ROWS_FAIL = 0.05
"""Torque error from which a fit of the simulated motion is worth trying; below it torque rows do well."""
_REMEDIES = {
    "torque offset": "identify again with --effects viscous,coulomb,armature, whose files need no offsets",
    "friction": "use the functions of dynid export RUN --to c, which hold everything",
}
"""What to do about a term that a format has no place for."""


def _file_reasons(files: Sequence[FileGrade], failure: str) -> list[Finding]:
    """Which simulator files are ready to use; the grade is that of the model, whatever a format has no place for."""
    if failure:
        return [Finding("note", f"How well the written files predict is not known: {failure}.")]
    poor = [one for one in files if not one.ready]
    if not files:
        return []
    if not poor:
        worst = max((one.worst for one in files), key=lambda joint: joint.loss)
        names = ", ".join(one.path for one in files)
        return [Finding("good", f"Ready to use: {names}; no joint loses more than {percent(worst.loss)} of its torque.")]
    told = "; ".join(f"{one.path}: {one.worst.name} loses {percent(one.worst.loss)} of its torque" for one in poor)
    lost = " ".join(lack for one in poor for lack in one.lacks)
    terms = [term for term in ("rotor inertia", *_REMEDIES) if term in lost]
    told += f"; left out or simplified: {', '.join(terms)}" if terms else ""
    ready = [one.path for one in files if one.ready]
    remedies = [f"take {', '.join(ready)}"] if ready else [_REMEDIES[term] for term in _REMEDIES if term in lost]
    remedy = ", or ".join(remedies or [_REMEDIES["friction"]])
    if not ready and "rotor inertia" in lost:
        remedy = f"take the MJCF file, which holds rotors, and {remedy}"
    return [Finding("note", f"Not ready to use: {told}.", f"{remedy[:1].upper()}{remedy[1:]}.", code="files")]


def _motion(run: IdentificationResult) -> list[Finding]:
    """A log in which no joint moves: whatever explains it says nothing of motion."""
    if run.filter is None or not run.samples or any(np.any(np.ptp(one.position, axis=0) > STILL) for one in run.samples):
        return []
    what = "No joint moved in the logs: they show gravity in one position, and nothing of inertia and friction."
    return [Finding("error", what, "Record a motion; dynid excite designs one.", code=NEVER_MOVED)]


def _joint_reasons(joints: Sequence[JointGrade]) -> list[Finding]:
    """Joints whose torque is expected to be wrong on other motion, or that none is."""
    if not joints:
        return []
    poor = [joint for joint in joints if joint.grade != "good"]
    if not poor:
        worst = max(joints, key=lambda joint: joint.expected)
        text = (
            f"Within the range of the log every joint is expected to be right to {percent(worst.expected)} ({worst.name})."
        )
        return [Finding("good", text)]
    right = {joint.name: f"to {percent(joint.expected)}" if joint.expected <= 1.0 else "not at all" for joint in poor}
    told = "; ".join(f"{joint.name} {right[joint.name]}, {joint.reason}" for joint in poor)
    hopeless = overall_grade(joints) == "do not use"
    what = f"On other motion the torque of {not_good(joints)} is expected to be right only: {told}."
    remedy = (
        "Use the other joints, and look at advice and data check for these."
        if not hopeless
        else "Look at advice and data check."
    )
    return [Finding("error" if hopeless else "warning", what, remedy, tuple(joint.name for joint in poor), "joints")]


def _base_left_out(run: IdentificationResult) -> list[Finding]:
    """A floating base whose rows were not used, although nothing was said to carry it."""
    root = run.robot.links[0]
    if run.rows.feet != (f"{root}:flat",) or root in run.settings.flat_feet:
        return []
    what = (
        f"The rows of the base were left out: what only they show, such as the mass of {root}, is that of the description."
    )
    return [Finding("warning", what, "Weigh the robot and give --mass, or measure the motion of its base with less noise.")]


def _search(run: IdentificationResult) -> list[Finding]:
    """A retrieval that ended far above what is proven to be the least: a better set may exist, and this one may be none."""
    share = run.retrieval.get("gap_share", 0.0)
    if not share > GOOD:
        return []
    what = "torque" if "coefficients" not in run.retrieval else "the coefficients"
    told = (
        f"The retrieval ended {percent(share)} of {what} away from the least that the convex conditions allow (gap "
        f"{run.retrieval['gap']:.3g}; expected at most {percent(GOOD)}, not to be used from {percent(USABLE)}): it may be a local "
        "optimum."
    )
    remedy = "Give more --starts, or --optimiser refine; where the gap stays, bounds or conditions contradict the data."
    return [Finding("error" if share > USABLE else "warning", told, remedy, code="gap", values={"share": share})]


def _faults_of_logs(run: IdentificationResult) -> list[Finding]:
    """What the data check found: an error decides, a warning is told, since what it does to the model shows in its errors."""
    faults = [finding for check in run.checks for finding in check.findings if finding.level == "error"]
    if not faults:
        return []
    first = faults[0]
    count = f"{len(faults)} error{'s' if len(faults) > 1 else ''} in the logs{', the first' if len(faults) > 1 else ''}"
    return [
        Finding("error", f"{count}: {first.what}.", f"{first.remedy[:1].upper()}{first.remedy[1:]}." if first.remedy else "")
    ]


def _opening(run: IdentificationResult) -> str:
    if run.validation is not None:
        return f"predicts unseen {_what(run)} to {percent(run.validation.relative_error)}"
    if run.from_coefficients:
        return f"retrieved from {run.estimate.n_rows} coefficients, not validated on torque"
    return f"explains what it was identified on to {percent(_own_error(run))}"


def _what(run: IdentificationResult) -> str:
    """What is predicted: torque, or the rows of base and joints that contact forces have left."""
    return "rows of base and joints" if run.rows.kind == FLOATING else "torque"


def _are(run: IdentificationResult) -> str:
    return "are" if run.rows.kind == FLOATING else "is"


def _own_error(run: IdentificationResult) -> float:
    return run.estimate.relative_error if run.identification is None else run.identification.relative_error


def _description_error(run: IdentificationResult) -> float | None:
    """Torque error of the description itself on the same samples; None where it has no inertials or there are no samples."""
    judged = run.unseen or run.samples
    if not judged or not np.any(run.robot.parameters.inertials):
        return None
    if run.rows.kind == FLOATING:
        return row_error(run.rows.source(run.robot, judged), run.robot.parameters).relative_error
    return validate(run.robot, run.robot.parameters, judged, run.judged_hz).relative_error


def _prediction(run: IdentificationResult, description: float | None, joints: Sequence[JointGrade]) -> Finding:
    before = "" if description is None else f" The description it started from is off by {percent(description)}."
    if run.validation is None:
        return _explanation(run, before)
    error, own = run.validation.relative_error, _own_error(run)
    if own > 2.5 * error + 0.01:
        return Finding(
            "warning",
            f"What it was identified on is explained to {percent(own)} only, but unseen {_what(run)} {_are(run)} predicted to "
            f"{percent(error)}: a part of the log does not fit the rest, and the model may be bent to it.{before}",
            "Look at the residual over time, and leave the part out with --from and --to.",
        )
    if not np.isfinite(error) or (description is not None and error >= description):
        if not error <= POOR:
            level: Level = "error"
        else:  # a description that is right already cannot be beaten
            level = "warning" if description is not None and error > AS_GOOD * description else "note"
        return Finding(
            level, f"Unseen {_what(run)} {_are(run)} predicted no better than by the description: {percent(error)}.{before}"
        )
    graded = None if joints else _size(error, f"Unseen {_what(run)} {_are(run)} predicted to {percent(error)}", before)
    if graded is not None:
        return graded
    if error > 2.5 * own + 0.01:
        return Finding(
            "warning",
            f"Unseen {_what(run)} {_are(run)} predicted to {percent(error)}, but what it was identified on to {percent(own)}.{before}",
            "A richer motion or a method with a prior would close the gap.",
        )
    raw = run.validation.relative_error_raw
    noise = "" if raw is None else f", {percent(raw)} of the raw signal"
    return Finding("good", f"Unseen {_what(run)} {_are(run)} predicted to {percent(error)}{noise}.{before}")


def _size(error: float, told: str, before: str) -> Finding | None:
    """What an error of this size means; None for a small one."""
    if error > USELESS or not np.isfinite(error):
        return Finding(
            "error",
            f"{told}: the model explains little of the torque.{before}",
            "Look at the data check and at the residual: units, signs, clocks, a load or a contact.",
        )
    if error > POOR:
        return Finding(
            "warning",
            f"{told}, poor for a rigid robot.{before}",
            "Look at the residual over velocity for friction that the model lacks, and try --friction auto.",
        )
    return None


def _explanation(run: IdentificationResult, before: str) -> Finding:
    """Without unseen data: how well the data identified on are explained, and that this is less than a prediction."""
    own = _own_error(run)
    if run.from_coefficients:
        return Finding(
            "warning",
            f"Retrieved from {run.estimate.n_rows} given coefficients; no log shows how well it predicts torque.",
            "Give a log to know: dynid validate RUN LOG --cutoff-hz F.",
        )
    if run.filter is None:
        return Finding("note", f"The inertia matrices and gravity of the table are explained to {percent(own)}.")
    bad = _size(own, f"Even what it was identified on is explained to {percent(own)} only", before)
    if bad is not None:
        return bad
    return Finding(
        "warning",
        f"Not validated on unseen data; identified on data it explains to {percent(own)}.{before}",
        "Give --validate LOG or --split 0.65 to know how well it predicts.",
    )


def _determined(run: IdentificationResult) -> Finding:
    found = run.estimate
    vague = int(np.count_nonzero(found.seen & (found.sigma_percent > 100.0)))
    beyond = f"; {vague} of them have an uncertainty larger than their value" if vague else ""
    if run.from_coefficients:
        text = f"{found.rank} of {found.base.n_base} base parameters are fixed by the coefficients{beyond}."
        return Finding("good" if found.rank == found.base.n_base else "note", text)
    # a prior can hold a value although the rank is full: what the warnings call not known is not counted here either
    determined = min(found.rank, int(np.count_nonzero(found.seen)))
    text = f"{determined} of {found.base.n_base} base parameters are determined by the data{beyond}."
    if found.rank < found.base.n_base:
        return Finding(
            "warning", text, "The others keep the description's values: a motion that excites them would determine them."
        )
    return Finding("good" if determined == found.base.n_base else "note", text)


def _consistency(run: IdentificationResult) -> Finding:
    broken = run.consistency.inconsistent
    if not broken:
        return Finding("good", "Every link is physically consistent: simulators will accept it.")
    shown = ", ".join(broken[:4]) + (" and others" if len(broken) > 4 else "")
    infeasible = run.feasibility is not None and run.feasibility.decision == "infeasible"
    proven = " It is proven that no consistent links have these base values." if infeasible else ""
    return Finding(
        "warning",
        f"{len(broken)} link{'s have' if len(broken) > 1 else ' has'} parameters that no physical body could have: {shown}."
        + proven,
        "Torque is predicted all the same; a simulator needs a method that keeps bodies physical, or `dynid repair`.",
    )


def _friction(run: IdentificationResult) -> list[Finding]:
    """Joints that their own friction would drive; nothing where there is no friction."""
    robot = run.robot
    reach = FrictionReach.of(robot, (*run.samples, *run.unseen))
    if not len(passivity_of(robot, reach)):
        return []
    driven = driving_joints(robot, run.estimate.standard, reach)
    if not driven:
        return [Finding("good", "Friction takes energy from every joint at every speed of the robot.")]
    kinds = {joint.name: joint.kind for joint in robot.moving_joints}
    told = ", ".join(
        f"{one.joint} with {-one.torque:.3g} {'N' if kinds.get(one.joint) == 'prismatic' else 'N m'} at {one.speed:.3g} "
        f"{'m/s' if kinds.get(one.joint) == 'prismatic' else 'rad/s'}"
        for one in driven
    )
    whom = "joints instead of braking them" if len(driven) > 1 else "a joint instead of braking it"
    advice = "A simulation would gain energy there; --method sdp keeps friction passive."
    return [Finding("warning", f"Friction would drive {whom}: {told}.", advice)]


def _replayed(run: IdentificationResult) -> tuple[Replay | None, str]:
    """The measured torque on the identified model, or why it cannot be simulated."""
    judged = run.unseen or run.samples
    if not judged or judged[0].torque is None or not run.consistency.feasible or run.rows.kind == FLOATING:
        return None, ""
    try:
        return replay(
            run.model, judged[0], most_windows=windows_for(run.model)
        ), ""  # torque as the robot had it, in no band
    except Exception as error:  # whatever a simulation stumbles over, the model was identified
        return None, reason_of(error)


def _replay_reason(run: IdentificationResult, failure: str) -> Finding:
    """How far the simulated model strays from the measured motion, joint by joint."""
    found = run.replay
    if found is None:
        return Finding("note", f"The motion could not be replayed: {failure}.")
    moved = np.sqrt(((found.measured[:, -1] - found.measured[:, 0]) ** 2).mean(axis=0))
    kinds = {joint.name: joint.kind for joint in run.robot.moving_joints}
    far = [
        f"{name} by {drift_in_words(drift, kinds.get(name) == 'prismatic')} of {drift_in_words(way, kinds.get(name) == 'prismatic')}"
        for name, drift, way in zip(found.joint_names, found.position_drift, moved, strict=True)
        if not drift <= DRIFT_SHARE * way and way > 0.0
    ]
    window = f"{1e3 * found.window_s:.0f} ms"
    if not far:
        largest = float(np.max(found.position_drift / np.where(moved > 0.0, moved, np.inf), initial=0.0))
        return Finding(
            "good",
            f"Simulated with the measured torque, joints drift by at most {percent(largest)} of their motion in {window}.",
        )
    other = ", or try --method output-error, which fits the simulated motion" if run.judged_error > ROWS_FAIL else ""
    return Finding(
        "warning",
        f"Simulated with the measured torque, joints drift from their motion in {window}: {', '.join(far)}.",
        f"Their inertia is known too badly, or their friction is larger than what moves them. Excite them more{other}.",
    )


def drift_in_words(value: float, prismatic: bool) -> str:
    """An angle in degrees or a length in millimetres."""
    return f"{1e3 * value:.3g} mm" if prismatic else f"{np.rad2deg(value):.3g} degrees"
