"""Every constraint holds for bodies that have the property and fails for those that have not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from dynid.bodies import phi_of_cuboid, phi_of_points
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.constraints import (
    KINDS,
    CentreOfMassInBox,
    CentreOfMassInCylinder,
    CentreOfMassInHull,
    CentreOfMassInSphere,
    Constraint,
    DensityInBox,
    DensityInEllipsoid,
    EqualLinks,
    FixedValues,
    Linear,
    MassBounds,
    PositiveEffects,
    SymmetricLink,
    TotalMass,
    constraints_from_table,
    mesh_vertices,
    table_from_constraints,
)
from dynid.estimation.constraints.table import read_constraints_table
from dynid.estimation.convex.conic import ConsistentSet
from dynid.estimation.convex.layout import Layout
from dynid.estimation.methods.registry import METHODS, method_named, methods_that_take
from dynid.inertia import phi_from_mass_com_inertia
from dynid.naming import canonical_name, canonical_names
from dynid.parameters import INERTIAL_SYMBOLS
from messages import facts
from problems import random_tree

NAMES = [f"{s}{k}" for k in (1, 2) for s in ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")]
LAYOUT = Layout.of([*NAMES, "Ia1", "fv1", "fc1", "fo1"], {"upper": 1, "elbow": 2})


def holds(
    constraint: Constraint, first: np.ndarray, second: np.ndarray | None = None, effects=(0.1, 0.2, 0.3, -0.4)
) -> bool:
    """Whether the rows of one constraint hold for two bodies and four effects."""
    consistent = ConsistentSet.of(LAYOUT, constraints=[constraint], margin=0.0, links=[])
    x = np.concatenate([first, body() if second is None else second, effects])
    return bool(consistent.contains(x, 1e-12))


def body(mass: float = 2.0, com=(0.1, 0.0, 0.0)) -> np.ndarray:
    return phi_from_mass_com_inertia(mass, np.array(com), np.diag([0.02, 0.03, 0.04]))


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


def test_signs_of_effects():
    assert holds(PositiveEffects(), body())
    assert not holds(PositiveEffects(), body(), effects=(0.1, -0.2, 0.3, -0.4))
    assert not holds(PositiveEffects(("fo",)), body())


def test_signs_are_those_that_effects_state():
    link = [f"{symbol}1" for symbol in INERTIAL_SYMBOLS]
    layout = Layout.of([*link, "fo1", "fs1", "fsig1", "flc1", "flv1", "fvv1", "fcm1", "Ia1"])
    (rows,) = PositiveEffects().rows(layout)
    assert [layout.names[i] for i in sorted(set(rows.column.tolist()))] == ["fs1", "fsig1", "flc1", "fcm1", "Ia1"]
    assert PositiveEffects().rows(Layout.of([*link, "fo1", "fvv1"])) == ()


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


def test_table_of_a_run_file():
    table = tomllib.loads(
        """
        [constraints]
        total_mass = { upper = 27.0 }
        fixed = { Ia1 = 0.0 }
        positive = { symbols = ["Ia"] }
        com_box = [{ link = 1, lower = [-0.1, -0.1, 0.0], upper = [0.1, 0.1, 0.3] }]
        mass = [{ link = "upper", lower = 0.5 }, { link = 2, upper = 4.0 }]
        """
    )["constraints"]
    found = constraints_from_table(table)
    assert found == (
        TotalMass(upper=27.0),
        FixedValues({"Ia1": 0.0}),
        PositiveEffects(("Ia",)),
        CentreOfMassInBox(1, (-0.1, -0.1, 0.0), (0.1, 0.1, 0.3)),
        MassBounds("upper", 0.5),
        MassBounds(2, upper=4.0),
    )
    assert constraints_from_table(table_from_constraints(found)) == found
    every = tuple(case[0] for case in CASES)
    again = constraints_from_table(table_from_constraints(every))
    assert sorted(map(repr, again)) == sorted(map(repr, every))


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


def test_unknown_links_and_parameters_list_what_there_is():
    with pytest.raises(UnknownNameError, match=facts("1", "2", "upper", "elbow", "wrist", "link")):
        MassBounds("wrist", 1.0).rows(LAYOUT)
    with pytest.raises(UnknownNameError, match="unknown parameter 'Ia7'"):
        FixedValues({"Ia7": 1.0}).rows(LAYOUT)


def test_names_of_the_literature():
    given = ["L1yy", "L_2xz", "l2x", "l_3y", "m_3", "fv_1", "Ia_1", "XX4", "MX4", "M4", "FS4", "IA4", "Ixy5", "k1_2"]
    here = ["Iyy1", "Ixz2", "mx2", "my3", "m3", "fv1", "Ia1", "Ixx4", "mx4", "m4", "fc4", "Ia4", "Ixy5", "k1_2"]
    assert [canonical_name(name) for name in given] == here
    with pytest.raises(InputError, match="'L1xx' and 'XX1' both mean 'Ixx1'"):
        canonical_names(["L1xx", "XX1"])
    with pytest.raises(InputError, match="inertia about the centre of mass"):
        canonical_name("I1xx")


def test_parameters_that_a_grouping_leaves_out_become_free():
    layout = Layout.of(["L1yy", "m2", "l2x"])
    assert layout.n_named == 3
    assert layout.links == (1, 2)
    assert len(layout) == 20
    assert layout.names[int(layout.link_slots(1)[6])] == "Iyy1"


def test_layout_of_a_robot_knows_links_by_name():
    robot = random_tree(0, 3)
    layout = Layout.of_parameters(robot.parameters, robot.links)
    assert layout.contiguous
    assert layout.link_row("link2") == layout.link_row("joint2") == layout.link_row(2) == 1


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_constraints_or_says_which_do(name):
    known = [TotalMass(upper=10.0)]
    if name in methods_that_take("constraints"):
        assert method_named(name, known).constraints == tuple(known)
    else:
        with pytest.raises(InputError, match=f"'{name}' takes no constraints") as refused:
            method_named(name, known)
        assert all(other in str(refused.value) for other in methods_that_take("constraints"))


def test_constraints_stand_in_a_file_of_their_own_or_in_a_run_file(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text('robot = "arm.urdf"\n[constraints]\ntotal_mass = { upper = 27.0 }\n')
    assert read_constraints_table(path) == {"total_mass": {"upper": 27.0}}


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ("total_mass = 3", "hold total_mass, expected a table"),
        ("", "hold nothing, expected a table"),
        ("[constraints]\nweight = { upper = 1.0 }", "unknown constraint 'weight'"),
        ("[constraints]\ntotal_mass = { most = 1.0 }", "unknown entry of constraint 'total_mass' 'most'"),
        ("[constraints", "not valid TOML"),
    ],
)
def test_files_of_constraints_that_cannot_be_read(tmp_path: Path, content: str, facts: str) -> None:
    path = tmp_path / "known.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=facts) as refused:
        read_constraints_table(path)
    assert "known.toml" in str(refused.value)
    with pytest.raises(InputError, match=r"missing\.toml' cannot be read"):
        read_constraints_table(tmp_path / "missing.toml")
