"""How ``truth.py`` judges a run: the verdict that it deserves, its errors against the truth, its intervals, its words.

``deserved_grade`` is the rule. It knows the truth and nothing of what the program says; ``docs/truth.md`` argues for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

import dynid
from truth_cases import CLASSES, Case, Experiment
from truth_world import RATE_HZ, Motion, joint_inertia

GOOD, USABLE, HOPELESS = 0.05, 0.15, 0.50
"""Torque error of a joint against the truth up to which it is good, up to which usable, and from which the whole model is not."""
LEAST_TORQUE = 5.0
"""Times the noise of its torque that a joint's torque counts for at least: less cannot be graded relative to itself."""
LEAST_RANGE = 0.1
"""Share of its usual amplitude, speed and acceleration that a joint must be able to do, however little it moved in the log."""
BAND_HZ = 10.0
"""Band in which the torque of a fresh motion is compared: ten times what the motion asks for, and below the blows of a gear with play."""
STATES = 400
SPEEDS = np.array([-0.95, -0.7, -0.4, -0.15, 0.15, 0.4, 0.7, 0.95])
"""Where friction curves are compared, in parts of the largest speed of the log."""
CLEAR = 3.0
"""Unseen error over the noise floor from which the cause of it can be asked for."""
CAUSES = {
    "lugre": "reversal|presliding|friction",
    "backlash": "backlash|play|reversal",
    "cable": "cable|spring|counterbalance|follows its position",
    "stribeck_exp": "stribeck|friction",
    "ripple": "ripple|harmonic",
    "elastic": "elastic|complian|winds? up|flexib",
    "tilt": "--gravity|tilt|leans|level",
    "lag": "--torque-delay|lag|late|delay",
    "gain": "gain",
    "load": r"\bload\b|payload|carried",
}
"""Words of an advice, cause or option, that name an effect."""
FAULTS = {
    "dead": "dead|constant|no torque|never changes|hardly changes",
    "unit": "unit|scale|times",
    "permuted": "order|swap|permut|exchang|another joint",
    "sign": "sign|direction|negative",
    "one_way": "revers|one direction",
    "still": "standstill|stands still|no motion|not move|never move",
    "tiny": "small|excit|range|never moves faster",
    "slow": "slow|excit|range|never moves faster",
    "dwells": "standstill|stands still|dwell|stop",
}
"""Words of a finding, note or reason of the verdict that name a fault of the experiment or the log."""


