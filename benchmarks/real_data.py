"""Prediction of unseen motion on two real robots, with linear friction and with friction chosen on the identification data.

Panda (Gaz and others 2019): the first 65 % of the exciting log predict the last 35 %. UR10e (Mamedov and others 2020): one
12-harmonic run of 30 s predicts a point-to-point run and a 14-harmonic run of other days. Figures are
``||tau - tau_hat|| / ||tau||`` over all joints on the unseen part, against torque filtered as the table says; the same
against torque as recorded stands beside. Friction is chosen by cross-validation on blocks of the identification data alone.
The reference is linear friction on the same samples and, for the UR10e, the authors' published model.
"""

from __future__ import annotations

import measure

import csv
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.estimation.friction.choice import FILTER_MEMORY, choose_friction, estimate_under_load
from dynid.estimation.friction.fit import with_transmitted_load
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.recording.process import process
from dynid.recording.readers.read import read_recording
from dynid.recording.recording import Recording
from dynid.recording.samples import Samples
from dynid.recording.steps import Decimate, Differentiate, LowPass, Resample
from dynid.regression.base import reduce_to_base
from dynid.regression.torque_rows import TorqueRows
from dynid.robot.model import Robot
from dynid.robot.read import read_robot
from dynid.run.options import Settings
from dynid.run.tune import choose_filter
from dynid.validation.torque import TorqueError, validate

PANDA_FILTER = "order 4, {cutoff:g} Hz on q, logged dq, torque"
UR10E_FILTER = "order 5, 0.15 Nyquist on dq and ddq, 0.20 on current"
UR10E_TORQUE_CUTOFF_HZ = 0.20 * 47.0
IDENTIFICATION = "20_02_10_30sec_12harm"
POINT_TO_POINT, FOURTEEN = "20_01_17_ptp_10_points", "20_02_19_14harm50sec"


@dataclass(frozen=True)
class Line:
    """One row of the table; ``key`` is empty for figures that only stand beside."""

    key: str
    what: str
    friction: str
    error: TorqueError
    at_most: float | None
    filter: str


def data_folder() -> Path:
    """``DYNID_SHARED_DATA`` or ``../shared/data`` beside the repository."""
    here = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("DYNID_SHARED_DATA", here.parent / "shared" / "data"))
    if not folder.is_dir():
        sys.exit(f"real_data needs the public recordings, which are not in {folder}; set DYNID_SHARED_DATA")
    return folder


def fitted(
    robot: Robot, known: Samples, friction: str, memory_s: float, unseen: list[Samples]
) -> tuple[str, list[TorqueError]]:
    """Errors on the unseen samples, and the friction model that was taken."""
    choice = choose_friction(robot, [known], friction, time_s=memory_s)
    result, _, _ = estimate_under_load(TorqueRows(choice.robot, (known,)), [known], OrdinaryLeastSquares())
    identified = choice.robot.with_parameters(result.standard)
    errors = [validate(choice.robot, result, with_transmitted_load(identified, one)).total for one in unseen]
    return choice.model, errors


def panda(folder: Path, every: int, chosen: str) -> list[Line]:
    """First 65 % against last 35 %; beside it all rows, seen, also at the cut-off that predicts held-out raw torque best."""
    robot = read_robot(folder / "panda_gaz/robot.toml", "viscous,coulomb,offset")
    log = read_recording(folder / "panda_gaz/exciting_traj_1.parquet", robot)
    assert isinstance(log, Recording)

    def samples(recording: Recording, cutoff_hz: float) -> Samples:
        steps = [Resample(period_s=1e-3), LowPass(cutoff_hz=cutoff_hz, order=4), Differentiate(velocity="logged")]
        return process(recording, [*steps, Decimate(every=4 * every)], edge_s=0.3)

    cut = round(0.65 * log.n_samples)
    first, last = (samples(part, 5.0) for part in (log.rows(0, cut), log.rows(cut)))
    lines = []
    for key, friction, limit in (("panda_linear", "linear", 0.0105), ("panda_auto", chosen, 0.0105)):
        model, (error,) = fitted(robot, first, friction, FILTER_MEMORY / 5.0, [last])
        lines.append(Line(key, "Panda, last 35 %", model, error, limit, PANDA_FILTER.format(cutoff=5.0)))
    tuned, _ = choose_filter(robot, reduce_to_base(robot), [log], Settings(velocity="logged"))
    for friction, cutoff_hz in (("linear", 5.0), (chosen, 5.0), (chosen, tuned.cutoff_hz)):
        whole = samples(log, cutoff_hz)
        model, (error,) = fitted(robot, whole, friction, FILTER_MEMORY / cutoff_hz, [whole])
        lines.append(Line("", "Panda, all rows, seen", model, error, None, PANDA_FILTER.format(cutoff=cutoff_hz)))
    return lines


