"""Friction with numbers inside it: recovered from simulated motion, and its search against SciPy's general one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from dynid.dynamics.inverse_dynamics import inverse_dynamics, transmitted_load, with_transmitted_load
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.estimate import estimate_under_load, friction_alone
from dynid.estimation.friction.fit import fit_friction, fit_model, fit_residual_friction
from dynid.estimation.friction.model import FrictionModel
from dynid.estimation.friction.rows import FrictionData
from dynid.estimation.friction.search import outside
from dynid.estimation.friction.selection import choose_friction, cross_validate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.result import Outcome
from dynid.excitation.shapes import random_fourier
from dynid.model.effects.dry_friction import AsymmetricCoulomb, Coulomb, LoadCoulomb, Sigmoid, SmoothCoulomb, Stribeck
from dynid.model.effects.friction_models import friction_effects
from dynid.model.effects.linear import Armature, LoadViscous, Offset, Viscous, ViscousPolynomial
from dynid.model.effects.wrapped import Coupled
from dynid.model.friction import without_friction
from dynid.regression.base import reduce_to_base
from dynid.regression.row_filter import BandLimit
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples
from dynid.validation.prediction import validate
from messages import facts
from problems import random_tree

WRIST = ((1.0, 0.0, 0.0), (0.0, 1.0, 1.0), (0.0, 1.0, -1.0))
SMOOTH = {"smooth_width": 0.02, "smooth_time_s": 0.03}


def robot_with(effects, values=None, seed=11, n_joints=3):
    """A revolute robot with friction of ordinary size and of these symbols."""
    robot = random_tree(seed, n_joints=n_joints, kinds=("revolute",)).with_effects(effects)
    symbols = {"fv": 2.0, "fc": 3.0, "fo": 0.4, "fs": 2.0, "fsig": 6.0, "flc": 0.08, "flv": 0.03, "fvv": -0.5, "Ia": 0.2}
    symbols |= {"fcp": 3.0, "fcn": 2.0, "fvm": 1.5, "fcm": 2.5}
    named = {c.name: symbols[c.symbol] * (1.0 + 0.2 * c.number) for c in robot.parameters.columns if c.kind != "inertial"}
    return robot.with_parameters(named | (values or {}))


def record(robot, seed=0, noise=0.0, duration=20.0, rate=60.0):
    """Samples of a random Fourier motion with the robot's own torque."""
    motion = random_fourier(without_friction(robot), duration, 5, seed=seed).samples(rate)
    loaded = with_transmitted_load(robot, motion)
    tau = inverse_dynamics(robot, loaded.position, loaded.velocity, loaded.acceleration, loaded.load)
    tau = tau + noise * np.random.default_rng(seed).normal(size=tau.shape)
    return Samples(motion.time, motion.position, motion.velocity, motion.acceleration, tau, raw_torque=tau)


def blank(robot):
    return robot.with_parameters(robot.parameters.with_values(np.zeros(len(robot.parameters))))


