"""Names of parameters: as here, by Sousa, by Khalil."""

import pytest

from dynid.errors import InputError
from dynid.model.parameters import canonical_name, canonical_names, inertial_columns, split_name


@pytest.mark.parametrize(
    ("given", "here"),
    [("Ixy3", "Ixy3"), ("L3xy", "Ixy3"), ("L_3,yx", "Ixy3"), ("l2z", "mz2"), ("fv_4", "fv4"), ("anything", "anything")],
)
def test_names_of_others_are_understood(given, here):
    assert canonical_name(given) == here


def test_inertia_about_the_centre_of_mass_is_refused():
    with pytest.raises(InputError, match="L3xy or Ixy3"):
        canonical_name("I3xy")


def test_one_parameter_has_one_name():
    assert canonical_names(["Ixx1", "l1x"]) == ("Ixx1", "mx1")
    with pytest.raises(InputError, match="both mean 'Ixy1'"):
        canonical_names(["Ixy1", "L1xy"])


def test_a_column_is_a_symbol_and_a_joint():
    assert split_name("fvm12") == ("fvm", 12)
    assert split_name("gravity") is None
    columns = inertial_columns(2, "elbow")
    assert [column.symbol for column in columns] == ["m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"]
    assert {column.joint for column in columns} == {"elbow"}
