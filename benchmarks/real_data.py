"""Prediction of unseen motion on real robots, each figure by ``dynid`` commands with default options.

- Panda (Gaz and others 2019): the first 65 % of the exciting log predict the last 35 %, error in a band of 5 Hz.
- UR10e (Mamedov and others 2020): one 12-harmonic run of 30 s predicts a point-to-point run and a 14-harmonic run of other days,
  in the authors' windows, with their drive gains, error in a band of 9.4 Hz (0.20 of Nyquist).
- LWR4+: log 2 predicts log 3, 5 Hz. UR10: the first 65 % of a ROS 2 bag predict the rest, 5 Hz.

Figures are ``||tau - tau_hat|| / ||tau||`` over all joints on the unseen part. The references, in the same metric: linear
friction; filtered signals instead of filtered rows (``--filter-on signals``), as papers do; no prior (``--prior none``); and without the
demand of physical consistency (``--method ols``).
"""

from __future__ import annotations

import measure

import csv
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

IDENTIFICATION = "20_02_10_30sec_12harm"
POINT_TO_POINT, FOURTEEN = "20_01_17_ptp_10_points", "20_02_19_14harm50sec"
UR10E_BAND_HZ = "9.4"
LINEAR, SIGNALS = ("--friction", "linear"), ("--filter-on", "signals", "--friction", "linear")
NO_PRIOR, FREE = ("--prior", "none"), ("--method", "ols")


@dataclass(frozen=True)
class Case:
    """A log to identify on and one to predict; ``keys`` name figures that scripts rely on."""

    what: str
    identify: tuple[str, ...]
    validate: tuple[str, ...] = ()
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()


def data_folder() -> Path:
    """``DYNID_SHARED_DATA`` or ``../shared/data`` beside the repository."""
    here = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("DYNID_SHARED_DATA", here.parent / "shared" / "data"))
    if not folder.is_dir():
        sys.exit(f"real_data needs the public recordings, which are not in {folder}; set DYNID_SHARED_DATA")
    return folder


def cases(folder: Path) -> Iterator[Case]:
    """Everything that is measured."""
    panda = folder / "panda_gaz"
    split = ("--split", "0.65", "--cutoff-hz", "5")
    yield Case(
        "Panda, last 35 %",
        (str(panda / "robot.toml"), str(panda / "exciting_traj_1.parquet"), *split),
        keys=(("panda_linear", LINEAR), ("panda_auto", ())),
    )
    yield from ur10e(folder / "ur10e_mamedov")
    lwr = folder / "lwr4"
    yield Case(
        "LWR4+, log 2 to log 3",
        (str(lwr / "robot.urdf"), str(lwr / "measurements_2.parquet"), "--validate", str(lwr / "measurements_3.parquet"),
         "--cutoff-hz", "5"),
    )  # fmt: skip
    robot = ur10_description()
    if robot is not None:
        yield Case("UR10, last 35 %", (str(robot), str(folder / "ur10" / "exciting.db3"), *split))


def ur10e(place: Path) -> Iterator[Case]:
    """One log identifies, two are predicted, each in the window that its authors used."""
    gains = json.loads((place / "parameters.json").read_text())["drive_gains_Nm_per_A"]["authors_estimate"]
    with (place / "index.csv").open() as file:
        index = {Path(row["file"]).stem: row for row in csv.DictReader(file)}

    def window(name: str) -> tuple[str, ...]:
        import pyarrow.parquet

        times = pyarrow.parquet.read_table(place / f"traj/{name}.parquet", columns=["t"]).column("t").to_pylist()
        first, last = int(index[name]["author_window_start"]), int(index[name]["author_window_stop"]) - 1
        return "--from", f"{times[first]:.4f}", "--to", f"{times[last]:.4f}"

    command = (
        str(place / "robot.urdf"), str(place / f"traj/{IDENTIFICATION}.parquet"),
        "--drive-gains", ",".join(map(str, gains)), *window(IDENTIFICATION), "--cutoff-hz", UR10E_BAND_HZ,
    )  # fmt: skip
    for what, name, keys in (
        ("UR10e, point to point", POINT_TO_POINT, (("ur10e_ptp_linear", LINEAR), ("ur10e_ptp_auto", ()))),
        ("UR10e, 14 harmonics", FOURTEEN, (("ur10e_14harm_auto", ()),)),
    ):
        yield Case(what, command, (str(place / f"traj/{name}.parquet"), *window(name)), keys)


def ur10_description() -> Path | None:
    """The URDF of the UR10 in the package example-robot-data, where that is installed."""
    found = importlib.util.find_spec("cmeel")
    roots = [Path(place) for place in ([] if found is None else found.submodule_search_locations or [])]
    prefixes = [root.parent / "cmeel.prefix" for root in roots] + [Path(sys.prefix)]
    files = [
        file
        for prefix in prefixes
        for file in prefix.glob("share/example-robot-data/robots/ur_description/urdf/ur10_robot.urdf")
    ]
    return files[0] if files else None


def dynid(*words: str) -> dict[str, object]:
    """What a command prints as JSON."""
    done = subprocess.run([sys.executable, "-m", "dynid", *words, "--json"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"dynid {' '.join(words)}\nended with {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, object] = json.loads(done.stdout)
    return found


def measured(case: Case, options: Sequence[str], folder: str) -> tuple[float, str, float]:
    """Unseen error, friction model and seconds of one way to identify."""
    started = time.perf_counter()
    run = dynid("identify", *case.identify, *options, "--export", "json", "-o", folder)
    error = run["relative_error"]["validation"]  # type: ignore[index]
    if case.validate:
        error = dynid("validate", folder, *case.validate)["relative_error"]
    chosen = run["friction_model"] or {}
    return float(error), str(chosen.get("model", "linear")), time.perf_counter() - started  # type: ignore[arg-type, union-attr]


def main() -> None:
    """Measure and print."""
    arguments = measure.parser(__doc__).parse_args()
    result: dict[str, object] = {}
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases(data_folder())):
            ways = dict(case.keys) if arguments.json or arguments.smoke else {}
            others = () if ways else ((), LINEAR, SIGNALS, NO_PRIOR, FREE)
            for options in (*ways.values(), *others):
                error, model, seconds = measured(case, options, f"{folder}/run{number}")
                lines.append((case.what, " ".join(options) or "default", model, error, seconds))
                result |= {key: error for key, own in case.keys if own == options}
            if arguments.smoke:
                break
    if arguments.json:
        measure.print_result(result, True)
        return
    print(f"{'predicted':<24} {'options':<28} {'friction':<22} {'error':>8} {'seconds':>8}")
    for what, options, model, error, seconds in lines:
        print(f"{what:<24} {options:<28} {model:<22} {100.0 * error:>7.3f}% {seconds:>8.1f}")


if __name__ == "__main__":
    main()
