"""What the program says about logs whose truth is known: verdict, advice and intervals, on a simulator that shares no code with it.

108 logs of twelve robots (``truth_arms.py``), simulated by ``truth_world.py``, in four classes (``truth_cases.py``): friction in the
family of dynid's models, effects outside of it, bad experiments, bad logs. Each is written as URDF and CSV and identified by what
``dynid identify ROBOT LOG --split 0.65`` does without further options. ``docs/truth.md`` says what is deserved, and why.

    python benchmarks/truth.py --half report --folder /tmp/truth --jobs 2

Thresholds are set on ``--half tune`` and figures quoted on ``--half report``. With ``--folder`` what was simulated is kept, and what was
identified is kept for as long as the source stays the same, so a run that was stopped goes on where it was. ``--follow`` also does what
the first advice says and measures it.
"""

from __future__ import annotations

import measure

import argparse
import hashlib
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import dynid
from truth_cases import CLASSES, HALVES, MOTIONS, Case, Experiment, carry_out, chosen_cases, write_files
from truth_judge import figures, identified, names_fault, rank, refused
from truth_world import Motion

HERE = Path(__file__).resolve().parent
GENERATOR = ("truth_arms.py", "truth_cases.py", "truth_world.py")
"""What logs are made by: kept ones are those of these files as they stand."""


def judged(folder: Path, source: str, follow: bool, case: Case) -> dict[str, Any]:
    """Simulate, identify and judge one log; what is kept is not done again."""
    place = folder / f"identified-{source}" / f"{case.name}{'-followed' if follow else ''}.json"
    if place.exists():
        return json.loads(place.read_text())
    experiment, fresh = simulated(folder, case)
    begun = time.process_time()
    place.parent.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {"log": case.name, "robot": case.robot, "class": case.family, "kind": case.kind}
    record |= {"healthy": case.healthy, "about": list(experiment.joint_names), "advice": [], "said": []}
    with tempfile.TemporaryDirectory() as held:
        robot, log = write_files(experiment, Path(held))
        try:
            run = dynid.identify(robot, log, dynid.Settings(split=0.65))
        except dynid.DynidError as error:
            record |= refused(case, str(error))
        else:
            record |= identified(experiment, fresh, run)
            if follow:
                record["followed"] = followed(robot, log, record)
    record["told"] = names_fault(record)
    record["cpu_s"] = time.process_time() - begun
    place.write_text(json.dumps(record))
    return record


def followed(robot: Path, log: Path, record: dict[str, Any]) -> dict[str, Any] | None:
    """Unseen error after the option of the first advice was added on the command line; None where no advice has one."""
    option = next((one["option"] for one in record["advice"] if one["option"]), None)
    if option is None:
        return None
    command = [sys.executable, "-m", "dynid", "identify", str(robot), str(log), "--split", "0.65", "--json"]
    done = subprocess.run([*command, "-o", str(log.with_suffix("")), *shlex.split(option)], capture_output=True, text=True)
    if done.returncode:
        return {"option": option, "refused": done.stderr.strip()[-300:]}
    return {"option": option, "before": record["unseen"], "after": json.loads(done.stdout)["relative_error"]["validation"]}


def simulated(folder: Path, case: Case) -> tuple[Experiment, Motion]:
    """The experiment of a case and a fresh motion of the same robot, from the folder where they are kept."""
    place = folder / f"simulated-{digest(HERE / name for name in GENERATOR)}" / f"{case.name}.npz"
    fields = Motion.__dataclass_fields__
    if place.exists():
        with np.load(place) as kept:
            motion, fresh = (Motion(*(kept[f"{part}_{name}"] for name in fields)) for part in ("log", "fresh"))
        return carry_out(case, known=motion), fresh
    experiment = carry_out(case)
    fresh = experiment.fresh()
    place.parent.mkdir(parents=True, exist_ok=True)
    parts = {"log": experiment.motion, "fresh": fresh}
    np.savez(place, **{f"{part}_{name}": getattr(motion, name) for part, motion in parts.items() for name in fields})
    return experiment, fresh


