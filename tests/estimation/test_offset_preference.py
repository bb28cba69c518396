"""A weight that acts like an offset goes into mass, which simulators hold; offsets that data tell stay as they are."""

import numpy as np
import pytest

import dynid
from dynid.estimation.linear import OffsetPreference, base_to_standard

SLIDE = """
name = "slide"
gravity = [0.0, 0.0, -9.81]
dh_convention = "modified"

[[joint]]
name = "turn"
type = "revolute"
a = 0.0
alpha = 0.0
d = 0.3
theta_offset = 0.0
q_min = -2.5
q_max = 2.5
dq_max = 3.0

[[joint]]
name = "lift"
type = "prismatic"
a = 0.4
alpha = 0.0
d = 0.0
theta_offset = 0.0
q_min = -0.2
q_max = 0.2
dq_max = 1.0
"""
EFFECTS = "viscous,coulomb,offset,armature"
TRUE = {"m1": 4.0, "Izz1": 0.3, "m2": 2.0, "Ixx2": 0.02, "Iyy2": 0.02, "Izz2": 0.02, "Ia2": 2.0, "fv2": 20.0, "fo1": 0.7}


@pytest.fixture
def slide(tmp_path) -> dynid.Robot:
    """A vertical axis that carries a vertical slide, without inertials: the weight of the slide is a constant force."""
    (tmp_path / "slide.toml").write_text(SLIDE)
    return dynid.read_robot(tmp_path / "slide.toml", effects=EFFECTS)


def samples_of(robot: dynid.Robot) -> dynid.Samples:
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 8.0, 0.01)
    q, v, a = np.zeros((3, len(t), 2))
    for k in range(1, 6):
        w, A, B = 2.0 * np.pi * 0.2 * k, rng.normal(size=2) * [0.3, 0.05], rng.normal(size=2) * [0.3, 0.05]
        s, c = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
        q, v, a = q + s * A + c * B, v + w * (c * A - s * B), a - w * w * (s * A + c * B)
    tau = dynid.inverse_dynamics(robot.with_parameters(TRUE), q, v, a) + 0.01 * rng.normal(size=q.shape)
    return dynid.Samples(time=t, position=q, velocity=v, acceleration=a, torque=tau)


@pytest.mark.parametrize("method", [None, dynid.FeasibleSDP(), dynid.WeightedLeastSquares()])
def test_weight_goes_into_mass_and_not_into_an_offset(slide, method):
    data, base = dynid.build_regression(slide, samples_of(slide)), dynid.reduce_to_base(slide)
    found = dynid.estimate(data, base, method).standard
    assert found["m2"] == pytest.approx(2.0, abs=0.01)
    assert found["Ia2"] == pytest.approx(2.0, abs=0.02)
    assert found["fo2"] == pytest.approx(0.0, abs=0.05)
    assert found["fo1"] == pytest.approx(0.7, abs=0.01)  # of a vertical axis nothing else is constant: it is determined
    assert base.base_values(found) == pytest.approx(base.base_values(slide.with_parameters(TRUE).parameters), abs=0.02)


def test_the_choice_has_no_torque(slide):
    base, rng = dynid.reduce_to_base(slide), np.random.default_rng(1)
    preferred = OffsetPreference.of(base, slide.parameters)
    assert [slide.parameters.names[k] for k in preferred.columns] == ["fo2", "Ia1"]
    phi = rng.normal(size=len(slide.parameters))
    assert base.K @ preferred.shift(phi) == pytest.approx(np.zeros(base.n_base), abs=1e-9)
    moved = phi + preferred.shift(phi)
    assert [moved[k] for k in preferred.columns] == pytest.approx([0.0, 0.0], abs=1e-9)


def test_offsets_that_are_told_from_weight_are_left_alone():
    robot = dynid.demo_robot()
    base = dynid.reduce_to_base(robot)
    assert len(OffsetPreference.of(base, robot.parameters).columns) == 0
    values = base.base_values(robot.parameters)
    assert base_to_standard(base, values, robot.parameters)["fo1"] == pytest.approx(robot.parameters["fo1"])


def noisy(robot: dynid.Robot, true: dict[str, float], noise: float, seed: int, swing: float = 1.0) -> dynid.Samples:
    """The samples of the demonstration with its joints in a part of their range, torque of other parameters, and noise."""
    samples = dynid.demo_samples()
    middle = samples.position.mean(axis=0)
    q, v, a = middle + swing * (samples.position - middle), swing * samples.velocity, swing * samples.acceleration
    tau = dynid.inverse_dynamics(robot.with_parameters(true), q, v, a)
    tau = tau + noise * np.random.default_rng(seed).normal(size=tau.shape)
    return dynid.Samples(time=samples.time, position=q, velocity=v, acceleration=a, torque=tau)


def offsets(robot: dynid.Robot, values: list[float]) -> dict[str, float]:
    return dict(zip([n for n in robot.parameters.names if n.startswith("fo")], values, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_offsets_within_their_noise_are_none(seed):
    """In a part of the range an offset is hardly told from weight: without one in truth there is none in the estimate."""
    robot = dynid.demo_robot()
    none = offsets(robot, [0.0] * robot.n_dof)
    robot = robot.with_parameters(robot.parameters.updated(none).as_dict())
    base = dynid.reduce_to_base(robot)
    data = dynid.build_regression(robot, noisy(robot, none, 0.5, seed, swing=0.3))
    found, plain = (dynid.estimate(data, base, dynid.FeasibleSDP(prior=kind, weighted=True)) for kind in ("auto", "scaled"))
    assert {name: found.standard[name] for name in none} == none
    assert any(abs(plain.standard[name]) > 0.1 for name in none)  # what noise makes of them where nothing is preferred
    rows = [k for k, name in enumerate(base.names) if name in none]
    assert (found.base_values[rows] == 0.0).all()
    assert (found.sigma[rows] > 0.01).all()  # how poorly they are known is still said
    assert any("offsets lie within their noise" in note for note in found.notes)
    true = base.base_values(robot.parameters)
    assert (np.abs(found.base_values - true) < 4.0 * found.sigma + 1e-9).all()


@pytest.mark.parametrize("seed", range(3))
def test_one_offset_that_shows_leaves_all_of_them_free(seed):
    robot = dynid.demo_robot()
    true = offsets(robot, [1.0] + [0.0] * (robot.n_dof - 1))
    robot = robot.with_parameters(robot.parameters.updated(offsets(robot, [0.0] * robot.n_dof)).as_dict())
    data = dynid.build_regression(robot, noisy(robot, true, 0.5, seed))
    found = dynid.estimate(data, dynid.reduce_to_base(robot))
    assert found.standard["fo1"] == pytest.approx(1.0, abs=0.2)
    assert all(found.standard[name] != 0.0 for name in true)
    assert not any("offsets lie" in note for note in found.notes)
