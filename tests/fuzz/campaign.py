"""Mutated files given to every reader: ``python tests/fuzz/campaign.py --cases 1000000``.

A case is a reader, a seed and a number: the same three give the same file. Anything but an answer or a :class:`dynid.DynidError` is a
finding, and so are a reading of more than ten seconds, more than a gigabyte, a file left in the working folder, and a process that dies.
Cases run one after another in a process of their reader, which is replaced when it dies; findings are written beside each other as files
that repeat them. Readers share the cases by their speed, measured first: a slow one gets fewer. ``done.json`` holds the seed, the share and
the cases done of every reader; ``--resume`` goes on from there, on the same code only. The code is what reads files and all that it
imports (:func:`code_files`) with the makers of the cases: its hash is kept in ``done.json`` too, and a commit elsewhere leaves it as it is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import dynid
from dynid.engine import Threads
from fuzz.targets import TARGETS, Target, no_reseal

LONGEST_S = 10.0
MOST_BYTES = 2**30
_STOP_S = 40
"""After this the process is given up: a loop in a compiled library answers no signal."""


class Hang(BaseException):
    """A reading took longer than it may."""


@dataclass(frozen=True)
class Finding:
    """What went wrong: a kind, and the place that tells one cause from another."""

    kind: str
    signature: str


class Seeds:
    """The seed of one reader in a folder, put back before each case."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target = target
        self.folder = folder / target.name
        self.folder.mkdir(parents=True)
        self.path = target.make(self.folder)
        self.clean = {path: path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()}
        self.mutable = [path for path in self.clean if self._mutator(path) is not None]
        self._dirty: set[Path] = set(self.clean) if target.reseal is not no_reseal else set()
        self._always = set(self._dirty)
        assert self.mutable, target.name

    def _mutator(self, path: Path):  # type: ignore[no-untyped-def]
        return next((mutate for end, mutate in self.target.mutate.items() if path.name.endswith(end)), None)

    def prepare(self, rng: random.Random) -> dict[str, bytes]:
        """The mutated files of the case, written; what was changed, by name."""
        for path in self._dirty:
            path.write_bytes(self.clean[path])
        changed, self._dirty = {}, set(self._always)
        for path in rng.sample(self.mutable, 1 if rng.random() < 0.9 else min(2, len(self.mutable))):
            content = self._mutator(path)(rng, self.clean[path])
            path.write_bytes(content)
            self._dirty.add(path)
            changed[str(path.relative_to(self.folder))] = content
        self.target.reseal(self.folder)
        return changed


def rng_of(target: str, seed: int, case: int) -> random.Random:
    """The random state of a case."""
    return random.Random(f"{target}/{seed}/{case}")


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def try_case(seeds: Seeds, seed: int, case: int) -> tuple[Finding | None, dict[str, bytes]]:
    """Read one mutated file."""
    changed = seeds.prepare(rng_of(seeds.target.name, seed, case))
    begun = time.process_time()
    try:
        with warnings.catch_warnings(), limited(4 * LONGEST_S):
            warnings.simplefilter("ignore")
            seeds.target.read(seeds.path)
    except dynid.DynidError as error:
        if not str(error).strip() or len(str(error)) > 20_000:
            return Finding("sentence", f"{type(error).__name__} of {len(str(error))} characters"), changed
    except Hang:
        return Finding("hang", "over the time limit"), changed
    except Exception as error:
        place = next(
            (f"{Path(frame.filename).name}:{frame.name}" for frame in reversed(traceback.extract_tb(error.__traceback__))
             if "dynid" in frame.filename and "tests" not in frame.filename), "outside",
        )  # fmt: skip
        return Finding("exception", f"{type(error).__name__} in {place}: {str(error)[:80]}"), changed
    if time.process_time() - begun > LONGEST_S:
        return Finding("hang", f"{time.process_time() - begun:.0f} s"), changed
    if Path("MUJOCO_LOG.TXT").exists():
        Path("MUJOCO_LOG.TXT").unlink()
        return Finding("file", "MUJOCO_LOG.TXT in the working folder"), changed
    return None, changed


