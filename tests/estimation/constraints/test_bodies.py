"""Every constraint holds for bodies that have the property and fails for those that have not."""

from __future__ import annotations

import numpy as np
import pytest

from consistent_problems import body, holds
from constraint_tables import table_from_constraints
from dynid.errors import InputError
from dynid.estimation.constraints.base import FixedValues, Linear, PositiveEffects
from dynid.estimation.constraints.bodies import (
    CentreOfMassInBox,
    CentreOfMassInCylinder,
    CentreOfMassInHull,
    CentreOfMassInSphere,
    EqualLinks,
    MassBounds,
    SymmetricLink,
    TotalMass,
)
from dynid.estimation.constraints.bounds import KINDS, constraints_from_table
from dynid.estimation.constraints.shapes import DensityInBox, DensityInEllipsoid, mesh_vertices
from dynid.estimation.methods.registry import METHODS, method_named, methods_that_take
from messages import facts
from uniform_bodies import phi_of_cuboid, phi_of_points


def cuboid(center, half=(0.1, 0.2, 0.3), mass: float = 2.0) -> np.ndarray:
    return phi_of_cuboid(mass, np.array(half), np.array(center), np.eye(3))


CUBE = tuple((x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1))

CASES = [
    (MassBounds("upper", 1.0, 3.0), body(2.0), body(3.5)),
    (MassBounds(1, lower=2.5), body(3.5), body(2.0)),
    (TotalMass(upper=4.5), body(2.0), body(3.0)),
    (TotalMass(lower=1.0, upper=2.5, links=(1,)), body(2.0), body(3.0)),
    (TotalMass(lower=4.0, upper=4.0), body(2.0), body(2.1)),
    (CentreOfMassInBox(1, (0.0, -0.1, -0.1), (0.2, 0.1, 0.1)), body(com=(0.1, 0.0, 0.0)), body(com=(0.1, 0.11, 0.0))),
    (CentreOfMassInSphere(1, (0.1, 0.0, 0.0), 0.05), body(com=(0.1, 0.04, 0.0)), body(com=(0.1, 0.04, 0.04))),
    (CentreOfMassInCylinder(1, (0, 0, 0), (0, 0, 0.3), 0.05), body(com=(0.04, 0, 0.2)), body(com=(0.06, 0, 0.2))),
    (CentreOfMassInCylinder(1, (0, 0, 0), (0, 0, 0.3), 0.05), body(com=(0.0, 0, 0.2)), body(com=(0.0, 0, 0.31))),
    (CentreOfMassInHull(1, CUBE), body(com=(0.09, 0.09, -0.09)), body(com=(0.0, 0.0, 0.11))),
    (DensityInEllipsoid(1, (0, 0, 0), (0.5, 0.5, 0.5)), cuboid((0.1, 0, 0)), cuboid((0.5, 0, 0))),
    (DensityInBox(1, (-0.2, -0.3, -0.4), (0.2, 0.3, 0.4)), cuboid((0.1, 0, 0)), cuboid((0.1, 0, 0), (0.1, 0.2, 0.9))),
    (SymmetricLink(1, "z"), cuboid((0.3, 0.2, 0.0)), cuboid((0.3, 0.2, 0.05))),
    (SymmetricLink(1, "y", offset=0.2), cuboid((0.3, 0.2, 0.1)), cuboid((0.3, 0.0, 0.1))),
    (FixedValues({"m1": 2.0, "Ia1": 0.1}), body(2.0), body(2.5)),
    (Linear({"m1": 1.0, "M2": -1.0}, lower=-0.5, upper=0.5), body(2.4), body(2.6)),
    (Linear({"mx1": 1.0}, lower=0.2, upper=0.2), body(2.0), body(2.2)),
]


@pytest.mark.parametrize(("constraint", "good", "bad"), CASES)
def test_constraint_tells_good_from_bad(constraint, good, bad):
    assert holds(constraint, good)
    assert not holds(constraint, bad)


