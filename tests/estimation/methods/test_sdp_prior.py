"""The prior ``auto``: it acts where the data do not, never against them; and weights that share a misfit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.estimation.consistency import fit_problem
from dynid.estimation.consistency.fit_problem import described_bodies
from dynid.estimation.consistency.solve import fit_in
from dynid.estimation.constraints.base import Layout
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.model.effects.dry_friction import SmoothCoulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.inertia import is_consistent, phi_from_principal
from dynid.model.joint import Joint
from dynid.model.robot import Robot, make_robot
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.signals.samples import Samples

EFFECTS = (Viscous(), SmoothCoulomb(smooth_width=0.02), Offset(), Armature())
MASSES = (12.0, 3.0, 1.2, 0.6)
WEIGHT = 9.81 * sum(MASSES)


def torso_and_arm() -> Robot:
    """A lift with three revolute joints on it; every joint has friction."""
    rng = np.random.default_rng(3)
    joints, bodies = [], []
    for i, mass in enumerate(MASSES):
        pose = np.eye(4)
        pose[:3, 3] = (0.0, 0.0, 0.1) if i == 0 else (0.25, 0.0, 0.05)
        if i == 2:  # its axis is at a right angle to the others
            pose[:3, :3] = [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
        screw = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]) if i == 0 else np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        nominal = {"fv": 60.0 if i == 0 else 0.8, "fc": 40.0 if i == 0 else 0.5, "fo": 0.0, "Ia": 2.0 if i == 0 else 0.05}
        joints.append(Joint(f"j{i + 1}", "prismatic" if i == 0 else "revolute", i - 1, pose, screw, nominal=nominal))
        turned, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        turned[:, 0] *= np.linalg.det(turned)
        bodies.append(phi_from_principal(mass, rng.uniform(-0.1, 0.1, 3), turned, mass * rng.uniform(0.03, 0.12, 3) ** 2))
    return make_robot("torso", joints, bodies, effects=EFFECTS)


def described(robot: Robot) -> Robot:
    """Its description: masses 15 % off, no friction known, and a second link that no body can be."""
    values = np.array(robot.parameters.values)
    n = robot.parameters.n_inertial
    values[:n] *= np.repeat([1.15, 0.85, 1.15, 0.85], 10)
    values[14] = 5.0 * (values[16] + values[19])  # the triangle inequality of its moments
    values[n:] = 0.0
    return robot.with_parameters(robot.parameters.with_values(values))


def log(robot: Robot, seed: int) -> Samples:
    """Motion, and torque with noise; the force on the lift lacks gravity, as some sensors report it."""
    rng = np.random.default_rng(seed)
    time = np.arange(1500) / 100.0
    w = 2.0 * np.pi * rng.uniform(0.1, 0.9, (5, 4))
    size, phase = np.array([0.02, 0.3, 0.3, 0.3]) * rng.uniform(0.3, 1.0, (5, 4)), rng.uniform(0.0, 6.0, (5, 4))
    angle = w * time[:, None, None] + phase
    q, v, a = (part.sum(axis=1) for part in (size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)))
    torque = inverse_dynamics(robot, q, v, a)
    torque[:, 0] -= WEIGHT
    torque += np.array([1.0, 0.1, 0.05, 0.03]) * rng.normal(size=torque.shape)
    return Samples(time=time, position=q, velocity=v, acceleration=a, torque=torque)


def unseen_error(robot: Robot, standard, samples: Samples) -> float:
    found = inverse_dynamics(robot.with_parameters(standard), samples.position, samples.velocity, samples.acceleration)
    return float(np.linalg.norm(samples.torque - found) / np.linalg.norm(samples.torque))


@pytest.fixture(scope="module")
def torso():
    truth = torso_and_arm()
    robot = described(truth)
    base = reduce_to_base(robot)
    data, other = build_regression(robot, log(truth, 0)), log(truth, 1)
    found = {
        prior: FeasibleSDP(prior=prior, weighted=True).estimate(data, base, robot.parameters) for prior in ("auto", "none")
    }
    return truth, robot, other, found


def test_the_default_predicts_as_well_as_without_a_prior(torso):
    """The force lacks 165 N: a distance in SI units would pull the offset of the lift to zero, against the masses."""
    _, robot, other, found = torso
    errors = {prior: unseen_error(robot, one.standard, other) for prior, one in found.items()}
    assert errors["auto"] <= 1.02 * errors["none"]
    assert found["auto"].feasible
    data, base = build_regression(robot, log(torso_and_arm(), 0)), reduce_to_base(robot)
    before = FeasibleSDP(prior="euclidean", weighted=True).estimate(data, base, robot.parameters)
    assert unseen_error(robot, before.standard, other) > 1.1 * errors["none"]


def test_masses_that_the_data_do_not_show_stay_near_the_description(torso):
    truth, robot, _, found = torso
    standard = found["auto"].standard
    assert standard.inertials[:, 0] == pytest.approx(robot.parameters.inertials[:, 0], rel=0.3)
    # accelerating the lift shows their sum with its rotor, its weight their sum with the offset
    total = standard.inertials[:, 0].sum()
    assert total + standard["Ia1"] == pytest.approx(sum(MASSES) + truth.parameters["Ia1"], rel=0.02)
    assert standard["fo1"] + 9.81 * total == pytest.approx(0.0, abs=1.0)
    assert found["none"].standard.inertials[:, 0].sum() < 0.2 * sum(MASSES)  # without a prior, friction takes all of it


def test_friction_and_rotors_are_not_pulled(torso):
    """With everything known but friction, what the data show of friction is what least squares finds."""
    truth, _, other, _ = torso
    known = truth.with_parameters(dict.fromkeys(truth.parameters.names[truth.parameters.n_inertial :], 0.0))
    base, data = reduce_to_base(known), build_regression(known, log(truth, 0))
    held = FeasibleSDP(prior="auto", strength=1e3).estimate(data, base, known.parameters)
    assert held.standard["fc1"] == pytest.approx(40.0, rel=0.02)
    assert held.standard["fv1"] == pytest.approx(60.0, rel=0.05)
    free = FeasibleSDP().estimate(data, base, known.parameters)
    assert unseen_error(known, held.standard, other) < 1.02 * unseen_error(known, free.standard, other)


def test_a_wrong_description_is_overruled():
    """Ten times the masses, believed a hundred thousand times more than usual: the prior is weakened until the data are satisfied."""
    truth = torso_and_arm()
    values = np.array(truth.parameters.values)
    values[: truth.parameters.n_inertial] *= 10.0
    wrong = truth.with_parameters(truth.parameters.with_values(values))
    base, data, other = reduce_to_base(wrong), build_regression(wrong, log(truth, 0)), log(truth, 1)
    method = FeasibleSDP(prior="auto", strength=1e5)
    found = method.estimate(data, base, wrong.parameters)
    free = replace(method, prior="none").estimate(data, base, wrong.parameters)
    believed = replace(method, prior="entropic").estimate(data, base, wrong.parameters)
    errors = [unseen_error(wrong, one.standard, other) for one in (found, free, believed)]
    assert errors[0] <= 1.02 * errors[1]
    assert errors[2] > 1.05 * errors[1]  # without the limit it would not have been
    assert found.details["prior_strength"] < 1e5


def test_links_of_a_description_become_bodies():
    robot = described(torso_and_arm())
    layout = Layout.of_parameters(robot.parameters)
    x = robot.parameters.values / layout.scale(robot.parameters)
    assert list(is_consistent(x[layout.slots], margin=1e-4)) == [True, False, True, True]
    found = described_bodies(layout, x)
    assert is_consistent(found[layout.slots], margin=1e-3).all()
    assert np.array_equal(np.delete(found, layout.slots[1]), np.delete(x, layout.slots[1]))
    empty = np.array(x)
    empty[layout.slots[2]] = 0.0
    light = described_bodies(layout, empty)
    assert 0.0 < light[layout.slots[2]][0] < 0.1
    assert described_bodies(layout, np.zeros(len(x))) is None


def test_weights_share_what_consistency_costs():
    """A quiet joint whose rows ask for a negative rotor inertia: by its noise alone it would decide over all the others."""
    truth = torso_and_arm()
    samples = log(truth, 0)
    bent = np.array(samples.torque)
    bent[:, 2] -= 0.15 * samples.acceleration[:, 2]  # as if its rotor had -0.1 kg m^2
    samples = replace(samples, torque=bent)
    base, data = reduce_to_base(truth), build_regression(truth, samples)
    noise = estimate(data, base, OrdinaryLeastSquares())
    shared = FeasibleSDP(weighted=True).estimate(data, base, truth.parameters)

    class Alone(FeasibleSDP):
        shares_misfit = False

    alone = Alone(weighted=True).estimate(data, base, truth.parameters)
    weights = [np.array(one.details["weights"]) for one in (shared, alone)]
    assert np.ptp(np.log(weights[0])) < np.ptp(np.log(weights[1])) - 0.5
    assert noise.relative_error < shared.relative_error < alone.relative_error
    clean = FeasibleSDP(weighted=True).estimate(build_regression(truth, log(truth, 0)), base, truth.parameters)
    ratios = np.array(clean.details["weights"]) * np.array([1.0, 0.1, 0.05, 0.03])
    assert ratios == pytest.approx(np.full(4, ratios.mean()), rel=0.1)


def test_one_program_suffices_where_the_data_cannot_tell(monkeypatch: pytest.MonkeyPatch):
    """The whole prior fits as well as any parameters could: the answer is that of all programs, from one."""
    truth = torso_and_arm()
    base, data = reduce_to_base(truth), build_regression(truth, log(truth, 0))
    method, programs = FeasibleSDP(prior="auto", weighted=True), []
    monkeypatch.setattr(fit_problem, "fit_in", lambda *given, **options: programs.append(1) or fit_in(*given, **options))
    once = method.estimate(data, base, truth.parameters)
    assert len(programs) == 2  # with offsets free, and, because they lie within their noise, without
    programs.clear()
    monkeypatch.setattr(FeasibleSDP, "_at_once", lambda *_: None)
    step_by_step = method.estimate(data, base, truth.parameters)
    assert len(programs) > 2
    assert np.array_equal(once.standard.values, step_by_step.standard.values)
    assert once.details["prior_strength"] == step_by_step.details["prior_strength"] == 1.0


def test_all_programs_are_solved_where_the_data_can_tell(monkeypatch: pytest.MonkeyPatch):
    """A joint whose rows ask for a negative rotor inertia: what consistency costs is found before the prior is judged by it."""
    truth = torso_and_arm()
    samples = log(truth, 0)
    bent = np.array(samples.torque)
    bent[:, 2] -= 0.15 * samples.acceleration[:, 2]
    base, data = reduce_to_base(truth), build_regression(truth, replace(samples, torque=bent))
    found = FeasibleSDP(prior="auto", weighted=True).estimate(data, base, truth.parameters)
    monkeypatch.setattr(FeasibleSDP, "_at_once", lambda *_: None)
    step_by_step = FeasibleSDP(prior="auto", weighted=True).estimate(data, base, truth.parameters)
    assert np.array_equal(found.standard.values, step_by_step.standard.values)
    assert found.details["weights"] == step_by_step.details["weights"]
