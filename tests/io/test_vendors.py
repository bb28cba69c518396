"""Loads in the vendors' forms, read back by parsers of their own, by Pinocchio and by MuJoCo."""

from __future__ import annotations

import json
import re

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from dynid.errors import InputError
from dynid.io.vendors import FORMS, Load, vendor_text
from dynid.model.inertia import change_of_frame, phi_from_mass_com_inertia
from messages import facts
from problems import random_phi

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
ARM = """<robot name="arm"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.1 0 0.2"/><mass value="3"/><inertia ixx="0.05" iyy="0.06" izz="0.02" ixy="0.001" ixz="0" iyz="0"/></inertial></link>
<link name="fore"><inertial><origin xyz="0 0.05 0.1"/><mass value="2"/><inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="tool0"/>
<joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
<joint name="b" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0.3 0 0.1" rpy="0.3 0.2 0.1"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
<joint name="t" type="fixed"><parent link="fore"/><child link="tool0"/><origin xyz="0.05 0 0.2" rpy="0.5 -0.4 1.2"/></joint>
{load}</robot>"""  # noqa: E501


def numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(NUMBER, text)]


def tensor(six: list[float]) -> np.ndarray:
    xx, yy, zz, xy, xz, yz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def read_franka(text: str) -> np.ndarray:
    values = numbers(text.splitlines()[0].split("setLoad")[1])
    assert len(values) == 13
    again = numbers(text.splitlines()[1].split("mass:", 1)[1])
    np.testing.assert_allclose(again, values)
    desk = json.loads("{" + text.splitlines()[2].split(": ", 1)[1] + "}")
    np.testing.assert_allclose([desk["mass"], *desk["centerOfMass"], *desk["inertia"]], values)
    return phi_from_mass_com_inertia(values[0], values[1:4], np.reshape(values[4:], (3, 3), order="F"))


def read_ur(text: str) -> np.ndarray:
    values = numbers(text.splitlines()[0].split("payload")[1])
    assert len(values) == 10
    message = dict(re.findall(rf"(ixx|iyy|izz|ixy|ixz|iyz|mass): ({NUMBER})", text.splitlines()[1]))
    assert [float(message[key]) for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")] == values[4:]
    return phi_from_mass_com_inertia(values[0], values[1:4], tensor(values[4:]))


def read_kuka(text: str) -> np.ndarray:
    body = text.split("=", 1)[1]
    found = re.fullmatch(
        rf"{{M ({NUMBER}),CM {{X ({NUMBER}),Y ({NUMBER}),Z ({NUMBER}),A ({NUMBER}),B ({NUMBER}),C ({NUMBER})}},"
        rf"J {{X ({NUMBER}),Y ({NUMBER}),Z ({NUMBER})}}}}",
        body,
    )
    assert found is not None
    m, x, y, z, a, b, c, jx, jy, jz = map(float, found.groups())
    R = Rotation.from_euler("ZYX", [a, b, c], degrees=True).as_matrix()
    return phi_from_mass_com_inertia(m, np.array([x, y, z]) / 1e3, R @ np.diag([jx, jy, jz]) @ R.T)


def read_abb(text: str) -> np.ndarray:
    assert text.startswith("PERS loaddata load:=[")
    values = numbers(text.split(":=")[1])
    assert len(values) == 11
    w, x, y, z = values[4:8]
    R = Rotation.from_quat([x, y, z, w]).as_matrix()
    return phi_from_mass_com_inertia(values[0], np.array(values[1:4]) / 1e3, R @ np.diag(values[8:]) @ R.T)


def in_pinocchio(snippet: str) -> pin.Model:
    return pin.buildModelFromXML(ARM.format(load=snippet))


def attached(phi: np.ndarray, frame: str = "tool0") -> pin.Model:
    """The arm with a body of these ten parameters fixed to a frame, by Pinocchio's own means."""
    model = in_pinocchio("")
    place = model.frames[model.getFrameId(frame)]
    model.appendBodyToJoint(place.parentJoint, pin.Inertia.FromDynamicParameters(phi), place.placement)
    return model


def mass_matrix(model: pin.Model) -> np.ndarray:
    return np.array([pin.crba(model, model.createData(), q) for q in np.random.default_rng(0).uniform(-1.0, 1.0, (3, 2))])


READERS = {"franka": read_franka, "ur": read_ur, "kuka": read_kuka, "abb": read_abb}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", READERS)
def test_round_trip_and_the_same_mass_matrix(name, seed):
    phi = random_phi(np.random.default_rng(seed))
    back = READERS[name](vendor_text(name, phi, "tool0").text)
    np.testing.assert_allclose(back, phi, rtol=0.0, atol=2e-7 * np.abs(phi).max())
    np.testing.assert_allclose(mass_matrix(attached(back)), mass_matrix(attached(phi)), atol=1e-5)


@pytest.mark.parametrize("name", READERS)
def test_a_wrong_frame_changes_the_mass_matrix(name):
    """Numbers of the link frame given to a controller that wants the flange: the check that users can make too."""
    phi = random_phi(np.random.default_rng(7))
    model = in_pinocchio("")
    placed = model.frames[model.getFrameId("tool0")].placement
    in_link = change_of_frame(placed.rotation, placed.translation) @ phi
    wrong = READERS[name](vendor_text(name, in_link, "fore").text)
    right = mass_matrix(attached(phi))
    assert np.abs(mass_matrix(attached(wrong)) - right).max() > 1e-2 * np.abs(right).max()
    assert any("fore" in note for note in vendor_text(name, in_link, "fore").notes)


@pytest.mark.parametrize("seed", range(3))
def test_urdf_link_is_what_pinocchio_reads(seed):
    phi = random_phi(np.random.default_rng(seed))
    model = in_pinocchio(vendor_text("urdf", phi, "tool0").text)
    np.testing.assert_allclose(mass_matrix(model), mass_matrix(attached(phi)), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_mjcf_body_is_what_mujoco_reads(seed):
    phi = random_phi(np.random.default_rng(seed))
    text = vendor_text("mjcf", phi, "tool0").text
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler balanceinertia="false"/><worldbody><body name="hand"><freejoint/>{text}</body></worldbody></mujoco>'
    )
    number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "load")
    w, x, y, z = model.body_iquat[number]
    R = Rotation.from_quat([x, y, z, w]).as_matrix()
    back = phi_from_mass_com_inertia(
        model.body_mass[number], model.body_ipos[number], R @ np.diag(model.body_inertia[number]) @ R.T
    )
    np.testing.assert_allclose(back, phi, rtol=0.0, atol=1e-6 * np.abs(phi).max())


