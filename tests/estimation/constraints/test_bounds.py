"""Bounds of masses, centres and inertia: what of them is convex, what is not, the box they make, and their files."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.estimation.constraints.base import Layout, Linear
from dynid.estimation.constraints.bodies import CentreOfMassInSphere, MassBounds, TotalMass
from dynid.estimation.constraints.bounds import LEAST_MASS, Bounds, read_bounds
from dynid.estimation.constraints.conditions import Reader
from dynid.model.effects.linear import Viscous
from dynid.model.inertia import mass_com_inertia
from messages import facts
from noisy_logs import short_arm
from problems import planar_2r

ROBOT = planar_2r([Viscous()])
LAYOUT = Layout.of(ROBOT.parameters.names)
PHI = ROBOT.parameters.values


def test_linear_bounds_are_convex_and_the_rest_are_conditions():
    sphere = CentreOfMassInSphere(1, (0.0, 0.0, 0.0), 2.0)
    bounds = Bounds(
        {
            "m1": (0.5, 4.0),
            "c2x": (-0.1, 0.9),
            "Izz1": (0.0, 2.0),
            "fv1": (0.0, np.inf),
            "I2yy": (0.0, 0.5),
            "I2xy": (-0.2, 0.1),
            "total_mass": (-np.inf, 9.0),
            "m2": (-np.inf, np.inf),
        },
        (sphere,),
    )
    convex = bounds.convex()
    assert convex[0] is sphere
    assert MassBounds(1, 0.5, 4.0) in convex
    assert TotalMass(0.0, 9.0) in convex
    linear = {c.label: c for c in convex if isinstance(c, Linear)}
    assert dict(linear["c2x from -0.1"].terms) == {"mx2": 1.0, "m2": 0.1}
    assert dict(linear["c2x up to 0.9"].terms) == {"mx2": -1.0, "m2": 0.9}
    assert set(linear) == {"c2x from -0.1", "c2x up to 0.9", "Izz1", "fv1"}
    # a moment is positive in every consistent body, a product is not
    assert [c.name for c in bounds.conditions()] == ["I2yy <= 0.5", "I2xy <= 0.1", "I2xy >= -0.2"]


def test_conditions_measure_the_inertia_about_the_centre_of_mass():
    _, _, inertia = mass_com_inertia(ROBOT.parameters.inertials)
    value = float(inertia[1, 1, 1])
    (upper,) = Bounds({"I2yy": (0.0, 0.75 * value)}).conditions()
    assert upper.values(LAYOUT, PHI) == pytest.approx(0.25 * value)
    (lower,) = Bounds({"I2yy": (1.5 * value, np.inf)}).conditions()
    assert lower.values(LAYOUT, PHI) == pytest.approx(0.5 * value)


def test_violated_says_by_how_much_in_the_quantity_of_the_file():
    mass, com, _ = mass_com_inertia(ROBOT.parameters.inertials)
    m1, c2x, whole = float(mass[0]), float(com[1, 0]), float(mass.sum())
    bounds = Bounds({"m1": (m1 + 0.5, 99.0), "c2x": (-9.0, c2x - 0.2), "total_mass": (0.0, whole - 1.0), "m2": (0.0, 99.0)})
    assert bounds.violated(LAYOUT, PHI) == pytest.approx({"m1": 0.5, "c2x": 0.2, "total_mass": 1.0})
    assert Bounds({"m1": (m1, m1)}).violated(LAYOUT, PHI) == {}


def test_the_box_takes_what_is_given_and_something_wide_for_the_rest():
    scale = np.ones(len(LAYOUT))
    lower, upper = Bounds({"m1": (-1.0, 3.0), "c1x": (-0.1, 0.2), "I2zz": (0.5, np.inf), "fv2": (0.0, 0.7)}).box(
        LAYOUT, scale
    )
    names = list(LAYOUT.names)
    at = {name: (lower[names.index(name)], upper[names.index(name)]) for name in ("m1", "mx1", "Izz2", "fv1", "fv2", "Ixy1")}
    assert at["m1"] == (LEAST_MASS, 3.0)  # no mass below zero, and not quite zero
    assert at["mx1"] == (-0.1, 0.2)
    assert at["Izz2"] == (0.5, 25.0)
    assert at["fv2"] == (0.0, 0.7)
    assert at["fv1"] == (-100.0, 100.0)
    assert at["Ixy1"] == (-25.0, 25.0)
    assert (lower <= upper).all()


def test_masses_and_centres_are_met_by_every_point_of_the_box():
    sphere = CentreOfMassInSphere(1, (0.0, 0.0, 0.0), 2.0)
    bounds = Bounds({"m1": (0.5, 4.0), "c2x": (-0.1, 0.9), "Izz1": (0.0, 2.0), "total_mass": (1.0, 9.0)}, (sphere,))
    labels = bounds.guaranteed_by_box(LAYOUT)
    assert {label.split()[0] for label in labels} == {"mass", "c2x"}
    assert len(labels) == 4


def test_names_that_the_robot_lacks_are_refused():
    Bounds({"m2": (0.0, 1.0), "c2z": (0.0, 1.0), "I1xy": (0.0, 1.0), "fv2": (0.0, 1.0), "total_mass": (0.0, 9.0)}).check(
        ROBOT.parameters
    )
    for name in ("m3", "c3x", "I3xx", "fc1", "weight"):
        with pytest.raises(InputError, match=facts("data sheet", f"'{name}'", "2 links", "fv1, fv2")):
            Bounds({name: (0.0, 1.0)}).check(ROBOT.parameters, "data sheet")


def test_bounds_that_cross_are_refused():
    with pytest.raises(InputError, match=facts("'m1'", "3", "2")):
        Bounds({"m1": (3.0, 2.0)})
    with pytest.raises(InputError, match=facts("'m1'", "nan")):
        Bounds({"m1": (np.nan, 2.0)})


def test_csv_and_toml_say_the_same(tmp_path):
    (tmp_path / "b.csv").write_text("name, lower, upper\nm1,0.5,\n\nc2x,-0.1,0.9\ntotal_mass,,9\n", encoding="utf-8-sig")
    (tmp_path / "b.toml").write_text("m1 = [0.5, inf]\nc2x = [-0.1, 0.9]\ntotal_mass = [-inf, 9]\n")
    ours = read_bounds(tmp_path / "b.csv")
    assert ours.limits == {"m1": (0.5, np.inf), "c2x": (-0.1, 0.9), "total_mass": (-np.inf, 9.0)}
    assert read_bounds(tmp_path / "b.toml").limits == ours.limits
    assert ours.of("m1") == (0.5, np.inf)
    assert ours.of("m2") == (-np.inf, np.inf)


def test_toml_holds_constraints_of_a_run_file(tmp_path):
    text = "m1 = [0.5, 4.0]\n[[constraints.com_sphere]]\nlink = 2\ncentre = [0.0, 0.0, 0.1]\nradius = 0.2\n"
    (tmp_path / "b.toml").write_text(text)
    assert read_bounds(tmp_path / "b.toml").constraints == (CentreOfMassInSphere(2, (0.0, 0.0, 0.1), 0.2),)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("b.csv", "", ("b.csv", "none", "name, lower, upper")),
        ("b.csv", "name,lower,upper\nm1,0\n", ("b.csv", "2", "3")),
        ("b.csv", "name,lower,upper\nm1,low,1\n", ("b.csv", "'m1'", "'low'")),
        ("b.csv", "name,lower,upper\nc1x,0,1\nc1x,0,2\n", ("b.csv", "'c1x'", "twice")),
        ("b.toml", "m1 = [1.0]\n", ("b.toml", "'m1'", "[1.0]")),
        ("b.toml", "m1 = [true, 2]\n", ("b.toml", "'m1'", "True")),
        ("b.toml", "m1 = [1.0, 2.0\n", ("b.toml", "TOML")),
        ("b.toml", "constraints = 3\n", ("b.toml", "[constraints]", "3")),
        ("b.yaml", "m1: 1\n", ("b.yaml", ".csv", ".toml")),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=facts(*said)):
        read_bounds(tmp_path / name)


def test_files_that_are_no_text_or_not_there(tmp_path):
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=facts("b.csv", "text")):
        read_bounds(tmp_path / "b.csv")
    with pytest.raises(InputError, match=facts("nowhere.csv")):
        read_bounds(tmp_path / "nowhere.csv")


ARM = short_arm()


LAYOUT = Layout.of_parameters(ARM.parameters)


def _random_phi(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return ARM.parameters.values * rng.uniform(0.8, 1.2, len(ARM.parameters))


def test_bounds_become_constraints_and_conditions(tmp_path):
    path = tmp_path / "bounds.toml"
    path.write_text(
        "m1 = [0.5, 4.0]\nc1x = [-0.1, inf]\nI1xx = [0.0, 0.2]\nI1xy = [-0.1, 0.1]\nfv1 = [0.0, 2.0]\n"
        "total_mass = [5.0, 9.0]\n[[constraints.com_sphere]]\nlink = 2\ncentre = [0.0, 0.0, 0.1]\nradius = 0.3\n"
    )
    bounds = read_bounds(path)
    assert {c.kind for c in bounds.convex()} == {"mass", "linear", "total_mass", "com_sphere"}
    assert MassBounds(1, 0.5, 4.0) in bounds.convex()
    assert TotalMass(5.0, 9.0) in bounds.convex()
    # a positive moment of inertia follows from consistency
    assert [c.name for c in bounds.conditions()] == ["I1xx <= 0.2", "I1xy <= 0.1", "I1xy >= -0.1"]
    phi = _random_phi()
    phi[0], phi[1] = 5.0, -1.0
    assert {"m1", "c1x"} <= set(bounds.violated(LAYOUT, phi))
    assert bounds.violated(LAYOUT, phi)["m1"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "link,low,high\nm1,0,1\n", facts("column", "link")),
        ("a.csv", "name,lower,upper\nm1,0\n", facts("2", "3", "bounds")),
        ("a.csv", "name,lower,upper\nm1,zero,1\n", facts("m1", "zero")),
        ("a.csv", "name,lower,upper\nm1,2,1\n", "bounds of 'm1' are 2 and 1"),
        ("a.csv", "name,lower,upper\nm1,0,1\nm1,0,2\n", "bounds of 'm1' stand twice"),
        ("a.toml", "m1 = 3\n", "expected two numbers"),
        ("a.toml", "m1 = [\n", "is not valid TOML"),
        ("a.xlsx", "", "expected .csv or .toml"),
    ],
)
def test_bad_bounds_files_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_bounds(tmp_path / name)


def test_missing_bounds_file_is_named():
    with pytest.raises(InputError, match=r"'nowhere\.csv' cannot be read"):
        read_bounds("nowhere.csv")


def test_one_sided_quantities():
    phi = _random_phi()
    inertia = Reader(LAYOUT, phi)["I1xx"]
    upper, lower = Bounds({"I1xx": (1e-5, 0.25)}).conditions()
    assert (upper.name, lower.name) == ("I1xx <= 0.25", "I1xx >= 1e-05")
    assert upper.values(LAYOUT, phi) == pytest.approx(inertia - 0.25)
    assert lower.values(LAYOUT, phi) == pytest.approx(1e-5 - inertia)