def peak_bytes() -> int:
    """Largest memory of this process since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    return 0


def work(name: str, seed: int, first: int, last: int, log: Path) -> None:
    """Cases ``first`` to ``last`` of one reader; progress and findings go to ``log``, a line each."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, limit))
    # Pieces of arithmetic in a compiled library cannot be interrupted: the process ends by itself.
    import faulthandler

    with tempfile.TemporaryDirectory(prefix="fuzz_") as place, log.open("a", buffering=1) as out:
        os.chdir(place)
        seeds = Seeds(TARGETS[name], Path(place) / "seeds")
        assert seeds.target.read(seeds.path) is not Ellipsis  # the seed itself is read
        normal, started = peak_bytes(), sum(os.times()[:4])
        for case in range(first, last):
            if case % 20 == 0 or case == first:
                out.write(json.dumps({"at": case}) + "\n")
            faulthandler.dump_traceback_later(_STOP_S + 4 * LONGEST_S, exit=True)
            finding, changed = try_case(seeds, seed, case)
            if finding is None and peak_bytes() > normal + MOST_BYTES:
                finding = Finding("memory", f"{peak_bytes() / 2**30:.1f} GiB")
            if finding is not None:
                out.write(json.dumps({"case": case, "kind": finding.kind, "signature": finding.signature}) + "\n")
                keep = log.with_name("inputs") / f"{name}_{seed}_{case}"
                for file, content in changed.items():
                    (keep / file).parent.mkdir(parents=True, exist_ok=True)
                    (keep / file).write_bytes(content)
            if finding is not None and finding.kind == "memory":
                Path("/proc/self/clear_refs").write_text("5")
        faulthandler.cancel_dump_traceback_later()
        out.write(json.dumps({"done": last, "cpu": sum(os.times()[:4]) - started}) + "\n")