def digest(paths: Iterable[Path]) -> str:
    """A short hash of files."""
    whole = hashlib.sha256()
    for path in sorted(paths):
        whole.update(path.read_bytes())
    return whole.hexdigest()[:10]


def line(one: dict[str, Any]) -> str:
    """A line of the table."""
    inside, outside = (f"{100.0 * max(one.get(name) or [np.nan]):.3g}" for name in ("inside", "outside"))
    over = f"{max(one.get('over_floor') or [np.nan]):.3g}"
    higher = rank(one["deserved"]) - rank(one["given"])
    mark = " TOO GOOD" if higher > 0 else " too bad" if higher < 0 else ""
    told = one["advice"][0]["option"] or one["advice"][0]["cause"] if one["advice"] else ""
    right = ("yes" if one.get("advice_right") else "no") if one["told"] is None else ("yes" if one["told"] else "no")
    return f"{one['log']:<30} {over:>6} {inside:>8} {outside:>8}  {one['given']:<10} {one['deserved']:<10}{mark:<9} {right:<4} {told[:70]}"


def markdown(records: Iterable[dict[str, Any]]) -> str:
    """The table of ``docs/truth.md``."""
    lines = [
        "| log | about | unseen / floor | inside, % | outside, % | given | deserved | named | first advice |",
        "|---|---|---:|---:|---:|---|---|---|---|",
    ]
    for one in records:
        worst = [max(one.get(name) or [np.nan]) for name in ("over_floor", "inside", "outside")]
        over, inside, outside = (
            "–" if np.isnan(x) else f"{share * x:.3g}" for x, share in zip(worst, (1.0, 100.0, 100.0), strict=True)
        )
        given = one["given"] if one["given"] == one["deserved"] else f"**{one['given']}**"
        named = one.get("advice_right") if one["told"] is None else one["told"]
        advice = (one["advice"][0]["option"] or one["advice"][0]["cause"].partition(":")[0]) if one["advice"] else ""
        about = ", ".join(one["about"])
        lines.append(
            f"| {one['log']} | {about} | {over} | {inside} | {outside} | {given} | {one['deserved']} "
            f"| {'yes' if named else 'no'} | {advice} |"
        )
    return "\n".join(lines)


def arguments_of() -> argparse.Namespace:
    """The options of this benchmark."""
    parser = measure.parser(__doc__)
    parser.add_argument(
        "--half", choices=tuple(HALVES), default="all", help="robots: to set thresholds on, to quote, or all"
    )
    parser.add_argument("--only", help=f"logs of one class ({', '.join(CLASSES)}) or kind, such as {MOTIONS[0]}")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--folder", type=Path, help="keep what was simulated and identified here and use what is there")
    parser.add_argument("--follow", action="store_true", help="also do what the first advice says")
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")
    return parser.parse_args()


def main() -> None:
    """Judge all logs and print."""
    arguments = arguments_of()
    cases = list(chosen_cases(arguments.half, arguments.only, arguments.smoke))
    if not cases:
        sys.exit(f"no logs of '{arguments.only}' on the robots of '{arguments.half}'")
    source = digest([*Path(dynid.__file__).parent.rglob("*.py"), *(HERE / name for name in (*GENERATOR, "truth_judge.py"))])
    with tempfile.TemporaryDirectory() as place:
        work = partial(judged, arguments.folder or Path(place), source, arguments.follow)
        records = []
        with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
            for one in pool.map(work, cases):
                records.append(one)
                print(line(one), file=sys.stderr, flush=True)
    if arguments.markdown:
        print(markdown(records))
    elif not arguments.json:
        print(f"{'log':<30} {'/floor':>6} {'inside %':>8} {'outside':>8}  {'given':<10} {'deserved':<19} told advice")
        print("\n".join(line(one) for one in records))
    result = figures(records)
    measure.print_result(result | ({"table": records} if arguments.json else {}), arguments.json)


if __name__ == "__main__":
    main()
