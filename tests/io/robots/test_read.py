"""read_robot: formats, effects, gravity, locking; the built-in arm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid.io.robots.description as files
from dynid.dynamics.forward_dynamics import require_simulatable
from dynid.errors import InputError, UnknownNameError
from dynid.io.demo import demo_description, demo_robot
from dynid.io.robots.description import require_limits
from dynid.io.robots.read import chosen_effects, read_robot
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Viscous
from dynid.model.inertia import is_consistent
from messages import facts
from problems import ARM_MJCF, ARM_URDF


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    file = tmp_path / "arm.urdf"
    file.write_text(ARM_URDF)
    return file


def test_every_format_is_told_apart(tmp_path: Path, urdf: Path) -> None:
    (tmp_path / "arm.toml").write_text(demo_description())
    (tmp_path / "arm.xml").write_text(ARM_MJCF)
    (tmp_path / "urdf_in_disguise.xml").write_text(ARM_URDF)
    formats = {name: read_robot(tmp_path / name).source.format for name in ("arm.toml", "arm.xml")}
    assert formats == {"arm.toml": "dh", "arm.xml": "mjcf"}
    assert read_robot(tmp_path / "urdf_in_disguise.xml").source.format == read_robot(urdf).source.format == "urdf"
    assert read_robot(str(urdf)).source.path == str(urdf)


def test_effects_by_default_by_name_and_by_value(urdf: Path) -> None:
    robot = read_robot(urdf)
    assert [effect.name for effect in robot.effects] == ["viscous", "coulomb", "offset", "armature"]
    assert len(robot.parameters) == 4 * 14
    assert (robot.parameters["fv1"], robot.parameters["fc1"], robot.parameters["fc2"]) == (0.4, 0.7, 0.0)
    for nothing in ("none", (), ""):
        assert read_robot(urdf, effects=nothing).effects == ()
    assert read_robot(urdf, effects="viscous, coulomb").effects == (Viscous(), Coulomb())
    assert read_robot(urdf, effects=["viscous", Coulomb(dead_zone=0.1)]).effects == (Viscous(), Coulomb(dead_zone=0.1))
    with pytest.raises(UnknownNameError, match=facts("viscous", "coulomb", "magic")):
        chosen_effects("magic")
    with pytest.raises(InputError, match="effect 'viscous' is asked for 2 times"):
        chosen_effects([Viscous(), Viscous()])
    with pytest.raises(InputError, match="3 is not an effect"):
        chosen_effects([3])  # type: ignore[list-item]


def test_gravity_is_replaced(urdf: Path) -> None:
    np.testing.assert_array_equal(read_robot(urdf).gravity, [0.0, 0.0, -9.81])
    np.testing.assert_array_equal(read_robot(urdf, gravity=[0.0, 9.0, 0.0]).gravity, [0.0, 9.0, 0.0])
    with pytest.raises(InputError, match=facts("(2,)", "(3)", "gravity")):
        read_robot(urdf, gravity=[0.0, 9.0])


def test_locking_and_cutting(urdf: Path) -> None:
    assert read_robot(urdf, lock={"slide": 0.05}).joint_names == ("turn", "spin", "other_slide")
    cut = read_robot(urdf, joints=["turn", "spin"], lock={"slide": 0.05})
    assert cut.joint_names == ("turn", "spin")
    assert cut.source.notes[-1] == "locked and merged: other_slide = 0, slide = 0.05"
    with pytest.raises(UnknownNameError, match=facts("turn", "spin", "thumb", "arm", "joint")):
        read_robot(urdf, lock={"thumb": 0.0})
    with pytest.raises(UnknownNameError, match="unknown joint 'thumb'"):
        read_robot(urdf, joints=["turn", "thumb"])
    with pytest.raises(InputError, match="joint 'slide' cannot be locked at nan"):
        read_robot(urdf, lock={"slide": float("nan")})


def test_floating_is_for_urdf(tmp_path: Path, urdf: Path) -> None:
    assert read_robot(urdf, floating=True).n_dof == 10
    (tmp_path / "arm.toml").write_text(demo_description())
    with pytest.raises(InputError, match=facts("arm.toml", "URDF", "DH", "floating")):
        read_robot(tmp_path / "arm.toml", floating=True)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("arm.step", b"ISO-10303", facts("step", "MJCF")),
        ("arm.xml", b"<svg/>", facts("URDF", "MJCF")),
        ("arm.sdf", b"<sdf/>", facts("SDF", "version")),
        ("arm.urdf", b"", "is empty"),
        ("arm.urdf", ARM_URDF.encode()[:700], "is not well-formed XML"),
        ("arm.urdf", b'<!DOCTYPE r [<!ENTITY a "b">]><robot/>', "declares a document type or entities"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence) as caught:
        read_robot(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there_or_too_large(tmp_path: Path, urdf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"none.urdf' does not exist"):
        read_robot(tmp_path / "none.urdf")
    with pytest.raises(InputError, match="is not a file"):
        read_robot(tmp_path)
    monkeypatch.setattr(files, "LARGEST_FILE_BYTES", 100)
    with pytest.raises(InputError, match="has 2307 bytes, expected at most 100"):
        read_robot(urdf)


def test_demo_arm_is_complete_and_consistent() -> None:
    robot = demo_robot()
    assert robot.n_joints == 7
    assert is_consistent(robot.parameters.inertials).all()
    require_limits(robot, ("position", "velocity", "acceleration", "torque"))
    require_simulatable(robot)
    assert all(set(joint.nominal) == {"fv", "fc", "fo", "Ia"} for joint in robot.joints)
    assert (robot.parameters["fv1"], robot.parameters["Ia7"]) == (2.4, 0.021)
    assert robot.source.notes == ()
    assert demo_robot("none").effects == ()


def test_limits_and_mass_that_a_job_needs(urdf: Path) -> None:
    robot = read_robot(urdf)
    with pytest.raises(InputError, match=facts("dq_max", "other_slide", "velocity")):
        require_limits(robot)
    with pytest.raises(InputError, match=facts("arm", "other_finger", "link")):
        require_simulatable(robot)
    require_simulatable(robot.with_parameters({"Ia3": 0.1}))
    require_simulatable(robot.lock({"other_slide": 0.0}))
    require_limits(robot, ("position",))


@pytest.mark.parametrize("kind", ["urdf", "xml", "sdf", "toml"])
def test_numbers_that_no_machine_has_are_refused(kind, tmp_path):
    """They overflow later, in a filter, a cost or a report."""
    from fuzz.targets import DH, MJCF, SDF, URDF

    text, mass, place = {
        "urdf": (URDF, 'mass value="2"', 'xyz="0.4 0 0"'),
        "xml": (MJCF, 'mass="2"', 'pos="0.4 0 0"'),
        "sdf": (SDF, "<mass>2</mass>", ">0.4 0 0.3 "),
        "toml": (DH, "mass = 2.0", "a = 0.4"),
    }[kind]
    path = tmp_path / f"arm.{kind}"
    path.write_text(text)
    read_robot(path)
    path.write_text(text.replace(mass, mass.replace("2.0" if "2.0" in mass else "2", "1e300")))
    with pytest.raises(InputError, match=r"arm\.\w+' gives link '.*' m1 = 1e\+300 in SI units, expected at most 1e\+09"):
        read_robot(path)
    path.write_text(text.replace(place, place.replace("0.4", "1e200", 1)))
    with pytest.raises(InputError, match=r"arm\.\w+'.* (1e\+200 m from its parent|1e\+200)"):
        read_robot(path)
