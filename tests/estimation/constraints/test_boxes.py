"""Links kept in the boxes around their shapes, unless the data contradict that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.bodies import realisable_in_box
from dynid.estimation.constraints.boxes import boxes_of
from dynid.estimation.constraints.densities import DensityInBox
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.recording.samples import Samples
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import Regression, build_regression
from dynid.regression.torque import inverse_dynamics
from dynid.robot.effects import Viscous
from dynid.robot.model import Robot
from problems import planar_2r, random_motion

UPPER = DensityInBox("upper", (-0.1, -0.15, -0.15), (1.05, 0.15, 0.15))
LOWER = DensityInBox("lower", (-0.1, -0.15, -0.15), (0.9, 0.15, 0.15))
AWAY = DensityInBox("lower", (-0.5, -0.15, -0.15), (-0.1, 0.15, 0.15))
"""Where the mass of the lower link is not: its centre lies at 0.4."""


@pytest.fixture(scope="module")
def truth() -> Robot:
    return planar_2r([Viscous()]).with_parameters({"fv1": 0.4, "fv2": 0.2})


@pytest.fixture(scope="module")
def data(truth: Robot) -> Regression:
    q, v, a = random_motion(truth, 400)
    torque = inverse_dynamics(truth, q, v, a) + 0.2 * np.random.default_rng(3).normal(size=q.shape)
    samples = Samples(time=np.arange(400) / 100.0, position=q, velocity=v, acceleration=a, torque=torque)
    light = truth.with_parameters({name: 0.1 * truth.parameters[name] for name in truth.parameters.names[:20]})
    return build_regression(light, samples)


@pytest.mark.parametrize("prior", ["none", "auto", "scaled"])
def test_densities_lie_in_the_boxes_at_no_cost_to_the_fit(truth: Robot, data: Regression, prior: str) -> None:
    base = reduce_to_base(truth)
    plain = FeasibleSDP(prior=prior, covariance="classical")
    free, held = (estimate(data, base, method) for method in (plain, replace(plain, boxes=(UPPER, LOWER))))
    inside = [
        [
            bool(realisable_in_box(phi, box.lower, box.upper, boundary=1e-6))
            for phi, box in zip(one.standard.inertials, (UPPER, LOWER), strict=True)
        ]
        for one in (free, held)
    ]
    assert inside[1] == [True, True]
    assert held.details["boxes"] == {"kept": ["upper", "lower"], "contradicted": {}}
    assert held.relative_error < 1.01 * free.relative_error
    if prior == "none":
        assert inside[0] != [True, True]  # so that the boxes have something to do


def test_a_box_that_the_data_contradict_is_left_out_and_named(truth: Robot, data: Regression) -> None:
    base = reduce_to_base(truth)
    plain = FeasibleSDP(prior="auto", covariance="classical")
    free, held = (estimate(data, base, method) for method in (plain, replace(plain, boxes=(UPPER, AWAY))))
    assert held.details["boxes"]["kept"] == ["upper"]
    (share,) = held.details["boxes"]["contradicted"].values()
    assert share is None or share > 0.5
    assert any("contradict that the mass of link 'lower'" in note for note in held.notes)
    assert held.relative_error < 1.01 * free.relative_error
    assert realisable_in_box(held.standard.inertials[0], UPPER.lower, UPPER.upper, boundary=1e-6)


def test_a_robot_without_shapes_has_no_boxes_and_a_note() -> None:
    boxes, notes = boxes_of(planar_2r())
    assert boxes == ()
    assert notes[0].startswith("no link is kept in the box around its shapes: robot 'planar_2r'")
