"""Processes killed while they write a run: ``python tests/fuzz/kills.py --kills 200 --pairs 50``.

Identify, export and report are each killed at random moments of their writing, and before every single change of a name. After each kill
the folder must be the old run or the new one, whole, by a check of its own: every file has the hash that ``run.json`` states, no file is
left over, and the numbers are those of one run. ``store add`` is killed alike while it makes a store and while it adds to one: the store
must be absent or readable, with every addition that was reported, and the killed addition must then be possible. ``watch`` is killed
while it writes checkpoints: whatever is left resumes to the answer of a watch that was never killed. ``fleet`` must leave its old page or
its new one. Then pairs of processes write one folder at the same time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import dynid
from dynid import folders
from dynid.pipeline.export import export_models, write_result
from dynid.pipeline.report import report_result
from fuzz.targets import _identified


def whole(folder: Path) -> str:
    """Which run the folder holds: a hash over all its content; refuses what does not fit together."""
    record = json.loads((folder / "run.json").read_bytes())
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {"run.json"}
    assert found == set(record["files"]), found ^ set(record["files"])
    for name, digest in record["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name
    return str(record["seal"])


def others() -> tuple[dynid.IdentificationResult, dynid.IdentificationResult]:
    """Two runs with other numbers."""
    first = _identified()
    second = replace(first, estimate=replace(first.estimate, base_values=1.01 * first.estimate.base_values), seconds=99.0)
    return first, second


def verbs(folder: Path) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """What makes the old content, and the writing that is killed."""
    first, second = others()

    def report() -> None:
        run = dynid.load_result(folder)
        report_result(replace(run, notes=("a later report",)), folder / "report.html")

    return {
        "identify": (
            lambda: write_result(first, folder, formats=["json", "urdf"]),
            lambda: write_result(second, folder, formats=["urdf", "mjcf"]),
        ),
        "export": (
            lambda: write_result(first, folder, formats=["json"]),
            lambda: export_models(dynid.load_result(folder), folder, ["urdf", "mjcf", "json"]),
        ),
        "report": (lambda: write_result(first, folder, formats=["json"]), report),
    }


def in_child(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except dynid.DynidError:
            code = 2
        finally:
            os._exit(code)
    return child


def killed_before(number: int, work: Callable[[], object]) -> Callable[[], object]:
    """The work, in a process that ends before the change of a name with this number."""
    count = 0

    def stepped(call: Callable[..., object]) -> Callable[..., object]:
        def step(*given: object, **more: object) -> object:
            nonlocal count
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            return call(*given, **more)

        return step

    def run() -> object:
        Path.replace = stepped(Path.replace)  # type: ignore[method-assign, assignment]
        folders._exchange = stepped(folders._exchange)  # type: ignore[assignment]
        return work()

    return run


def kill_all(
    kills: int, seed: int = 0, verb_names: tuple[str, ...] = ("identify", "export", "report")
) -> dict[str, Counter[str]]:
    """Kills of every verb; the outcome of each."""
    rng, outcomes = random.Random(seed), {}
    with tempfile.TemporaryDirectory(prefix="kills_") as place:
        folder, saved = Path(place) / "run", Path(place) / "saved"
        for verb, (before, work) in verbs(folder).items():
            if verb not in verb_names:
                continue
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(saved, ignore_errors=True)
            before()
            shutil.copytree(folder, saved)
            old, found = whole(folder), Counter[str]()
            work()  # so that children need not load anything
            restore(saved, folder)
            begun = time.monotonic()
            assert os.waitpid(in_child(work), 0)[1] == 0, verb
            longest = time.monotonic() - begun

            def judge(found: Counter[str] = found, old: str = old) -> None:
                found["old" if whole(folder) == old else "new"] += 1
                dynid.load_result(folder)
                left = [path.name for path in Path(place).iterdir() if path.name not in ("run", "saved")]
                for name in left:  # the next writer clears these
                    assert name.startswith(".run."), name

            number, status = 0, 1
            while status != 0:
                restore(saved, folder)
                status = os.waitpid(in_child(killed_before(number, work)), 0)[1]
                judge()
                number += 1
            found["names changed"] = number - 1
            for _ in range(kills):  # at random moments
                restore(saved, folder)
                child = in_child(work)
                time.sleep(rng.uniform(0.0, 1.1 * longest))
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                judge()
            outcomes[verb] = found
    return outcomes


def kill_store(kills: int, seed: int = 0) -> Counter[str]:
    """Kills of an addition to a store: of the one that makes it, and of the next."""
    rng, found = random.Random(seed), Counter[str]()
    run = _identified()
    logs = [Path(run.recordings[0].source.path)]
    with tempfile.TemporaryDirectory(prefix="kills_store_") as place:
        folder, saved = Path(place) / "store", Path(place) / "saved"
        logs.append(Path(place) / "next.csv")
        rows = logs[0].read_text().splitlines(keepends=True)
        logs[1].write_text("".join(rows[: len(rows) // 2]))

        def add(number: int) -> None:
            day = f"2026-03-{number + 1:02d}"
            made = {"cutoff_hz": 10.0, "method": "wls", "friction": "linear"} if number == 0 else {}
            dynid.add_to_store(run.robot, logs[number], folder, robot_id="R1", day=day, **made)

        def begin(number: int) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            if number:
                shutil.copytree(saved, folder)

        def judge(number: int) -> None:
            days = len(list(dynid.open_store(folder).entries())) if folder.exists() else 0
            assert days in (number, number + 1), (number, days)
            found["old" if days == number else "new"] += 1
            add(number)  # what was killed can be said again, or is there
            assert len(list(dynid.open_store(folder).entries())) == number + 1
            assert not list((folder / "partial").iterdir())

        for number in (0, 1):
            begin(number)
            begun = time.monotonic()
            assert os.waitpid(in_child(lambda number=number: add(number)), 0)[1] == 0
            longest = time.monotonic() - begun
            step, status = 0, 1
            while status != 0:
                begin(number)
                status = os.waitpid(in_child(killed_before(step, lambda number=number: add(number))), 0)[1]
                judge(number)
                step += 1
            found["names changed"] += step - 1
            for _ in range((kills + number) // 2):
                begin(number)
                child = in_child(lambda number=number: add(number))
                time.sleep(rng.uniform(0.0, 1.1 * longest))
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                judge(number)
            if number == 0:
                shutil.copytree(folder, saved)
    return found


def kill_watch(kills: int, seed: int = 0) -> Counter[str]:
    """Kills of a watch that writes checkpoints; what is left goes on to the end of the log."""
    from dynid.apps.online.options import OnlineSettings
    from dynid.apps.online.session import Session
    from dynid.apps.online.sources import StandardInput
    from dynid.apps.online.watcher import Watcher
    from online_streams import stream

    given, rng, found = stream(6.0), random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="kills_watch_") as place:
        log, file = Path(place) / "log", Path(place) / "watch.npz"
        log.write_text("\n".join(given.json_lines()) + "\n")

        def watch(resume: bool) -> dict[str, object]:
            options = OnlineSettings(learn=1.0, every=0.1, checkpoint=str(file), checkpoint_every=0.1, resume=resume)
            with log.open("rb") as source:
                session = Session(Watcher(given.robot, settings=options), StandardInput(source), lambda _: None)
                last = list(session.run())[-1]
            return {name: last[name] for name in ("t", "values", "sigma", "rows")}

        expected = watch(resume=False)
        begun = time.monotonic()
        assert os.waitpid(in_child(lambda: watch(resume=False)), 0)[1] == 0
        longest = time.monotonic() - begun
        for _ in range(kills):
            file.unlink(missing_ok=True)
            child = in_child(lambda: watch(resume=False))
            time.sleep(rng.uniform(0.0, 1.1 * longest))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            found["resumed" if file.exists() else "begun anew"] += 1
            assert watch(resume=file.exists()) == expected
            left = sorted(path.name for path in Path(place).iterdir())
            assert left == ["log", "watch.npz"], left
    return found


def kill_fleet(kills: int, seed: int = 0) -> Counter[str]:
    """Kills of a fleet's page."""
    from dynid.apps.fleet.section import report_fleet
    from fuzz.kept_targets import make_store

    rng, found = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="kills_fleet_") as place:
        fleet, page = dynid.judge_fleet(make_store(Path(place))), Path(place) / "fleet.html"
        work = lambda: report_fleet(fleet, page)  # noqa: E731
        begun = time.monotonic()
        work()
        longest, new = time.monotonic() - begun, page.read_bytes()
        for _ in range(kills):
            page.write_bytes(b"old")
            child = in_child(work)
            time.sleep(rng.uniform(0.0, 1.5 * longest))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            assert page.read_bytes() in (b"old", new)
            found["old" if page.read_bytes() == b"old" else "new"] += 1
    return found