def test_fanuc_and_yaskawa_hold_mass_centre_and_three_moments():
    phi = phi_from_mass_com_inertia(4.0, [0.01, -0.02, 0.15], np.diag([0.05, 0.06, 0.02]))
    lines = [line.rsplit(" ", 1) for line in vendor_text("fanuc", phi, "tool0").text.splitlines()]
    values = {label: float(value) for label, value in lines}
    centre = [values[f"PAYLOAD CENTER {axis} [cm]"] / 100.0 for axis in "XYZ"]
    moments = [values[f"PAYLOAD INERTIA {axis} [kgfcms^2]"] * 9.80665 / 100.0 for axis in "XYZ"]
    np.testing.assert_allclose(phi_from_mass_com_inertia(values["PAYLOAD [kg]"], centre, np.diag(moments)), phi, atol=1e-9)
    words = [line.split() for line in vendor_text("yaskawa", phi, "flange").text.splitlines()]
    tool = {word[0]: float(word[1]) for word in words}
    centre = [tool[f"{axis}g"] / 1e3 for axis in "XYZ"]
    back = phi_from_mass_com_inertia(tool["W"], centre, np.diag([tool["Ix"], tool["Iy"], tool["Iz"]]))
    np.testing.assert_allclose(back, phi, atol=1e-9)


def test_what_a_form_cannot_hold_or_is_not_sure_of_is_said():
    phi = random_phi(np.random.default_rng(0))
    assert any("products of inertia" in note for note in vendor_text("yaskawa", phi, "flange").notes)
    assert any("not confirmed" in note for note in vendor_text("fanuc", phi, "flange").notes)
    assert vendor_text("ur", phi, "tool0").notes == ()


def test_every_form_has_frame_units_and_sources():
    assert set(FORMS) == {"franka", "ur", "kuka", "abb", "fanuc", "yaskawa", "urdf", "mjcf"}
    for form in FORMS.values():
        assert form.sources
        assert form.frame
        assert "kg" in form.units


def test_principal_axes_of_a_load_along_its_frame_are_its_frame():
    moments, axes = Load.of(phi_from_mass_com_inertia(2.0, [0.0, 0.0, 0.1], np.diag([0.03, 0.01, 0.02]))).principal()
    np.testing.assert_allclose(axes, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(moments, [0.03, 0.01, 0.02])


def test_bad_loads_and_names_are_refused():
    with pytest.raises(InputError, match=facts("format", "epson", "kuka")):
        vendor_text("epson", random_phi(np.random.default_rng(0)))
    with pytest.raises(InputError, match=facts("not physically consistent", "tool0")):
        vendor_text("ur", np.array([1.0, 0.5, 0, 0, 1e-4, 0, 1e-4, 0, 0, 1e-4]), "tool0")


def test_hostile_names_stay_text():
    phi = random_phi(np.random.default_rng(0))
    assert "<evil" not in vendor_text("urdf", phi, "tool0", 'a"/><evil').text
    assert ";" not in vendor_text("abb", phi, "tool0", "load;stop").text.split(":=")[0]


UNKNOWN_INERTIA = [2.0, 0.0, 0.0, 0.1, 0.02, 0.0, 0.02, 0.0, 0.0, 0.01]


@pytest.mark.parametrize("name", ["franka", "ur", "kuka", "abb", "fanuc", "yaskawa"])
def test_an_inertia_that_is_not_known_is_not_pasted(name):
    """Mass and centre stay; moments are zero or left out, and a sentence says so."""
    known, unknown = (vendor_text(name, UNKNOWN_INERTIA, inertia_known=one) for one in (True, False))
    assert "0.015" in known.text or "0.152" in known.text  # kg m^2, or kgf cm s^2
    assert "0.015" not in unknown.text
    assert "0.152" not in unknown.text
    assert any("not determined" in note for note in unknown.notes)
    assert "2" in unknown.text


def test_the_pendant_of_ur_has_its_own_units():
    text = vendor_text("ur", UNKNOWN_INERTIA, inertia_known=False).text
    assert text.splitlines()[0] == "set_target_payload(2, [0, 0, 0.05])"
    assert "mass 2 kg, CX 0 mm, CY 0 mm, CZ 50 mm" in text


def test_a_simulator_needs_some_inertia():
    assert "0.015" in vendor_text("mjcf", UNKNOWN_INERTIA, inertia_known=False).text