def joint_errors(model: np.ndarray, truth: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Torque error of every joint over its own torque; ``noise`` is that of its measured torque."""
    error, size = (np.sqrt(np.mean(x**2, axis=0)) for x in (model - truth, truth))
    found = error / np.maximum(size, LEAST_TORQUE * noise)
    return np.where(np.isfinite(found), found, np.inf)


def deserved_grade(errors: Sequence[float]) -> str:
    """The verdict that a model deserves, from the errors of its joints against the truth inside the range alone."""
    found = np.asarray(errors)
    if (found <= GOOD).all():
        return "good"
    bad = found > USABLE
    return "do not use" if 2 * np.count_nonzero(bad) >= len(found) or (found > HOPELESS).any() else "usable"


def states(experiment: Experiment, outside: bool, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random states inside the range of the log's motion, both directions, or in that of the whole robot at twice its usual speed."""
    world, motion = experiment.world, experiment.motion
    hasty = world.speed**2 / world.amplitude
    if outside:
        low, high = (np.array([getattr(body, side) for body in world.arm.bodies]) for side in ("low", "high"))
        low, high = np.maximum(low, world.centre - np.pi), np.minimum(high, world.centre + np.pi)
        v, a = 2.0 * world.speed, 2.0 * hasty
    else:
        middle = 0.5 * (motion.q.max(axis=0) + motion.q.min(axis=0))
        half = np.maximum(0.5 * np.ptp(motion.q, axis=0), LEAST_RANGE * world.amplitude)
        low, high = middle - half, middle + half
        v = np.maximum(np.abs(motion.v).max(axis=0), LEAST_RANGE * world.speed)
        a = np.maximum(np.quantile(np.abs(motion.a), 0.99, axis=0), LEAST_RANGE * hasty)
    shape = (STATES, world.arm.n)
    return rng.uniform(low, high, shape), rng.uniform(-v, v, shape), rng.uniform(-a, a, shape)


def against_truth(experiment: Experiment, fresh: Motion, run: Any) -> dict[str, list[float]]:
    """Torque errors of every joint: inside the range of the log (random states or a fresh motion, the worse), and outside."""
    rng, errors = np.random.default_rng(experiment.case.seed + 4), {}
    for name, outside in (("states", False), ("outside", True)):
        at = states(experiment, outside, rng)
        errors[name] = joint_errors(run.predict(*at), experiment.world.torque(*at), experiment.noise)
    # as a motion with its history, for models whose friction remembers the last reversal
    moved = dynid.Samples(time=fresh.time, position=fresh.q, velocity=fresh.v, acceleration=fresh.a, torque=fresh.tau)
    size = np.maximum(np.sqrt(np.mean(fresh.tau**2, axis=0)), LEAST_TORQUE * experiment.noise)
    errors["fresh"] = np.asarray(dynid.validate(run.model, run.model.parameters, [moved], BAND_HZ).rmse) / size
    errors["fresh"] = np.where(np.isfinite(errors["fresh"]), errors["fresh"], np.inf)
    errors["inside"] = np.maximum(errors["states"], errors["fresh"])
    return {name: found.tolist() for name, found in errors.items()}


def covered(experiment: Experiment, run: Any) -> dict[str, list[int]]:
    """How many 95 % intervals hold the truth, and how many there are: inertial base values, friction curves, rotor inertias."""
    world, base = experiment.world, run.estimate.base
    names, K = run.robot.parameters.names, np.asarray(base.K)
    body = [one.parameters for one in world.arm.bodies]
    truth, rubs = np.zeros(len(names)), np.array([name.startswith("f") for name in names])
    for at, name in enumerate(names):
        symbol, number = re.fullmatch(r"([A-Za-z]+)(\d+)", name).groups()  # type: ignore[union-attr]
        truth[at] = world.armature[int(number) - 1] if symbol == "Ia" else body[int(number) - 1].get(symbol, 0.0)
    rotor = np.array([name.startswith("Ia") for name in names])
    counts = {"inertial": [0, 0], "friction": [0, 0], "armature": [0, 0]}
    for row, (low, high), seen in zip(K, run.intervals, run.estimate.seen, strict=True):
        used = np.abs(row) > 1e-9
        if not seen or (used & rubs).any():
            continue
        kind = counts["armature" if not (used & ~rotor).any() else "inertial"]
        kind[0], kind[1] = kind[0] + int(low <= row @ truth <= high), kind[1] + 1
    v = SPEEDS[:, None] * np.abs(experiment.motion.v).max(axis=0)
    q = np.broadcast_to(world.centre, v.shape)
    Y = np.array(dynid.torque_regressor(run.robot, q, v, np.zeros_like(v), load=np.zeros_like(v)))
    Y[:, :, ~rubs] = 0.0
    Y = Y @ np.linalg.pinv(K)
    value = Y @ run.estimate.base_values
    half = 1.96 * np.sqrt(np.maximum(np.einsum("sjb,bc,sjc->sj", Y, run.covariance, Y), 0.0))
    counts["friction"] = [int(np.count_nonzero(np.abs(value - world.friction.sliding(v)) <= half)), value.size]
    return counts


def noise_floor(experiment: Experiment, band_hz: float) -> np.ndarray:
    """Torque of every joint, in the band of the run, that its sensors leave unknown: noise of torque, steps of encoders."""
    step = experiment.counts / np.sqrt(12.0) * (2.0 * np.pi) ** 2 * band_hz**2.5 * np.sqrt(2.0 / (5.0 * RATE_HZ))
    return np.sqrt(experiment.noise**2 * min(2.0 * band_hz / RATE_HZ, 1.0) + (joint_inertia(experiment.world) * step) ** 2)


def said(run: Any) -> list[str]:
    """Findings above a note, reasons of the verdict that are not praise, and notes."""
    faults = [f"{one.level}: {one.what} [{', '.join(one.where[1:])}]" for one in run.findings]
    return faults + [f"{one.level}: {one.what}" for one in run.verdict.reasons if one.level != "good"]


def identified(experiment: Experiment, fresh: Motion, run: Any) -> dict[str, Any]:
    """What one run gave, beside the truth."""
    errors = against_truth(experiment, fresh, run)
    floor = noise_floor(experiment, run.judged_hz)
    over = np.asarray(run.validation.total.rmse) / floor
    advice = [asdict(one) for one in run.advice]
    return {
        "given": run.verdict.grade,
        "sentence": run.verdict.sentence,
        "deserved": deserved_grade(errors["inside"]),
        **errors,
        "unseen": float(run.validation.relative_error),
        "unseen_joints": np.asarray(run.validation.total.relative_error_per_channel).tolist(),
        "over_floor": over.tolist(),
        "model": "" if run.friction_choice is None else run.friction_choice.model,
        "coverage": covered(experiment, run),
        "advice": advice,
        "advice_right": advice_right(experiment, advice),
        "said": said(run),
    }


def refused(case: Case, sentence: str) -> dict[str, Any]:
    """A refusal is a verdict: the right one on a bad experiment or log, the wrong one on a log that holds a model."""
    holds = case.healthy or case.family == "outside"
    record = {"given": "do not use", "deserved": "good" if holds else "do not use", "sentence": sentence, "said": [sentence]}
    return record | {"inside": [], "advice_right": False}


def advice_right(experiment: Experiment, advice: Sequence[dict[str, Any]]) -> bool:
    """Whether the first advice names the effect, on one of its joints; of a log without one: whether there is none."""
    kind = experiment.case.kind
    if kind not in CAUSES:
        return not advice
    if not advice:
        return False
    first = [one for one in advice if one["cause"] == advice[0]["cause"]]
    named = re.search(CAUSES[kind], f"{first[0]['cause']} {first[0]['option'] or ''}", re.IGNORECASE) is not None
    return named and (not experiment.joint_names or any(one["joint"] in experiment.joint_names for one in first))


def names_fault(record: dict[str, Any]) -> bool | None:
    """Whether the run's words name what is wrong with the experiment or the log, and the joint; None where nothing is."""
    if record["kind"] not in FAULTS:
        return None
    words = [text for text in record["said"] if "was chosen" not in text and "no link is kept" not in text]
    fits = [text for text in words if re.search(FAULTS[record["kind"]], text, re.IGNORECASE)]
    return any(name in text for text in fits for name in record["about"]) if record["about"] else bool(fits)


def figures(records: Sequence[dict[str, Any]]) -> dict[str, object]:
    """The keys that scripts rely on, and a few beside them; shares are None where there is nothing to count."""
    clear = [one for one in records if one["class"] == "outside" and max(one.get("over_floor", [0.0])) > CLEAR]
    healthy = [one for one in records if one["healthy"]]
    worst = [max(one["inside"], default=np.inf) for one in records]
    result: dict[str, object] = {
        "logs": len(records),
        "verdict_agreement": share(one["given"] == one["deserved"] for one in records),
        "false_good": sum(one["given"] == "good" and error > USABLE for one, error in zip(records, worst, strict=True)),
        "false_alarm": sum(one["given"] != "good" for one in healthy if one["deserved"] == "good"),
        "advice_right": share(one["advice_right"] for one in clear),
    }
    for group, chosen in (("", ("in family",)), ("_outside", ("outside",))):
        for kind in ("inertial", "friction", "armature"):
            counts = np.array(
                [one["coverage"][kind] for one in records if one["class"] in chosen and "coverage" in one]
            ).reshape(-1, 2)
            held, asked = counts.sum(axis=0).tolist()
            result[f"coverage_{kind}{group}"] = held / asked if asked else None
            result[f"intervals_{kind}{group}"] = asked
    result |= {
        "healthy_logs": len(healthy),
        "healthy_not_deserved_good": sum(one["deserved"] != "good" for one in healthy),
        "healthy_with_advice": sum(bool(one["advice"]) for one in healthy),
        "too_good": sum(rank(one["given"]) < rank(one["deserved"]) for one in records),
        "too_bad": sum(rank(one["given"]) > rank(one["deserved"]) for one in records),
        "clear_effects": len(clear),
        "fault_told": share(one["told"] for one in records if one["told"] is not None),
        "followed_worse": sum(
            bool(one.get("followed"))
            and ("refused" in one["followed"] or one["followed"]["after"] > 1.05 * one["followed"]["before"])
            for one in records
        ),
        "cpu_s": sum(one["cpu_s"] for one in records),
    }
    for family in CLASSES:
        own = [one for one in records if one["class"] == family]
        result[f"agreement_{family.replace(' ', '_')}"] = share(one["given"] == one["deserved"] for one in own)
    return result


def share(held: Iterable[bool]) -> float | None:
    """Part of the answers that are yes; None where there is none."""
    found = list(held)
    return sum(found) / len(found) if found else None


def rank(grade: str) -> int:
    """Of a grade, the best first."""
    return ("good", "usable", "do not use").index(grade)