def run_block(name: str, seed: int, first: int, last: int, folder: Path) -> list[dict[str, object]]:
    """A block of cases in processes of their own; one that dies is a finding, and the next goes on behind it."""
    found: list[dict[str, object]] = []
    while first < last:
        log = folder / f"{name}.jsonl"
        log.unlink(missing_ok=True)
        command = [sys.executable, __file__, "--worker", name, "--seed", str(seed), "--from", str(first), "--to", str(last)]
        ended = subprocess.run([*command, "--out", str(log)], capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []
        found += [line | {"reader": name} for line in lines if "case" in line]
        if any("done" in line for line in lines):
            break
        reached = max([line["at"] for line in lines if "at" in line], default=None)
        if reached is None:
            raise SystemExit(f"{name} does not start:\n{ended.stderr[-3000:]}")
        found.append(
            {"reader": name, "case": reached, "kind": "died", "signature": f"exit {ended.returncode}: {ended.stderr[-300:]}"}
        )
        first = reached + 20
    return found


READING = (
    "io/",
    "model/",
    "signals/",
    "dynamics/",
    "estimation/constraints/",
    "excitation/motion_files",
    "apps/online/",
    "apps/fleet/",
)
"""Rooms of the package that are fuzzed beside its foundation and the readers of the pipeline, by the beginning of a path."""
PIPELINE = (
    "base_check", "coefficients", "data", "folder", "manifest", "model_files", "option_groups", "options", "result",
    "robot_setup", "run_file",
)  # fmt: skip


def code_files() -> list[Path]:
    """The sources that read files, and those that make the cases."""
    package, here = Path(dynid.__file__).parent, Path(__file__).parent
    starts = (*READING, *(f"pipeline/{name}.py" for name in PIPELINE))
    own = [path for path in sorted(package.rglob("*.py")) if path.relative_to(package).as_posix().startswith(starts)]
    makers = [here / name for name in ("campaign.py", "kept_targets.py", "mutate.py", "targets.py")]
    return [*sorted(package.glob("*.py")), *own, *makers]


def code_hash() -> str:
    """Of the sources that are fuzzed."""
    whole = hashlib.sha256()
    for path in code_files():
        whole.update(f"{path.name} ".encode() + path.read_bytes())
    return whole.hexdigest()


def shares(cases: int, names: list[str], seed: int, folder: Path) -> dict[str, int]:
    """Cases of every reader: about equal time for each, none more than a fifteenth of all, none fewer than a thousandth."""
    speed = {}
    for name in names:
        log = folder / f"{name}.jsonl"
        command = [sys.executable, __file__, "--worker", name, "--seed", str(seed - 1), "--from", "0", "--to", "20"]
        subprocess.run([*command, "--out", str(log)], capture_output=True, check=False)
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []
        cpu_s = max([line["cpu"] for line in lines if "cpu" in line], default=20.0)
        speed[name] = 20 / max(cpu_s, 1e-3)  # a clock of coarse steps may show no time at all
        log.unlink(missing_ok=True)
    least, most = max(1, cases // 1000), max(1, cases // 15)
    low, high = 0.0, 1e6  # seconds of each reader, so that all cases are used
    for _ in range(60):
        seconds = 0.5 * (low + high)
        total = sum(min(max(int(seconds * one), least), most) for one in speed.values())
        low, high = (seconds, high) if total < cases else (low, seconds)
    return {name: min(max(int(high * one), least), most) for name, one in speed.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--readers", default=",".join(TARGETS))
    parser.add_argument("--rounds", type=int, default=20, help="every reader takes its turn so many times")
    parser.add_argument("--resume", action="store_true", help="go on with the campaign in --out")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no turn after this")
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--processes", type=int, default=1, help="readers that take their turn at the same time")
    parser.add_argument("--worker", default="")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int, default=0)
    given = parser.parse_args()
    if given.worker:
        work(given.worker, given.seed, given.first, given.last, given.out)
        return
    names = [name.strip() for name in given.readers.split(",")]
    file = given.out / "done.json"
    if given.resume:
        state = json.loads(file.read_text())
        if state["code"] != code_hash():
            raise SystemExit("the code has changed since: start anew, cases of two versions do not add up")
    else:
        shutil.rmtree(given.out, ignore_errors=True)
        given.out.mkdir(parents=True)
        wanted = shares(given.cases, names, given.seed, given.out)
        state = {"code": code_hash(), "seed": given.seed, "wanted": wanted, "cases": {}, "findings": {}}
    done, kinds, wanted = Counter[str](state["cases"]), Counter[str](state["findings"]), state["wanted"]
    begun = time.monotonic()
    findings = (given.out / "findings.jsonl").open("a", buffering=1)

    def turn(name: str) -> tuple[str, int, list[dict[str, object]]]:
        first, last = done[name], min(wanted[name], done[name] - (-wanted[name] // given.rounds))
        if first == last or time.monotonic() - begun > 60.0 * given.minutes:
            return name, 0, []
        return name, last - first, run_block(name, state["seed"], first, last, given.out)

    for _ in range(given.rounds):
        for name, cases, found in Threads(given.processes).map(turn, wanted):
            if not cases:
                continue
            done[name] += cases
            for one in found:
                kinds[f"{name} {one['kind']} {one['signature']}"] += 1
                findings.write(json.dumps(one) + "\n")
            sys.stdout.write(f"{done.total()} cases, {kinds.total()} findings, {time.monotonic() - begun:.0f} s ({name})\n")
            sys.stdout.flush()
            file.write_text(json.dumps(state | {"total": done.total(), "cases": done, "findings": kinds}, indent=1))
    for name in names:
        sys.stdout.write(f"{done[name]:8d}  {name}\n")
    for signature, count in kinds.most_common():
        sys.stdout.write(f"{count:6d}  {signature}\n")
    sys.exit(1 if kinds else 0)


if __name__ == "__main__":
    main()
