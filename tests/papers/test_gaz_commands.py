"""Gaz and others (2019) by commands alone: the two-step and the one-step retrieval of the Panda, the conditions of the 2R robot.

The files are what a user would type from the supplement: coefficients by their printed combinations with their standard
deviations, bounds of Tables VIII and IX, conditions of section V as formulas in a run file.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cli_program import app
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.io.logs.read import write_recording
from dynid.model.inertia import is_consistent, mass_com_inertia, phi_from_mass_com_inertia
from dynid.pipeline.folder import load_result
from dynid.signals.recording import Recording
from published import combinations, gaz_base, gaz_bounds, gaz_coefficients, panda_motion, published_robot, robot_file, tables
from shared_data import shared

AUTHORS_C5Z = tables("gaz2019")["tables_8_9"]["c5z_lower_in_the_authors_code"]
TABLE_3 = gaz_coefficients()


def dynid(*arguments: object) -> dict:
    """The JSON of a command that must succeed."""
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def _written(terms: dict[str, float]) -> str:
    """A combination as the supplement prints it, names as there."""
    return " ".join(f"{'-' if factor < 0 else '+'} {abs(factor):.10g} {name}" for name, factor in terms.items())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Coefficients and bounds of the Panda as files."""
    place = tmp_path_factory.mktemp("panda")
    rows = combinations(tables("gaz2019")["table_3"]["combinations"])
    lines = [
        f"pi_{i + 1},{_written(row)},{TABLE_3['reverse'][i]},{TABLE_3['reverse_sigma'][i]}" for i, row in enumerate(rows)
    ]
    (place / "coefficients.csv").write_text("\n".join(["name,expression,value,sigma_percent", *lines]) + "\n")
    for name, c5z in (("code", AUTHORS_C5Z), ("printed", None)):
        limits = [f"{quantity},{low},{high}" for quantity, (low, high) in gaz_bounds(c5z).items()]
        (place / f"{name}.csv").write_text("\n".join(["name,lower,upper", *limits]) + "\n")
    return place


@pytest.mark.parametrize(("bounds", "optimum"), [("code", 3.726e-4), ("printed", 3.860e-4)])
def test_two_steps_reach_the_optimum_of_the_41_coefficients_kept(folder: Path, bounds: str, optimum: float) -> None:
    run = folder / f"run_{bounds}"
    found = dynid(
        "identify", robot_file("panda"), "--method", "retrieve", "--coefficients", folder / "coefficients.csv",
        "--bounds", folder / f"{bounds}.csv", "--drop-above", 30, "-o", run, "--export", "json",
    )  # fmt: skip
    retrieval = found["retrieval"]
    assert retrieval["cost"] == pytest.approx(optimum, rel=5e-4)
    assert 0.0 <= retrieval["gap"] <= 1e-4 * retrieval["cost"]
    assert retrieval["violated"] == {}
    assert found["feasible"]
    # the cost is that of the printed values over the coefficients that the paper kept
    kept = np.flatnonzero(np.isfinite(TABLE_3["p_hat"]))
    assert [entry["name"] for entry in retrieval["coefficients"]] == [f"pi_{i + 1}" for i in kept]
    bodies = load_result(run).model.parameters
    of_set = gaz_base(published_robot("panda"), kept).K @ bodies.values
    assert np.sum((of_set - TABLE_3["reverse"][kept]) ** 2) == pytest.approx(retrieval["cost"], rel=1e-9)
    mass, com, _ = mass_com_inertia(bodies.inertials)
    assert 16.0 <= mass.sum() <= 20.0
    limits = gaz_bounds(AUTHORS_C5Z if bounds == "code" else None)
    for i in range(7):
        for j, axis in enumerate("xyz"):
            assert limits[f"c{i + 1}{axis}"][0] <= com[i, j] <= limits[f"c{i + 1}{axis}"][1]
    assert found["relative_error"] == {"identification": None, "validation": None}
    assert any("pi_8 (30.4 %), pi_24 (219 %)" in note for note in found["notes"])


