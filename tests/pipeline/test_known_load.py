"""What is known of a load: mass and shape as constraints."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynid.errors import InputError
from dynid.estimation.constraints.bodies import CentreOfMassInHull, MassBounds
from dynid.pipeline.known_load import known_load

TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\n"


def test_a_mass_bounds_every_body() -> None:
    assert known_load(2.0, links=(1, 3)) == (MassBounds(1, 2.0, 2.0), MassBounds(3, 2.0, 2.0))
    with pytest.raises(InputError, match="--mass is -1"):
        known_load(-1.0)


def test_shapes_of_all_kinds(tmp_path: Path) -> None:
    mesh = tmp_path / "part.obj"
    mesh.write_text(TETRAHEDRON)
    kinds = {
        text.partition(":")[0]: [one.kind for one in known_load(shape=text)]
        for text in (
            "box:0,0,0,1,1,1",
            "cylinder:0,0,0,0,0,1,0.2",
            f"mesh:{mesh}",
        )
    }
    assert kinds["box"] == ["density_box"]
    assert [len(found) for found in kinds.values()] == [1, 2, 2]
    assert isinstance(known_load(shape=f"mesh:{mesh}")[0], CentreOfMassInHull)
    with pytest.raises(InputError, match="--shape is 'ball:1'"):
        known_load(shape="ball:1")