def test_equal_and_mirrored_links():
    left = phi_of_points(np.array([1.0, 0.5]), np.array([[0.1, 0.2, 0.3], [0.0, -0.1, 0.2]]))
    right = phi_of_points(np.array([1.0, 0.5]), np.array([[0.1, -0.2, 0.3], [0.0, 0.1, 0.2]]))
    assert holds(EqualLinks((1, 2)), left, left)
    assert not holds(EqualLinks((1, 2)), left, right)
    assert holds(EqualLinks(("upper", "elbow"), mirror="y"), left, right)
    assert not holds(EqualLinks((1, 2), mirror="x"), left, right)


def test_every_kind_is_tried_here():
    tried = {type(case[0]) for case in CASES} | {PositiveEffects, EqualLinks}
    assert tried == set(KINDS.values())


def test_every_kind_comes_back_from_its_table():
    every = tuple(case[0] for case in CASES)
    again = constraints_from_table(table_from_constraints(every))
    assert sorted(map(repr, again)) == sorted(map(repr, every))


def test_hull_of_a_mesh(tmp_path):
    vertices = np.array(CUBE)
    text = "\n".join(f"v {x} {y} {z}" for x, y, z in CUBE) + "\nf 1 2 3\n"
    (tmp_path / "cube.obj").write_text(text)
    ascii_stl = "solid cube\n" + "".join(f" vertex {x} {y} {z}\n" for x, y, z in CUBE) + "endsolid\n"
    (tmp_path / "cube.stl").write_text(ascii_stl)
    triangles = np.zeros(6, dtype=[("normal", "<f4", 3), ("points", "<f4", (3, 3)), ("extra", "<u2")])
    triangles["points"] = vertices[np.array([[0, 1, 2], [3, 4, 5], [6, 7, 0], [1, 2, 3], [4, 5, 6], [7, 0, 1]])]
    (tmp_path / "binary.stl").write_bytes(b"\0" * 80 + np.uint32(6).tobytes() + triangles.tobytes())
    for name in ("cube.obj", "cube.stl", "binary.stl"):
        assert mesh_vertices(tmp_path / name) == pytest.approx(np.unique(vertices, axis=0), abs=1e-7)
    placed = np.eye(4)
    placed[0, 3] = 1.0
    hull = CentreOfMassInHull.from_mesh(1, tmp_path / "cube.obj", scale=2.0, placement=placed)
    assert len(hull.faces()) == 6
    assert holds(hull, body(com=(1.15, 0.0, 0.19)))
    assert not holds(hull, body(com=(0.75, 0.0, 0.0)))
    with pytest.raises(InputError, match=r"type '\.dae', expected \.stl or \.obj"):
        mesh_vertices(_touched(tmp_path / "cube.dae"))


def _touched(path):
    path.write_text("")
    return path


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MassBounds(1, 3.0, 2.0), facts("3", "2")),
        (lambda: Linear({"m1": 1.0}), "has no bound"),
        (lambda: CentreOfMassInHull(1, CUBE[:4]), "lie in a plane"),
        (lambda: CentreOfMassInSphere(1, (0, 0, 0), 0.0), facts("1", "0", "link")),
        (lambda: constraints_from_table({"mas": {}}), "unknown constraint 'mas'"),
        (lambda: constraints_from_table({"mass": {"link": 1, "high": 2.0}}), facts("mass", "high", "constraint")),
        (lambda: constraints_from_table({"mass": {"lower": 2.0}}), "constraint 'mass' with entries lower"),
        (lambda: constraints_from_table({"mass": 3.0}), "expected a table"),
    ],
)
def test_refusals_say_what_is_wrong(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_constraints_or_says_which_do(name):
    known = [TotalMass(upper=10.0)]
    if name in methods_that_take("constraints"):
        assert method_named(name, known).constraints == tuple(known)
    else:
        with pytest.raises(InputError, match=f"'{name}' takes no constraints") as refused:
            method_named(name, known)
        assert all(other in str(refused.value) for other in methods_that_take("constraints"))