def ur10e(folder: Path, every: int, chosen: str) -> list[Line]:
    """One run identifies; two runs of other days are predicted."""
    place = folder / "ur10e_mamedov"
    facts = json.loads((place / "parameters.json").read_text())
    gains = facts["drive_gains_Nm_per_A"]["authors_estimate"]
    with (place / "index.csv").open() as file:
        index = {Path(row["file"]).stem: row for row in csv.DictReader(file)}
    robot = read_robot(place / "robot.urdf", "viscous,coulomb,offset,armature")

    def samples(name: str) -> Samples:
        log = read_recording(place / f"traj/{name}.parquet", robot, drive_gains=gains)
        assert isinstance(log, Recording)
        row = index[name]
        steps = [
            LowPass(cutoff_nyquist=0.15, order=5, signals=("velocity",)),
            LowPass(cutoff_nyquist=0.20, order=5, signals=("torque",)),
            Differentiate(velocity="logged"),
            LowPass(cutoff_nyquist=0.15, order=5, signals=("acceleration",)),
            Decimate(every=every),
        ]
        return process(log.rows(int(row["author_window_start"]), int(row["author_window_stop"])), steps, edge_s=0.0)

    known, unseen = samples(IDENTIFICATION), [samples(POINT_TO_POINT), samples(FOURTEEN)]
    memory_s = FILTER_MEMORY / UR10E_TORQUE_CUTOFF_HZ
    plain, linear = fitted(robot, known, "linear", memory_s, unseen)
    model, auto = fitted(robot, known, chosen, memory_s, unseen)
    lines = [
        Line("ur10e_ptp_linear", "UR10e, point to point", plain, linear[0], None, UR10E_FILTER),
        Line("ur10e_ptp_auto", "UR10e, point to point", model, auto[0], 0.044, UR10E_FILTER),
        Line("", "UR10e, 14 harmonics", plain, linear[1], None, UR10E_FILTER),
        Line("ur10e_14harm_auto", "UR10e, 14 harmonics", model, auto[1], 0.033, UR10E_FILTER),
    ]
    published = published_ur10e(robot, facts)
    error = validate(published, published.parameters, unseen[0]).total
    return [*lines, Line("", "UR10e, point to point", "as published", error, None, UR10E_FILTER)]


def published_ur10e(robot: Robot, facts: dict[str, dict[str, list[list[float]]]]) -> Robot:
    """The robot with the authors' own link, rotor and friction parameters."""
    values: dict[str, float] = {}
    symbols = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mx", "my", "mz", "m")
    for number, link in enumerate(facts["link_parameters"]["values"], start=1):
        values |= {f"{symbol}{number}": value for symbol, value in zip(symbols, link, strict=True)}
    for number, friction in enumerate(facts["friction"]["values"], start=1):
        values |= {f"{symbol}{number}": value for symbol, value in zip(("fv", "fc", "fo"), friction, strict=True)}
    rotors = np.asarray(facts["rotor_inertia_reflected_kg_m2"], dtype=float)
    return robot.with_parameters(values | {f"Ia{i + 1}": float(value) for i, value in enumerate(rotors)})


def main() -> None:
    """Measure and print."""
    arguments = measure.parser(__doc__).parse_args()
    folder, started = data_folder(), time.perf_counter()
    every = 4 if arguments.smoke else 1
    lines = [
        *panda(folder, every, "smooth" if arguments.smoke else "auto"),
        *ur10e(folder, every, "load" if arguments.smoke else "auto"),
    ]
    if arguments.json:
        measure.print_result({line.key: line.error.relative_error for line in lines if line.key}, True)
        return
    print(
        f"{'key':<18} {'predicted':<22} {'friction':<16} {'filtered':>9} {'raw':>7} {'at most':>8}  zero-phase Butterworth"
    )
    for line in lines:
        limit = "" if line.at_most is None else f"{100.0 * line.at_most:.2f} %"
        raw = line.error.relative_error_raw
        print(
            f"{line.key:<18} {line.what:<22} {line.friction:<16} {100.0 * line.error.relative_error:7.2f} % "
            f"{'' if raw is None else f'{100.0 * raw:5.2f} %'} {limit:>8}  {line.filter}"
        )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