def test_without_dropping_the_two_vague_coefficients_count(folder: Path) -> None:
    found = dynid(
        "identify", robot_file("panda"), "--method", "retrieve", "--coefficients", folder / "coefficients.csv",
        "--bounds", folder / "code.csv", "-o", folder / "run_all", "--export", "json",
    )  # fmt: skip
    assert len(found["retrieval"]["coefficients"]) == found["rank"] == found["n_base"] == 43
    assert found["retrieval"]["cost"] > 3.726e-4


def test_one_step_gives_the_one_step_column_back(folder: Path) -> None:
    """Torque of the exciting motion with the printed one-step coefficients: they are feasible, so the fit returns them.

    Viscous friction and offset stand beside the bodies; a filter cannot follow the jump of a sign. To the four decimals of the
    print the set lies on the boundary of what is feasible, so a few ten-thousandths move.
    """
    rigid = published_robot("panda")
    base = gaz_base(rigid)
    robot = published_robot("panda", ["viscous", "offset"])
    phi = np.concatenate([base.lift @ TABLE_3["one_step"], np.linspace(0.1, 0.4, 14)])
    time = np.arange(0.0, 13.33, 0.005)
    q, v, a = panda_motion(time)
    torque = inverse_dynamics(robot.with_parameters(robot.parameters.with_values(phi)), q, v, a)
    log = write_recording(
        Recording(joint_names=robot.joint_names, time=time, position=q, velocity=v, torque=torque),
        folder / "exciting.parquet",
    )
    run = folder / "one_step"
    found = dynid(
        "identify", robot_file("panda"), log, "--method", "retrieve", "--bounds", folder / "printed.csv",
        "--effects", "viscous,offset", "--cutoff-hz", 30, "-o", run, "--export", "json",
    )  # fmt: skip
    assert found["retrieval"]["violated"] == {}
    assert found["relative_error"]["identification"] < 5e-4
    values = base.K @ load_result(run).model.parameters.values[:70]
    np.testing.assert_allclose(values, TABLE_3["one_step"], atol=2e-3)


@pytest.mark.slow
def test_one_step_on_the_recording_is_near_the_one_step_column(folder: Path) -> None:
    """The public log is of another day than the one in the paper; coefficients that gravity shows agree to some per cent."""
    run = folder / "recorded"
    found = dynid(
        "identify", robot_file("panda"), shared("panda_gaz/exciting_traj_1.parquet"), "--method", "retrieve",
        "--bounds", folder / "printed.csv", "--effects", "viscous,coulomb,offset", "--cutoff-hz", 5, "-o", run,
        "--export", "json",
    )  # fmt: skip
    assert found["feasible"]
    assert found["retrieval"]["violated"] == {}
    assert found["relative_error"]["identification"] < 0.0141  # what the paper prints for its own log, unconstrained
    values = gaz_base(published_robot("panda")).K @ load_result(run).model.parameters.values[:70]
    published = TABLE_3["one_step"]
    large = np.abs(published) > 0.3
    assert large.sum() == 8
    assert np.max(np.abs(values / published - 1.0)[large]) < 0.06
    assert np.linalg.norm(values - published) < 0.03 * np.linalg.norm(published)


# The spatial 2R robot of supplement V ----------------------------------------------------------------------

ROBOT_2R = """
name = "two_link"
gravity = [0.0, 0.0, -9.81]
dh_convention = "standard"
[[joint]]
name = "joint1"
type = "revolute"
a = 0.0
alpha = 1.5707963267948966
d = 1.5
theta_offset = 0.0
[[joint]]
name = "joint2"
type = "revolute"
a = 0.8
alpha = 0.0
d = 0.0
theta_offset = 0.0
"""
# coefficient 6 is printed with 0.8 m2, which is not l2^2; alpha1 with c1y, which is not the axis of link 1
EXPRESSIONS = (
    "J1yy + J2yy - 0.64 m2", "J2xx - J2yy + 0.64 m2", "J2xy", "J2xz - 0.8 mc2z", "J2yz", "J2zz - 0.64 m2", "0.8 m2 + mc2x",
    "mc2y",
)  # fmt: skip
RUN_2R = """
robot = "two_link.toml"
[estimation]
method = "retrieve"
coefficients = "two_link.csv"
bounds = "bounds.toml"
[[conditions]]
name = "link 1 in its cylinder"
expression = "sqrt(c1x ** 2 + c1z ** 2) <= 0.15"
[[conditions]]
name = "link 2 in its cylinder or cone"
expression = "sqrt(c2y**2 + c2z**2) <= (0.08 if c2x < -0.2 else 0.08 + (0.02 - 0.08) / 0.2 * (0.2 + c2x))"
[[conditions]]
name = "a heavy first link stands low"
expression = "c1y < -0.7 if m1 > 4"
"""


