"""Constraints from tables and files."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from constraint_tables import table_from_constraints
from dynid.errors import InputError
from dynid.estimation.constraints.base import FixedValues, PositiveEffects
from dynid.estimation.constraints.bodies import CentreOfMassInBox, MassBounds, TotalMass
from dynid.estimation.constraints.bounds import constraints_from_table, read_constraints_table


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
