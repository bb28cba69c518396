"""Rows by polynomial approximation: against plain filters, against the dynamics, online against offline."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.regressors import momentum_regressor, torque_regressor
from dynid.dynamics.simulate import exact_motion, simulate
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.excitation.shapes import random_fourier
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.effect import Effect, Motion
from dynid.model.effects.jointwise import Coefficient, JointwiseEffect
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.effects.mathematics import Mathematics, Value
from dynid.model.joint import Joint
from dynid.model.robot import Robot, make_robot
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import Regression, build_regression
from dynid.regression.polynomial_rows import (
    COMPOSITIONS,
    Composition,
    OnlinePolynomialRows,
    PolynomialRows,
    polynomial_regression,
)
from dynid.regression.row_source import Chunk
from dynid.signals.kernel_filter import RowKernel, approximate_derivatives
from dynid.signals.polynomial_kernels import PolynomialApproximation
from dynid.signals.process import process
from dynid.signals.recording import Recording, RecordingSource
from dynid.signals.samples import Samples
from dynid.signals.steps.filters import SavitzkyGolay
from dynid.signals.stream import RecordingStream
from messages import facts
from problems import demo_arm, planar_2r, random_tree
from product_rule import window_motion

DT = 0.004
PAPER = PolynomialApproximation()
SMOOTH: tuple[Effect, ...] = (Viscous(), Coulomb(smooth_width=0.5), Offset(), Armature())
OTHER = replace(PAPER, alpha=5.0, beta=5.0)
LONG = replace(PAPER, window_s=0.4)  # 101 taps: filtered by FFT


@pytest.fixture(scope="module")
def tree() -> Robot:
    return random_tree(50, 5, effects=SMOOTH)


def motion_of(robot: Robot, n: int = 300, dt: float = DT, seed: int = 0) -> Samples:
    """Noise-free samples of a smooth motion below 1 Hz."""
    rng = np.random.default_rng(seed)
    t = np.arange(n) * dt
    shape = (3, robot.n_dof)
    size, rate, phase = rng.uniform(0.2, 0.8, shape), rng.uniform(0.5, 5.0, shape), rng.uniform(0.0, 6.0, shape)
    angle = t[:, None, None] * rate + phase
    q, v = (size * np.sin(angle)).sum(axis=1), (size * rate * np.cos(angle)).sum(axis=1)
    a = -(size * rate**2 * np.sin(angle)).sum(axis=1)
    return Samples(t, q, v, a, inverse_dynamics(robot, q, v, a))


def all_rows(source: PolynomialRows) -> tuple[Array, Array, Array]:
    """Times, regressor and torque of every row."""
    return stacked(list(source.passes()), source)


def stacked(parts: list[Chunk], source: PolynomialRows) -> tuple[Array, Array, Array]:
    whole = Chunk.concatenate(parts)
    assert whole.time is not None
    W = [block[:, :-1] @ channel.expansion for block, channel in zip(whole.blocks, source.channels, strict=True)]
    return whole.time, np.stack(W, axis=1), np.stack([block[:, -1] for block in whole.blocks], axis=1)


def equation_error(source: PolynomialRows) -> float:
    """``||W phi - tau*|| / ||tau*||`` with the true parameters."""
    _, W, tau = all_rows(source)
    return float(np.linalg.norm(W @ source.robot.parameters.values - tau) / np.linalg.norm(tau))


def assert_close(one: tuple[Array, ...], other: tuple[Array, ...], tolerance: float) -> None:
    for left, right in zip(one, other, strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=tolerance * max(1.0, float(np.abs(right).max())))


# The equation -------------------------------------------------------------------------------------


def test_pointwise_rows_are_filtered_momentum_and_drift(tree: Robot) -> None:
    samples = motion_of(tree)
    time, W, tau = all_rows(PolynomialRows(tree, (samples,), composition="pointwise"))
    q, v = (signal.values for signal in approximate_derivatives(samples.position, PAPER, DT))
    A, B = with_effects(*momentum_regressor(tree, q, v), v, v)
    kernel = RowKernel.of(PAPER, DT)
    flat = kernel.rows(A.reshape(len(A), -1), B.reshape(len(B), -1))
    twice = kernel.torque(kernel.torque(samples.torque).values).values
    assert_close((W, tau), (flat.values.reshape(-1, *A.shape[1:]), twice), 1e-12)
    np.testing.assert_allclose(time, samples.time[22:] - 2 * PAPER.delay_s, rtol=0, atol=1e-12)


def test_product_rows_are_sums_over_the_nodes(tree: Robot) -> None:
    samples = motion_of(tree)
    time, W, tau = all_rows(PolynomialRows(tree, (samples,), composition="product"))
    window = window_motion(samples.position, PAPER, DT)
    shape = window.position.shape
    q, v, u = (x.reshape(-1, tree.n_dof) for x in (window.position, window.velocity, window.weighted_velocity))
    A, B = with_effects(momentum_regressor(tree, q, u)[0], momentum_regressor(tree, q, v)[1], u, v)
    expected = window.rows(*(x.reshape(*shape[:2], *x.shape[1:]) for x in (A, B)))
    assert_close((time, W, tau), (window.time, expected, RowKernel.of(PAPER, DT).torque(samples.torque).values), 1e-12)


def with_effects(A: Array, B: Array, u: Array, v: Array) -> tuple[Array, Array]:
    """The four effects of ``SMOOTH`` written out: rotor inertia is momentum, friction is lost from ``dL/dq``."""
    n, dof = v.shape
    joint = np.eye(dof)
    none = np.zeros((n, dof, dof))
    friction = [joint * v[:, None], joint * np.tanh(v / 0.5)[:, None], joint * np.ones((n, 1, dof))]
    return np.concatenate([A, none, none, none, joint * u[:, None]], 2), np.concatenate(
        [B, *(-f for f in friction), none], 2
    )


@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("seed", [51, 52])
def test_the_true_parameters_satisfy_the_rows_of_any_tree(composition: Composition, seed: int) -> None:
    robot = random_tree(seed, 6, effects=SMOOTH)
    source = PolynomialRows(robot, (motion_of(robot, seed=seed),), composition=composition)
    error = equation_error(source)
    assert error < 1e-3
    # With rotor inertia or friction of the other sign it is not: each of the columns is felt.
    for name in robot.parameters.names[robot.parameters.n_inertial :]:
        other = robot.with_parameters({name: -robot.parameters[name]})
        assert equation_error(replace(source, robot=other)) > 1.5 * error


def test_the_product_rule_approaches_no_equation_error_as_n_star_grows(tree: Robot) -> None:
    rigid = tree.with_effects([Armature()])
    samples = motion_of(rigid, 1200, 0.001)

    def error(composition: Composition, n_star: int) -> float:
        return equation_error(PolynomialRows(rigid, (samples,), replace(PAPER, product_order=n_star), composition))

    coarse, paper, fine = (error("product", n_star) for n_star in (1, 2, 4))
    assert coarse > 5 * paper > 25 * fine
    assert fine < 1e-6 < error("pointwise", 2)


@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_cubic_motion_of_a_slide_is_exact(composition: Composition) -> None:
    """``tau = m a + fv v + fo + Ia a`` is quadratic, and every filter is exact on what it sees."""
    slide = Joint("slide", "prismatic", -1, np.eye(4), np.array([1.0, 0, 0, 0, 0, 0]))
    robot = make_robot("slide", [slide], [np.array([2.0, *[0.0] * 9])], effects=[Viscous(), Offset(), Armature()])
    robot = robot.with_parameters({"fv1": 0.7, "fo1": -0.3, "Ia1": 0.4})
    t = np.arange(60) * DT
    x = t[:, None] - 0.1
    q, v, a = 3.0 * x**3 - x**2 + 0.5 * x + 2.0, 9.0 * x**2 - 2.0 * x + 0.5, 18.0 * x - 2.0
    _, W, tau = all_rows(PolynomialRows(robot, (Samples(t, q, v, a, 2.4 * a + 0.7 * v - 0.3),), composition=composition))
    np.testing.assert_allclose((W @ robot.parameters.values), tau, rtol=0, atol=1e-10)


def test_columns_that_depend_in_every_state_depend_in_momentum_and_in_drift(tree: Robot) -> None:
    """So the channels of torque rows, which leave such columns out, serve these rows as well."""
    rigid = tree.with_effects(())
    base = reduce_to_base(rigid)
    samples = motion_of(tree, 40)
    for dense in momentum_regressor(rigid, samples.position, samples.velocity):
        W = dense.reshape(-1, len(rigid.parameters))
        np.testing.assert_allclose(W, W[:, base.independent] @ base.K, rtol=0, atol=1e-10 * np.abs(W).max())


# Estimates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("composition", "tolerance"), [("pointwise", 2e-3), ("product", 2e-3)])
def test_base_parameters_of_the_arm_from_position_and_torque_alone(composition: Composition, tolerance: float) -> None:
    robot = demo_arm([Viscous(), Coulomb(smooth_width=0.5), Offset(), Armature()])
    samples = exact_motion(robot, random_fourier(robot, 5.0, 5, seed=3).samples(250.0, 2.0))
    base = reduce_to_base(robot)
    result = estimate(polynomial_regression(robot, samples, composition=composition), base, OrdinaryLeastSquares())
    truth = base.base_values(robot.parameters)
    assert np.linalg.norm(result.base_values - truth) < tolerance * np.linalg.norm(truth)
    # What else the samples hold is never read.
    nonsense = replace(samples, velocity=-7.0 * samples.velocity, acceleration=np.ones_like(samples.velocity))
    again = estimate(polynomial_regression(robot, nonsense, composition=composition), base, OrdinaryLeastSquares())
    np.testing.assert_array_equal(again.base_values, result.base_values)


def test_triangles_merge_with_those_of_torque_rows(tree: Robot) -> None:
    one, other = motion_of(tree, seed=1), motion_of(tree, seed=2)
    merged = polynomial_regression(tree, one, composition="pointwise") + build_regression(tree, other)
    assert merged.n_samples == len(one) - 22 + len(other)
    base = reduce_to_base(tree)
    result = estimate(merged, base, OrdinaryLeastSquares())
    truth = base.base_values(tree.parameters)
    assert np.linalg.norm(result.base_values - truth) < 1e-2 * np.linalg.norm(truth)


def test_other_effects_on_the_same_logs(tree: Robot) -> None:
    source = PolynomialRows(tree, (motion_of(tree),))
    fewer = replace(source, robot=tree.with_effects([Viscous()]))
    assert [channel.width for channel in fewer.channels] < [channel.width for channel in source.channels]
    kept = [tree.parameters.index(name) for name in fewer.parameters.names]
    np.testing.assert_allclose(all_rows(fewer)[1], all_rows(source)[1][:, :, kept], rtol=0, atol=1e-11)


@dataclass(frozen=True)
class LoadedFriction(JointwiseEffect):
    """``tau = fl |load| tanh(v)``."""

    name: ClassVar[str] = "loaded"
    needs_load: ClassVar[bool] = True
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fl", "1"),)

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        return (abs(motion.load) * m.tanh(motion.velocity),)


@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_friction_that_depends_on_load(composition: Composition) -> None:
    robot = planar_2r([LoadedFriction()]).with_parameters({"fl1": 0.3, "fl2": 0.2})
    rigid = motion_of(planar_2r(), 400)
    assert rigid.torque is not None
    load = rigid.torque + 60.0  # away from zero, so that |load| is smooth
    friction = np.abs(load) * np.tanh(rigid.velocity) * [0.3, 0.2]
    samples = rigid.with_torque(rigid.torque + friction).with_load(load)
    assert equation_error(PolynomialRows(robot, (samples,), composition=composition)) < 1e-3
    online = OnlinePolynomialRows(robot, PAPER, DT, composition=composition)
    online.push(samples.position[:5], load[:5], load[:5])
    with pytest.raises(InputError, match=facts("load", "sample")):
        online.push(samples.position[5], load[5])


@pytest.mark.slow
@pytest.mark.parametrize(("counts", "better"), [(2**20, True), (2**14, False)])
def test_against_savitzky_golay_on_a_simulated_arm(counts: int, better: bool) -> None:
    """Section VII holds with fine encoders, and not with coarse ones: medians over three logs of 10 s at 4 ms."""
    rows: dict[str, Callable[[Robot, Recording], Regression]] = {
        "savitzky-golay": lambda robot, log: build_regression(robot, process(log, [SavitzkyGolay(11, 2, "position")])),
        "other savitzky-golay": lambda robot, log: build_regression(robot, process(log, [SavitzkyGolay(11, 4, "position")])),
        "pointwise": lambda robot, log: polynomial_regression(robot, log, composition="pointwise"),
        "product": lambda robot, log: polynomial_regression(robot, log, composition="product"),
        "other pointwise": lambda robot, log: polynomial_regression(robot, log, OTHER, composition="pointwise"),
        "other product": lambda robot, log: polynomial_regression(robot, log, OTHER, composition="product"),
    }
    errors: dict[str, list[float]] = {name: [] for name in rows}
    changes: dict[str, list[float]] = {"savitzky-golay": [], "pointwise": [], "product": []}
    for seed in range(3):
        arm = demo_arm()
        made = simulate(
            arm, random_fourier(arm, 10.0, 15, seed=seed).samples(250.0), rate_hz=250.0, encoder_counts=counts, seed=seed
        )
        robot, base = made.robot, reduce_to_base(made.robot)
        unseen = random_fourier(robot, 10.0, 15, seed=1000).samples(50.0)
        Y = torque_regressor(robot, unseen.position, unseen.velocity, unseen.acceleration)
        Y_base = Y.reshape(-1, len(robot.parameters)) @ base.lift
        truth = base.base_values(robot.parameters)
        size = np.linalg.norm(Y_base @ truth)
        found = {}
        for name, make in rows.items():
            stack = make(robot, made.recording).stacked(base)
            found[name] = np.linalg.lstsq(stack[:, :-1], stack[:, -1])[0]
            errors[name].append(float(np.linalg.norm(Y_base @ (found[name] - truth)) / size))
        for name, change in changes.items():
            change.append(float(np.linalg.norm(Y_base @ (found[name] - found[f"other {name}"])) / size))
    error = {name: np.median(values) for name, values in errors.items()}
    change = {name: np.median(values) for name, values in changes.items()}
    assert max(error.values()) < 0.5
    for name in ("pointwise", "product"):
        assert (error[name] < 0.8 * error["savitzky-golay"]) == better
    if better:
        assert max(change["pointwise"], change["product"]) < 0.5 * change["savitzky-golay"]


# Online and in pieces -----------------------------------------------------------------------------


@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("chosen", [PAPER, LONG], ids=["44 ms", "400 ms"])
def test_online_sample_by_sample_equals_offline(
    tree: Robot, composition: Composition, chosen: PolynomialApproximation
) -> None:
    samples = motion_of(tree, 260)
    assert samples.torque is not None
    source = PolynomialRows(tree, (samples,), chosen, composition)
    online = source.online(DT)
    parts = [online.push(q, tau) for q, tau in zip(samples.position, samples.torque, strict=True)]
    assert [len(part) for part in parts] == [0] * online.n_dropped + [1] * (len(samples) - online.n_dropped)
    offline = all_rows(source)
    assert_close(stacked(parts, source), offline, 1e-12)
    newest = samples.time[online.n_dropped :]
    np.testing.assert_allclose(newest - offline[0], online.delay_s, rtol=0, atol=1e-12)


@settings(max_examples=12, deadline=None)
@given(sizes=st.lists(st.integers(0, 70), min_size=1, max_size=8), every=st.integers(1, 5), product=st.booleans())
def test_blocks_of_any_size_give_the_same_rows(sizes: list[int], every: int, product: bool) -> None:
    robot = planar_2r(SMOOTH)
    samples = motion_of(robot, 120)
    assert samples.torque is not None
    source = PolynomialRows(robot, (samples,), composition="product" if product else "pointwise", every=every)
    online = source.online(DT)
    ends = np.minimum(np.cumsum([*sizes, 120]), 120)
    starts = np.concatenate([[0], ends[:-1]])
    parts = [online.push(samples.position[a:b], samples.torque[a:b]) for a, b in zip(starts, ends, strict=True)]
    assert_close(stacked(parts, source), all_rows(source), 1e-12)
    whole = all_rows(replace(source, every=1))
    assert_close(all_rows(source), tuple(x[::every] for x in whole), 1e-14)


@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_the_chunk_size_changes_nothing(tree: Robot, composition: Composition) -> None:
    source = PolynomialRows(tree, (motion_of(tree, 700),), composition=composition)
    assert_close(all_rows(replace(source, chunk_rows=41)), all_rows(source), 1e-12)


def test_recordings_and_streams_give_what_samples_give(tree: Robot) -> None:
    samples = motion_of(tree, 200)
    expected = all_rows(PolynomialRows(tree, (samples,)))
    order = [3, 0, 4, 1, 2]
    names = tuple(tree.joint_names[k] for k in order)
    recording = Recording(samples.time, samples.position[:, order], names, torque=samples.torque[:, order])  # type: ignore[index]
    assert_close(all_rows(PolynomialRows(tree, (recording,))), expected, 0.0)

    def read(rows: int) -> Iterator[tuple[Recording, int]]:
        yield recording.rows(0, 1), 0
        for start in range(1, 200, rows):
            yield recording.rows(start, min(start + rows, 200)), 0

    stream = RecordingStream(names, ("position", "torque"), RecordingSource(), 33, read)
    assert_close(all_rows(PolynomialRows(tree, (stream,))), expected, 1e-12)
    assert_close(all_rows(PolynomialRows(tree, (Pieces(samples, (1, 13, 13, 90)),))), expected, 1e-12)


@dataclass(frozen=True)
class Pieces:
    """A stream of samples, cut at these rows."""

    samples: Samples
    cuts: tuple[int, ...]

    def __iter__(self) -> Iterator[Samples]:
        ends = [*self.cuts, len(self.samples)]
        for start, stop in zip([0, *ends], ends, strict=False):
            yield self.samples[start:stop]


def test_several_logs_stay_apart(tree: Robot) -> None:
    one, other = motion_of(tree, 150, seed=1), motion_of(tree, 140, seed=2)
    regression = polynomial_regression(tree, [one, other], composition="pointwise")
    assert regression.n_samples == 150 + 140 - 44
    apart = polynomial_regression(tree, one, composition="pointwise")
    apart += polynomial_regression(tree, other, composition="pointwise")
    for mine, theirs in zip(regression.factors, apart.factors, strict=True):
        np.testing.assert_allclose(mine.R.T @ mine.R, theirs.R.T @ theirs.R, rtol=1e-9, atol=1e-9)


def test_a_gap_starts_a_new_window(tree: Robot) -> None:
    whole = motion_of(tree, 300)
    one, other = whole[:120], whole[160:]
    names = ("time", "position", "velocity", "acceleration", "torque")
    joined = Samples(*(np.concatenate([getattr(one, name), getattr(other, name)]) for name in names))
    source = PolynomialRows(tree, (one,))
    expected = stacked([*source.passes(), *source.with_samples((other,)).passes()], source)
    assert_close(all_rows(PolynomialRows(tree, (joined,))), expected, 1e-11)


def test_the_rounding_of_large_stamps_does_not_shorten_the_window(tree: Robot) -> None:
    samples = motion_of(tree, 200)
    late = replace(samples, time=samples.time + 1.7e9)
    expected = all_rows(PolynomialRows(tree, (samples,)))
    assert_close(all_rows(PolynomialRows(tree, (late,)))[1:], expected[1:], 1e-12)


def test_memory_does_not_grow_with_the_log() -> None:
    robot = planar_2r(SMOOTH)
    piece = motion_of(robot, 1000)

    @dataclass(frozen=True)
    class Repeated:
        n: int

        def __iter__(self) -> Iterator[Samples]:
            for k in range(self.n):
                yield replace(piece, time=piece.time + 4.0 * k)

    def peak(n: int) -> int:
        tracemalloc.start()
        regression = polynomial_regression(robot, Repeated(n), composition="pointwise")
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert regression.n_samples == 1000 * n - 22
        return used

    peak(2)
    assert peak(60) < 1.3 * peak(20)


# Refusals -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Jerky(JointwiseEffect):
    name: ClassVar[str] = "jerky"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("je", "1"),)

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        return (motion.acceleration**3,)


def uneven(samples: Samples) -> Samples:
    time = np.array(samples.time)
    time[50] += 0.001
    return replace(samples, time=time)


ARM = planar_2r()
LOG = motion_of(ARM, 100)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"samples": ()}, "a regression needs at least one set of samples"),
        ({"composition": "both"}, "unknown composition 'both'; available: pointwise, product"),
        ({"every": 0}, "every is 0, expected a whole number of rows"),
        ({"chunk_rows": 0}, "chunk_rows is 0, expected at least 1"),
        (
            {"settings": replace(PAPER, beta=1.0), "composition": "pointwise"},
            "a derivative of order 1 needs alpha and beta above 1, found alpha = 3",
        ),
        (
            {"settings": replace(PAPER, alpha=2.0), "composition": "product"},
            "a derivative of order 2 needs alpha and beta above 2, found alpha = 2",
        ),
        ({"robot": random_tree(34, 3, floating=True)}, "robot 'tree34' has a floating base"),
        ({"robot": planar_2r([Jerky()])}, "effect 'jerky' depends on acceleration"),
        ({"robot": random_tree(35, 3)}, "log has 2 joints, robot has 3 joints"),
        ({"samples": (replace(LOG, torque=None),)}, "log holds positions but no torque"),
        (
            {"samples": (uneven(LOG),)},
            "not equally spaced: a step of 5 ms at 0.201 s among steps of 4 ms; resample it first",
        ),
        ({"samples": (LOG[:1],)}, "1 row, too short"),
        (
            {"samples": (LOG[:22],), "composition": "pointwise"},
            "log has 22 samples without a gap, expected at least 23 for a window of 0.044 s",
        ),
        (
            {"samples": (Recording(LOG.time, LOG.position, ("a", "b"), torque=LOG.torque),)},
            "unknown joint 'shoulder' in the recording; available: a, b",
        ),
    ],
)
def test_bad_input_is_one_sentence(options: dict[str, Any], sentence: str) -> None:
    given = {"robot": ARM, "samples": (LOG,)} | options
    with pytest.raises(InputError, match=sentence.replace("(", r"\(")):
        list(PolynomialRows(**given).passes())


def test_samples_of_another_shape_are_refused_online() -> None:
    online = OnlinePolynomialRows(ARM, PAPER, DT)
    with pytest.raises(InputError, match=facts("(1, 3)", "(any, 2)", "position")):
        online.push(np.zeros(3), np.zeros(2))
    with pytest.raises(InputError, match=facts("(1, 2)", "(4, 2)", "torque")):
        online.push(np.zeros((4, 2)), np.zeros(2))
    with pytest.raises(InputError, match="position holds 1 values that are NaN"):
        online.push([np.nan, 0.0], np.zeros(2))
    with pytest.raises(InputError, match="sample period is 0"):
        OnlinePolynomialRows(ARM, PAPER, 0.0)


def test_inputs_stay_as_they_are(tree: Robot) -> None:
    samples = motion_of(tree, 100)
    before = samples.position.copy(), samples.torque.copy()  # type: ignore[union-attr]
    polynomial_regression(tree, samples, composition="product")
    np.testing.assert_array_equal(samples.position, before[0])
    np.testing.assert_array_equal(samples.torque, before[1])