@pytest.mark.slow
def test_conditions_of_the_two_link_robot_from_a_run_file(tmp_path: Path) -> None:
    """Coefficients of a link 2 whose centre of mass lies outside of it: every condition bites."""
    inertias = np.diag([0.03, 0.03, 0.01]), np.diag([0.01, 0.04, 0.04])
    true = [
        phi_from_mass_com_inertia(8.0, [0.01, -0.75, -0.02], inertias[0]),
        phi_from_mass_com_inertia(3.0, [-0.1, 0.2, 0.0], inertias[1]),
    ]
    named = dict(zip(("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"), np.array(true).T, strict=True))
    J = {f"J{i + 1}{axes}": named[f"I{axes}"][i] for i in (0, 1) for axes in ("xx", "xy", "yy", "xz", "yz", "zz")}
    J |= {"m2": named["m"][1]} | {f"mc2{axis}": named[f"m{axis}"][1] for axis in "xyz"}
    values = [
        J["J1yy"] + J["J2yy"] - 0.64 * J["m2"], J["J2xx"] - J["J2yy"] + 0.64 * J["m2"], J["J2xy"],
        J["J2xz"] - 0.8 * J["mc2z"], J["J2yz"], J["J2zz"] - 0.64 * J["m2"], 0.8 * J["m2"] + J["mc2x"], J["mc2y"],
    ]  # fmt: skip
    (tmp_path / "two_link.toml").write_text(ROBOT_2R)
    lines = [f"{text},{value!r}" for text, value in zip(EXPRESSIONS, map(float, values), strict=True)]
    (tmp_path / "two_link.csv").write_text("\n".join(["expression,value", *lines]) + "\n")
    bounds = {"m1": [5.0, 10.0], "m2": [0.0, 5.0], "c1y": [-1.42, 0.08], "c2x": [-0.8, 0.0], "total_mass": [1.0, 15.0]}
    (tmp_path / "bounds.toml").write_text("".join(f"{name} = {pair}\n" for name, pair in bounds.items()))
    (tmp_path / "dynid.toml").write_text(RUN_2R)
    (tmp_path / "without.toml").write_text(RUN_2R.split("[[conditions]]")[0])
    found = dynid("identify", "--config", tmp_path / "dynid.toml", "-o", tmp_path / "run", "--export", "json")
    assert found["retrieval"]["violated"] == {}
    assert found["retrieval"]["lower_bound"] < found["retrieval"]["cost"]
    bodies = load_result(tmp_path / "run").model.parameters.inertials
    assert is_consistent(bodies, "full").all()
    mass, com, _ = mass_com_inertia(bodies)
    assert np.hypot(com[0, 0], com[0, 2]) <= 0.15
    assert np.hypot(com[1, 1], com[1, 2]) == pytest.approx(_radius(com[1, 0]), rel=1e-5)  # as far out as it may be
    assert mass[0] > 4.0
    assert com[0, 1] <= -0.7
    free = dynid("identify", "--config", tmp_path / "without.toml", "-o", tmp_path / "free", "--export", "json")
    assert free["retrieval"]["cost"] < found["retrieval"]["cost"]
    mass, com, _ = mass_com_inertia(load_result(tmp_path / "free").model.parameters.inertials)
    assert np.hypot(com[1, 1], com[1, 2]) > _radius(com[1, 0])
    assert mass[0] > 4.0
    assert com[0, 1] > -0.7


def _radius(x: float) -> float:
    """Of link 2 at this place of its axis."""
    return 0.08 if x < -0.2 else 0.08 + (0.02 - 0.08) / 0.2 * (0.2 + x)