def restore(saved: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(saved, folder)


def race(pairs: int) -> Counter[str]:
    """Pairs of processes that write one folder at the same time."""
    from dynid.pipeline.export import reserved

    first, second = others()
    found = Counter[str]()
    with tempfile.TemporaryDirectory(prefix="race_") as place:
        folder = Path(place) / "run"

        def publish(run: dynid.IdentificationResult, gate: int) -> None:
            os.read(gate, 1)
            with reserved(folder):  # as the command holds it while it identifies
                time.sleep(0.2)
                write_result(run, folder, formats=["json"])

        for _ in range(pairs):
            gate, start = os.pipe()
            children = [in_child(lambda run=run, gate=gate: publish(run, gate)) for run in (first, second)]
            os.write(start, b"ab")
            codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
            os.close(gate)
            os.close(start)
            whole(folder)
            found[str(codes)] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of each verb")
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--verbs", default="identify,export,report,store,watch,fleet")
    given = parser.parse_args()
    for verb in given.verbs.split(","):
        own = {"store": kill_store, "watch": kill_watch, "fleet": kill_fleet}.get(verb)
        found = own(given.kills) if own else kill_all(given.kills, verb_names=(verb,))[verb]
        sys.stdout.write(f"{verb}: {dict(found)}; neither: 0\n")
        sys.stdout.flush()
    sys.stdout.write(f"pairs, by exit codes: {dict(race(given.pairs))}\n")


if __name__ == "__main__":
    main()
