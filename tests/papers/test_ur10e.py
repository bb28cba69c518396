"""The UR10e of Mamedov and others (2020): one run identifies, runs of other days are predicted.

Author window, authors' drive gains, order-5 zero-phase Butterworth at 0.15 of Nyquist on logged dq, central differences
on the logged clock then the same filter, 0.20 of Nyquist on current, q as logged; errors over all joints against filtered
torque.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from dynid.apps.payload.load import identify_payload
from dynid.dynamics.inverse_dynamics import with_transmitted_load
from dynid.estimation.estimate import estimate, estimate_under_load
from dynid.estimation.friction.selection import choose_friction
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.io.logs.read import read_recording
from dynid.io.robots.read import read_robot
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.process import process
from dynid.signals.steps.filters import Differentiate, LowPass
from dynid.validation.prediction import validate
from shared_data import need, shared

need("ur10e_mamedov/index.csv")

IDENTIFICATION = "20_02_10_30sec_12harm"
POINT_TO_POINT, FOURTEEN = "20_01_17_ptp_10_points", "20_02_19_14harm50sec"


@pytest.fixture(scope="module")
def facts():
    return json.loads(shared("ur10e_mamedov/parameters.json").read_text())


@pytest.fixture(scope="module")
def robot():
    return read_robot(shared("ur10e_mamedov/robot.urdf"), "viscous,coulomb,offset,armature")


@pytest.fixture(scope="module")
def runs(robot, facts):
    gains = facts["drive_gains_Nm_per_A"]["authors_estimate"]
    with shared("ur10e_mamedov/index.csv").open() as file:
        index = {Path(row["file"]).stem: row for row in csv.DictReader(file)}
    found = {}
    for name in (IDENTIFICATION, POINT_TO_POINT, FOURTEEN):
        log = read_recording(shared(f"ur10e_mamedov/traj/{name}.parquet"), robot, drive_gains=gains)
        steps = [
            LowPass(cutoff_nyquist=0.15, order=5, signals=("velocity",)),
            LowPass(cutoff_nyquist=0.20, order=5, signals=("torque",)),
            Differentiate(velocity="logged"),
            LowPass(cutoff_nyquist=0.15, order=5, signals=("acceleration",)),
        ]
        window = int(index[name]["author_window_start"]), int(index[name]["author_window_stop"])
        found[name] = process(log.rows(*window), steps, edge_s=0.0)
    return found


def _predicted(robot, runs, friction):
    choice = choose_friction(robot, [runs[IDENTIFICATION]], friction)
    result, _, _ = estimate_under_load(
        TorqueRows(choice.robot, (runs[IDENTIFICATION],)), [runs[IDENTIFICATION]], OrdinaryLeastSquares()
    )
    identified = choice.robot.with_parameters(result.standard)
    errors = {
        name: validate(choice.robot, result, with_transmitted_load(identified, one)).relative_error
        for name, one in runs.items()
    }
    return choice, errors


def test_base_parameters_are_counted_as_published(robot, facts):
    counts = facts["base_parameter_count"]
    base = reduce_to_base(robot)
    rigid = sum(name[0] != "f" for name in base.names)
    assert (rigid, base.n_base - rigid) == (counts["with_reflected_rotor_inertia"], counts["friction_parameters"])
    assert reduce_to_base(robot.with_effects(())).n_base == 36


def test_plain_sign_friction(robot, runs):
    found = estimate(build_regression(robot, runs[IDENTIFICATION]), reduce_to_base(robot), OrdinaryLeastSquares())
    assert found.rank == 58
    assert found.condition_number == pytest.approx(99.07, rel=0.01)
    own, unseen, other = (validate(robot, found, runs[name]) for name in (IDENTIFICATION, POINT_TO_POINT, FOURTEEN))
    assert (own.relative_error, own.relative_error_raw) == pytest.approx((0.0506, 0.0611), abs=3e-4)
    assert (unseen.relative_error, unseen.relative_error_raw) == pytest.approx((0.0523, 0.0626), abs=3e-4)
    assert (other.relative_error, other.relative_error_raw) == pytest.approx((0.0486, 0.0563), abs=3e-4)


def test_published_model(robot, runs, facts):
    symbols = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mx", "my", "mz", "m")
    values = {}
    for number, (link, friction, rotor) in enumerate(
        zip(
            facts["link_parameters"]["values"],
            facts["friction"]["values"],
            facts["rotor_inertia_reflected_kg_m2"],
            strict=True,
        ),
        start=1,
    ):
        values |= {f"{symbol}{number}": value for symbol, value in zip(symbols, link, strict=True)}
        values |= {f"{symbol}{number}": value for symbol, value in zip(("fv", "fc", "fo"), friction, strict=True)}
        values[f"Ia{number}"] = rotor
    model = robot.with_parameters(values)
    error = validate(model, model.parameters, runs[POINT_TO_POINT])
    assert (error.relative_error, error.relative_error_raw) == pytest.approx((0.0565, 0.0661), abs=3e-4)


def test_friction_that_grows_with_load_predicts_better(robot, runs):
    choice, errors = _predicted(robot, runs, "load")
    assert errors[POINT_TO_POINT] <= 0.044
    assert errors[FOURTEEN] <= 0.033
    # gears rub: every joint's friction grows with its load
    fitted, _, _ = estimate_under_load(
        TorqueRows(choice.robot, (runs[IDENTIFICATION],)), [runs[IDENTIFICATION]], OrdinaryLeastSquares()
    )
    assert all(fitted.standard[f"flc{j}"] > 0.0 for j in (1, 2, 3))


@pytest.mark.parametrize(
    ("gains", "mass"), [("authors_estimate", 2.47), pytest.param("quoted_from_literature", 3.08, marks=pytest.mark.slow)]
)
def test_load_is_known_as_well_as_the_drive_gains(facts, gains, mass):
    """2.805 kg on the scales; the two gain sets leave it on either side, as plain least squares on the pair does."""
    settings = Settings(
        drive_gains=tuple(facts["drive_gains_Nm_per_A"][gains]),
        cutoff_hz=5.0,
        filter_on="signals",
        weighted=False,
        trim=False,
    )
    run = identify(shared("ur10e_mamedov/robot.urdf"), shared(f"ur10e_mamedov/traj/{FOURTEEN}.parquet"), settings)
    load = identify_payload(run, [shared(f"ur10e_mamedov/traj/{FOURTEEN}Load.parquet")])
    assert load.mass == pytest.approx(mass, abs=0.02)
    assert load.feasible
    assert load.relative_error_with < 0.3 * load.relative_error_without


@pytest.mark.slow
def test_friction_chosen_on_the_identification_run(robot, runs):
    choice, errors = _predicted(robot, runs, "auto")
    held_out = {trial.model: trial.error for trial in choice.trials}
    assert held_out[choice.model] < 0.55 * held_out["linear"]
    assert np.isfinite(list(held_out.values())).all()
    assert errors[POINT_TO_POINT] <= 0.044
    assert errors[FOURTEEN] <= 0.033
