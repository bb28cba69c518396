"""Conditions on parameters: exact Jacobians, errors that are not hidden, names of quantities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.base import Layout
from dynid.estimation.constraints.conditions import Condition, Reader
from dynid.estimation.methods.retrieval import PenaltyRetrieval
from dynid.model.inertia import mass_com_inertia
from noisy_logs import short_arm

ARM = short_arm()


LAYOUT = Layout.of_parameters(ARM.parameters)


def _random_phi(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return ARM.parameters.values * rng.uniform(0.8, 1.2, len(ARM.parameters))


@pytest.mark.parametrize(
    "h",
    [
        lambda p: p["c1x"] ** 2 + 3.0 * p["I2xy"] - p["m3"] / (1.0 + p["Izz1"]),
        lambda p: np.sqrt(p["c2x"] ** 2 + p["c2z"] ** 2) - 0.1,
        lambda p: np.hypot(p["c3y"], p["c3z"]) * np.exp(-p["m2"]) + np.sin(p["fv1"]) * np.cos(p["mx2"]),
        lambda p: -min(0.0, 0.5 - p["m1"]) if p["c1z"] < 10.0 else p["m2"],
        lambda p: [p["I1xx"], abs(p["I1yz"]), 2.0 - p["J2zz"], np.arctan2(p["mc2x"], p["m2"])],
        lambda p: np.log(p.mass(1)) + p.inertia_at_com(2)[0][0] - 1.0 / p.com(3)[2],
        lambda p: np.float64(2.0) * p["m1"] - p["m1"] ** 1.5 + (1.0 - p["m2"]) / p["m3"] + np.tan(p["c1x"]),
    ],
)
def test_jacobians_are_exact(h):
    condition = Condition("h", h)
    phi = _random_phi()
    values, J, exact = condition.derivative(LAYOUT, phi, np.ones(len(LAYOUT)))
    assert exact
    np.testing.assert_allclose(values, condition.values(LAYOUT, phi), rtol=1e-14)
    for i in range(len(phi)):
        step = np.zeros(len(phi))
        step[i] = 1e-6 * max(1.0, abs(phi[i]))
        slope = (condition.values(LAYOUT, phi + step) - condition.values(LAYOUT, phi - step)) / (2.0 * step[i])
        np.testing.assert_allclose(J[:, i], slope, rtol=1e-6, atol=1e-8)


def test_functions_of_plain_numbers_are_differenced():
    condition = Condition("plain", lambda p: math.sqrt(p["m1"]) - 1.0)
    phi = _random_phi()
    _, J, exact = condition.derivative(LAYOUT, phi, np.ones(len(LAYOUT)))
    assert not exact
    assert J[0, LAYOUT.index("m1")] == pytest.approx(0.5 / math.sqrt(phi[0]), rel=1e-7)


def test_errors_inside_a_condition_are_not_hidden():
    def broken(p):
        return p["m1"] + "a"

    with pytest.raises(TypeError):
        Condition("broken", broken).values(LAYOUT, _random_phi())
    with pytest.raises(InputError, match="'nan' returned"):
        Condition("nan", lambda p: float("nan")).values(LAYOUT, _random_phi())
    with pytest.raises(InputError, match="expected a function"):
        Condition("number", 3.0)
    with pytest.raises(InputError, match="2 conditions are named 'same'"):
        PenaltyRetrieval(conditions=(Condition("same", abs), Condition("same", abs)))


def test_names_of_quantities():
    phi = _random_phi()
    mass, com, inertia = mass_com_inertia(phi[:30].reshape(3, 10))
    read = Reader(LAYOUT, phi)
    assert read["c2y"] == read["cy2"] == pytest.approx(com[1, 1])
    assert read["I3xz"] == pytest.approx(inertia[2, 0, 2])
    assert read["I3yy"] == pytest.approx(inertia[2, 1, 1])
    assert read["J2xy"] == read["Ixy2"] == phi[15]
    assert read["mc2z"] == read["mz2"] == phi[13]
    assert read.mass(ARM.joint_names[1]) == mass[1]
    with pytest.raises(UnknownNameError):
        read["c9x"]
    with pytest.raises(UnknownNameError):
        read["weight1"]