CASES = {
    "smooth": (
        [Viscous(), SmoothCoulomb(smooth_width=(0.05, 0.02, 0.1), smooth_time_s=(0.02, 0.05, 0.03)), Offset()],
        [Viscous(), SmoothCoulomb(**SMOOTH), Offset()],
    ),
    "stribeck": (
        [
            Viscous(),
            SmoothCoulomb(smooth_width=0.01),
            Stribeck(smooth_width=0.01, stribeck_speed=(0.3, 0.15, 0.5)),
            Offset(),
        ],
        [Viscous(), SmoothCoulomb(smooth_width=0.02), Stribeck(smooth_width=0.02), Offset()],
    ),
    "exponential stribeck": (
        [Viscous(), SmoothCoulomb(smooth_width=0.01), Stribeck(smooth_width=0.01, stribeck_speed=0.3, form="exponential")],
        [Viscous(), SmoothCoulomb(smooth_width=0.02), Stribeck(smooth_width=0.02, form="exponential")],
    ),
    "sigmoid": (
        [Viscous(), Sigmoid(slope=(15.0, 6.0, 9.0), shift=(0.05, -0.03, 0.0)), Offset()],
        [Viscous(), Sigmoid(), Offset()],
    ),
    "asymmetric": ([AsymmetricCoulomb(smooth_width=0.08)], [AsymmetricCoulomb(smooth_width=0.02)]),
    "coupled": (
        [Viscous(), Coupled(SmoothCoulomb(smooth_width=0.08), WRIST), Armature()],
        [Viscous(), Coupled(SmoothCoulomb(smooth_width=0.02), WRIST), Armature()],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_inner_numbers_are_recovered(case):
    true, start = CASES[case]
    robot = robot_with(true)
    samples = record(robot)
    fitted = fit_friction(blank(robot).with_effects(start), samples)
    assert fitted.converged
    assert fitted.relative_error < 1e-4
    for effect, found in zip(robot.effects, fitted.effects, strict=True):
        for option in effect.searched_parameters():
            expected = effect.option_values(option.name, 3)
            near = 0.03 * np.maximum(np.abs(expected), 0.01)
            assert (np.abs(found.option_values(option.name, 3) - expected) < near).all(), (option.name, found)
    base = reduce_to_base(robot)
    expected = base.base_values(robot.parameters)
    np.testing.assert_allclose(base.base_values(fitted.robot.parameters), expected, atol=0.03 * np.abs(expected).max())


def test_load_dependent_friction_is_iterated_to_the_load_of_the_estimate():
    effects = [Viscous(), SmoothCoulomb(**SMOOTH), LoadCoulomb(**SMOOTH), LoadViscous(), Offset(), Armature()]
    robot = robot_with(effects, {"Ia1": 0.0})  # it could not be told from the first link, which transmits its torque
    samples = record(robot)
    fitted = fit_friction(blank(robot).with_effects(effects), samples)
    assert fitted.relative_error < 1e-4
    np.testing.assert_allclose(fitted.robot.parameters["flc2"], robot.parameters["flc2"], rtol=0.01)
    result, _, loaded = estimate_under_load(TorqueRows(blank(robot), (samples,)), [samples], OrdinaryLeastSquares())
    np.testing.assert_allclose(result.base_values, result.base.base_values(robot.parameters), atol=1e-5)
    np.testing.assert_allclose(loaded[0].load, transmitted_load(robot, samples), atol=1e-4)
    assert validate(robot, result, loaded).relative_error < 1e-5


def test_the_search_finds_what_a_general_solver_finds():
    """All unknowns at once by SciPy, from the same start, on noisy torque."""
    robot = robot_with([Viscous(), SmoothCoulomb(smooth_width=(0.05, 0.02, 0.1)), Offset()])
    samples = record(robot, noise=0.5)
    start = robot.with_effects([Viscous(), SmoothCoulomb(smooth_width=0.03), Offset()])
    fitted = fit_friction(blank(start), samples, weighted=False)
    base = reduce_to_base(robot)

    def residual(x):
        model = start.with_effects([Viscous(), SmoothCoulomb(smooth_width=tuple(np.exp(x[:3]))), Offset()])
        Y = torque_regressor(model, samples.position, samples.velocity, samples.acceleration)[:, :, base.independent]
        return (samples.torque - Y @ x[3:]).ravel()

    first = np.concatenate([np.log(np.full(3, 0.03)), base.base_values(fitted.robot.parameters)])
    general = least_squares(residual, first, x_scale="jac", ftol=1e-12, xtol=1e-12)
    ours = fitted.relative_error * np.linalg.norm(samples.torque)
    assert ours == pytest.approx(np.sqrt(2.0 * general.cost), rel=1e-5)
    np.testing.assert_allclose(fitted.effects[1].option_values("smooth_width", 3), np.exp(general.x[:3]), rtol=0.02)


@pytest.mark.parametrize("row_filter", [None, BandLimit(8.0)])
def test_the_solve_is_that_of_the_dense_system_and_its_tangents_are_exact(row_filter):
    """Coordinates on the factored rigid columns keep every length and angle."""
    robot = robot_with([Viscous(), SmoothCoulomb(smooth_width=0.05), Stribeck(smooth_width=0.05), Offset(), Armature()])
    samples = record(robot, rate=200.0, noise=0.5)
    data = FrictionData.of(blank(robot), samples, row_filter)
    model = FrictionModel(blank(robot), data)
    weights = np.array([1.0, 2.0, 0.5])

    def solved(theta):
        columns = model.columns(theta, None)
        return columns, model.solve(columns, weights, np.zeros((0, data.n_shared + len(model.names))))

    theta = model.start + 0.1
    columns, solution = solved(theta)
    dense = np.vstack([
        weights[d] * np.hstack([data.columns[d] @ data.expansions[d], columns[0] * model.incidence[d]]) for d in range(3)
    ])  # fmt: skip
    tau = np.concatenate([weights[d] * data.torque[:, d] for d in range(3)])
    values = np.linalg.lstsq(dense, tau, rcond=None)[0]
    left = tau - dense @ values
    assert solution.cost == pytest.approx(float(left @ left), rel=1e-9)
    np.testing.assert_allclose(dense @ np.concatenate([solution.shared, solution.own]), dense @ values, atol=1e-7)
    # gradient of the cost by the tangents outside the span of all columns
    basis, coordinates = model.coordinates(columns)
    A, span = model.system(basis, coordinates, weights), model.solver(coordinates, weights).span
    np.testing.assert_allclose(span @ (span.T @ A), A, atol=1e-9 * np.abs(A).max())
    J = outside(span, model.tangents(coordinates, solution.own, weights))
    gradient = -2.0 * J.T @ np.concatenate(solution.residual)
    h = 1e-5
    numeric = [(solved(theta + h * e)[1].cost - solved(theta - h * e)[1].cost) / (2.0 * h) for e in np.eye(len(theta))]
    np.testing.assert_allclose(gradient, numeric, rtol=2e-3, atol=1e-5 * np.abs(numeric).max())


def test_leaving_a_block_out_is_the_fit_without_it():
    """For a model without inner numbers the linear refit is exact."""
    robot = robot_with([Viscous(), Coulomb(), Offset()])
    samples = record(robot, duration=12.0, rate=100.0, noise=0.5)
    data = FrictionData.of(blank(robot), samples)
    fitted = fit_model(FrictionModel(blank(robot), data), weighted=False)
    trial = cross_validate(fitted, "linear", blocks=3)
    place = data.blocks(3, 0.3)
    base = reduce_to_base(robot)
    Y = torque_regressor(robot, samples.position, samples.velocity, samples.acceleration)[:, :, base.independent]
    squares = 0.0
    for block in range(3):
        known, unseen = (place != block) & (place >= 0), place == block
        beta = np.linalg.lstsq(Y[known].reshape(-1, base.n_base), samples.torque[known].ravel(), rcond=None)[0]
        squares += float(((samples.torque[unseen] - Y[unseen] @ beta) ** 2).sum())
    assert trial.error == pytest.approx(np.sqrt(squares) / np.linalg.norm(samples.torque[place >= 0]), rel=1e-6)


def test_a_separate_step_on_the_residual_of_known_bodies():
    """Gaz's way: rigid bodies known, each joint by itself; published sigmoid values of joints 2, 4 and 7."""
    effects = [Sigmoid(slope=(9.0657, 5.5903, 10.336), shift=(0.025882, 0.036194, 0.0035526))]
    robot = robot_with(effects, {"fsig1": 0.87224, "fsig2": 1.2794, "fsig3": 0.56489})
    samples = record(robot, noise=0.005)
    start = robot.with_effects([Sigmoid()]).with_parameters({f"fsig{j}": 0.0 for j in (1, 2, 3)})
    fitted = fit_residual_friction(start, samples)
    inertial = robot.parameters.n_inertial
    np.testing.assert_array_equal(fitted.robot.parameters.values[:inertial], robot.parameters.values[:inertial])
    np.testing.assert_allclose(fitted.robot.parameters.values[inertial:], robot.parameters.values[inertial:], rtol=0.01)
    np.testing.assert_allclose(fitted.effects[0].option_values("slope", 3), effects[0].slope, rtol=0.03)
    np.testing.assert_allclose(fitted.effects[0].option_values("shift", 3), effects[0].shift, atol=3e-3)
    np.testing.assert_allclose(fitted.residual_rms, 0.005, rtol=0.1)


PHI1 = (0.54615, 0.87224, 0.64068, 1.2794, 0.83904, 0.30301, 0.56489)
PHI2 = (5.1181, 9.0657, 10.136, 5.5903, 8.3469, 17.133, 10.336)
PHI3 = (0.039533, 0.025882, -0.04607, 0.036194, 0.026226, -0.021047, 0.0035526)


@pytest.mark.parametrize("bodies_held", [True, False])
def test_model_of_gaz_is_three_numbers_a_joint(bodies_held):
    """Equation 25 alone, with the published Table I as the truth: nothing beside the sigmoid, and its numbers come back."""
    values = {f"fsig{j + 1}": x for j, x in enumerate(PHI1)}
    robot = robot_with([Sigmoid(slope=PHI2, shift=PHI3)], values, n_joints=7)
    samples = record(robot, duration=10.0, rate=50.0)
    plain = robot.with_effects([Viscous(), Coulomb(), Offset()])
    if bodies_held:
        choice, result, _, _ = friction_alone(plain, [samples], "gaz")
        found = choice.robot.with_parameters(result.standard)
    else:
        found = choose_friction(plain, [samples], "gaz").robot
        found = found.with_parameters(fit_friction(found, [samples]).robot.parameters)
    assert [effect.name for effect in found.effects] == ["sigmoid"]
    values = found.effects[0].nonlinear_values(found.joints)
    assert [(one.name, one.unit) for one in values[3]] == [("slope", "s/rad"), ("shift", "rad/s")]
    table = np.array([[found.parameters[f"fsig{j + 1}"], *(one.value for one in own)] for j, own in enumerate(values)]).T
    np.testing.assert_allclose(table, [PHI1, PHI2, PHI3], rtol=5e-3, atol=1e-4)


def test_auto_takes_the_model_that_is_true_and_not_a_richer_one():
    truth = {
        "linear": [Viscous(), Coulomb(), Offset()],
        "sigmoid": [Viscous(), Sigmoid(slope=8.0, shift=0.2), Offset()],  # without a shift it is the smooth model
        "load": [Viscous(), SmoothCoulomb(**SMOOTH), LoadCoulomb(**SMOOTH), LoadViscous(), Offset()],
    }
    for model, effects in truth.items():
        robot = robot_with(effects)
        samples = record(robot, noise=0.3, duration=15.0, rate=50.0)
        start = blank(robot).with_effects([Viscous(), Coulomb(), Offset(), Armature()])
        choice = choose_friction(start, [samples], "auto")
        errors = {trial.model: trial.error for trial in choice.trials}
        assert choice.model == model, errors
        assert errors[model] <= 1.01 * min(errors.values())
        assert choice.robot.effects[-1] == Armature()  # other effects stay
        other = (
            f"linear {100.0 * errors['linear']:.2g} %"
            if model != "linear"
            else min(set(errors) - {"linear"}, key=errors.get)
        )
        note = choice.notes()[0]
        assert note.startswith(f"Friction model: {model} (held-out error {100.0 * errors[model]:.2g} %; {other}"), note


def test_cross_validation_judges_rows_it_did_not_fit():
    """Torque that is noise alone: every fit explains some of it, no prediction does."""
    robot = robot_with([Viscous(), Coulomb(), Offset()])
    samples = record(robot, duration=4.0, rate=50.0)
    noise = samples.with_torque(np.random.default_rng(0).normal(size=samples.torque.shape))
    fitted = fit_model(FrictionModel(blank(robot), FrictionData.of(blank(robot), noise)), weighted=True)
    trial = cross_validate(fitted)
    assert fitted.relative_error < 0.99
    assert trial.error > 1.0
    assert trial.rmse.shape == (3,)


def test_friction_alone_keeps_the_bodies():
    old = robot_with([Viscous(), Coulomb(), Offset(), Armature()])
    worn = old.with_parameters({f"fv{j}": 5.0 for j in (1, 2, 3)} | {f"fc{j}": 1.0 for j in (1, 2, 3)})
    samples = record(worn, seed=3)
    choice, result, _, _ = friction_alone(old, [samples], "linear")
    assert result.outcome is Outcome.SOLVED
    inertial = old.parameters.n_inertial
    np.testing.assert_allclose(result.standard.values[:inertial], old.parameters.values[:inertial], atol=1e-12)
    for name in worn.parameters.names[inertial:]:
        assert result.standard[name] == pytest.approx(worn.parameters[name], abs=1e-8), name
    origins = dict(zip(result.base.names, result.origin, strict=True))
    assert {origins[name] for name in origins if name[0] == "f"} == {"data"}
    assert {origins[name] for name in origins if name[0] != "f"} == {"prior"}
    assert choice.model == "linear"


def test_what_cannot_be_fitted_is_refused():
    robot = robot_with([Viscous(), SmoothCoulomb(**SMOOTH), Offset()])
    samples = record(robot, duration=2.0, rate=20.0)
    with pytest.raises(InputError, match="has no friction among its effects"):
        fit_friction(robot.with_effects([Armature()]), samples)
    with pytest.raises(InputError, match="samples hold motion but no torque"):
        fit_friction(robot, Samples(samples.time, samples.position, samples.velocity, samples.acceleration))
    with pytest.raises(InputError, match=facts("3 rows", "3 joints", "39 parameters")):
        fit_friction(robot, samples[:3])
    with pytest.raises(InputError, match="needs at least one set of samples, got none"):
        fit_friction(robot, [])
    with pytest.raises(InputError, match="floating base"):
        fit_friction(random_tree(1, floating=True, effects=[Viscous()]), samples)
    with pytest.raises(UnknownNameError, match=facts("linear", "smooth", "magic", "friction")):
        friction_effects("magic")
    short = fit_model(FrictionModel(robot, FrictionData.of(robot, samples[:30])), weighted=False)
    with pytest.raises(InputError, match="30 rows are too few for cross-validation over 5 blocks"):
        cross_validate(short)
    choice = choose_friction(robot.with_effects([Armature()]), [samples[:30]], "auto")
    assert (choice.model, choice.trials) == ("linear", ())
    assert "too short" in choice.notes()[0]


def test_polynomial_and_other_linear_effects_need_no_search():
    robot = robot_with([Viscous(), ViscousPolynomial((2,)), Coulomb(), Offset()])
    samples = record(robot)
    fitted = fit_friction(blank(robot), samples, weighted=False)
    assert (fitted.evaluations, fitted.rounds) == (0, 1)
    base = reduce_to_base(robot)
    expected = base.base_values(robot.parameters)
    np.testing.assert_allclose(base.base_values(fitted.robot.parameters), expected, atol=1e-7 * np.abs(expected).max())
