"""What one ``identify`` passes through: modules, functions, deepest stack, and how often the costly steps run.

    python benchmarks/trace_path.py [--json] [--smoke] [VERB WORD...]

Runs the command line under ``sys.setprofile`` in a process of its own and counts the frames of the package alone, without
imports and generated code. Without a verb it identifies the Panda (Gaz and others 2019) from its log, or where that is absent
the demonstration arm from a simulated one. ``benchmarks/house.py --path`` shows the same counts beside their goals.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType

REPOSITORY = Path(__file__).resolve().parent.parent
TRACED = "--traced"
STEPS: dict[str, tuple[str, ...]] = {
    "process": ("process",),
    "reduce_to_base": ("reduce_to_base",),
    "row_passes": ("factorise", "factorise_whole"),
    "inverse_dynamics": ("inverse_dynamics",),
}
"""Steps of ``identify`` that cost time, and the functions that take them, wherever they live; of a row pass any of them."""
DEEP_READER = "parquet_pages"
"""A reader of the package whose stack is not that of the path."""


class Trace:
    """What a command passes through: functions of the package, without imports and generated code."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str, int]] = set()
        self.calls: Counter[str] = Counter()
        self.made: Counter[str] = Counter()
        self.depth = self.deepest = self.importing = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith("<frozen importlib"):
            self.importing += {"call": 1, "return": -1}.get(event, 0)
            return
        module = frame.f_globals.get("__name__", "")
        if self.importing or event not in ("call", "return") or module.partition(".")[0] != "dynid":
            return
        if event == "return":
            self.depth = max(self.depth - 1, 0)
            return
        self.depth += 1
        if DEEP_READER not in module:
            self.deepest = max(self.deepest, self.depth)
        if code.co_name == "__init__" and code.co_filename == "<string>":
            self.made[type(frame.f_locals.get("self")).__name__] += 1
        elif not code.co_name.startswith("<"):
            self.functions.add((module, code.co_name, code.co_firstlineno))
            self.calls[code.co_name] += 1

    def counts(self) -> dict[str, int]:
        """The counts of the path."""
        steps = {name: sum(self.calls[one] for one in functions) for name, functions in STEPS.items()}
        found = {
            "path_modules": len({module for module, _, _ in self.functions}),
            "path_functions": len(self.functions),
            "path_depth": self.deepest,
            **{f"path_{name}": n for name, n in steps.items()},
            "path_robots_built": self.made["Robot"],
        }
        if missing := [name for name, n in found.items() if n == 0]:
            raise SystemExit(
                f"nothing was counted as {', '.join(missing)}: name the functions that do it in {Path(__file__).name}"
            )
        return found


def traced(words: list[str]) -> None:
    """Run the program with these words in this process and print the counts of its path."""
    import dynid.cli

    trace, sys.argv = Trace(), ["dynid", *words]
    stdout, sys.stdout = sys.stdout, sys.stderr
    sys.setprofile(trace)
    code: object = 0
    try:
        dynid.cli.main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.setprofile(None)
        sys.stdout = stdout
    if code:
        raise SystemExit(code)
    print(json.dumps(trace.counts()))


def path_counts(words: list[str] | None = None) -> dict[str, int]:
    """What a command passes through; without one, ``identify`` of the Panda's log or of a simulated one."""
    with tempfile.TemporaryDirectory() as folder:
        if not words:
            robot, log = panda() or simulated(Path(folder))
            words = ["identify", str(robot), str(log), "--split", "0.65", "-o", str(Path(folder) / "run"), "--quiet"]
        done = subprocess.run([sys.executable, __file__, TRACED, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"dynid {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def panda() -> tuple[Path, Path] | None:
    """Description and log of the Panda: below ``DYNID_SHARED_DATA``, otherwise in ``../shared/data`` beside the clone."""
    named = os.environ.get("DYNID_SHARED_DATA")
    root = (REPOSITORY.parent / "shared" / "data" if named is None else Path(named)) / "panda_gaz"
    found = root / "robot.toml", root / "exciting_traj_1.parquet"
    return found if all(path.exists() for path in found) else None


def simulated(folder: Path) -> tuple[Path, Path]:
    """Description and log of the demonstration arm, seven joints as the Panda."""
    import dynid

    robot = dynid.demo_robot()
    dynid.write_urdf(robot, folder / "arm.urdf")
    log = dynid.write_recording(dynid.demo_recording(robot, seconds=20.0, seed=0), folder / "log.parquet")
    return folder / "arm.urdf", Path(log)


def main() -> None:
    """Print the counts."""
    words = sys.argv[1:]
    if words[:1] == [TRACED]:
        traced(words[1:])
        return
    while words and words[0] in ("--json", "--smoke"):
        words = words[1:]
    print(json.dumps(path_counts(words)))


if __name__ == "__main__":
    main()
