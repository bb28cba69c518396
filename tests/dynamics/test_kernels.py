"""What the compiled loops promise beyond their numbers: any length, one signature, buffers, an announcement."""

import logging
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from dynid.compiled import is_cached
from dynid.dynamics import kernels as kernel
from dynid.dynamics.inverse_dynamics import effect_signals, inverse_dynamics
from dynid.dynamics.lanes import LANES
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Viscous
from dynid.regression.factor import build_regression, merge_triangles
from dynid.signals.samples import Samples
from messages import facts
from problems import random_tree


@pytest.fixture(scope="module")
def robot():
    return random_tree(11, 6).with_effects([Viscous(), Coulomb(), Armature()])


def motion(robot, n, seed=0):
    return np.random.default_rng(seed).normal(size=(3, n, robot.n_dof))


@pytest.mark.parametrize("n", [0, 1, LANES - 1, LANES, LANES + 1, 3 * LANES + 5])
def test_a_sample_does_not_depend_on_its_neighbours_in_the_block(robot, n):
    q, v, a = motion(robot, n)
    Y, tau = torque_regressor(robot, q, v, a), inverse_dynamics(robot, q, v, a)
    assert Y.shape == (n, robot.n_dof, len(robot.parameters))
    for k in range(n):
        np.testing.assert_allclose(torque_regressor(robot, q[k], v[k], a[k])[0], Y[k], rtol=0, atol=1e-13 * abs(Y[k]).max())
        np.testing.assert_allclose(inverse_dynamics(robot, q[k], v[k], a[k])[0], tau[k], atol=1e-12 * abs(tau[k]).max())


def test_an_array_is_filled_again(robot):
    first = torque_regressor(robot, *motion(robot, 700))
    q, v, a = motion(robot, 700, seed=1)
    fresh = torque_regressor(robot, q, v, a)
    assert not np.array_equal(first, fresh)
    again = torque_regressor(robot, q, v, a, reuse=first)
    assert again is first
    np.testing.assert_array_equal(again, fresh)


def test_arrays_that_cannot_be_filled_are_refused(robot):
    q, v, a = motion(robot, 4)
    Y = torque_regressor(robot, q, v, a)
    with pytest.raises(InputError, match=facts("(3, 6, 78)", "(4, 6, 78)")):
        torque_regressor(robot, q, v, a, reuse=Y[:3])
    with pytest.raises(InputError, match="array to reuse is float32"):
        torque_regressor(robot, q, v, a, reuse=Y.astype(np.float32))
    with pytest.raises(InputError, match="expected a C-ordered float64 array"):
        torque_regressor(robot, q, v, a, reuse=np.asfortranarray(Y))


def test_every_caller_uses_the_one_compiled_signature(robot):
    q, v, a = motion(robot, 100)
    tau = inverse_dynamics(robot, q, v, a)
    torque_regressor(robot, q, v, a)
    torque_regressor(robot, q[::2], list(v[::2]), np.asfortranarray(a[::2]))
    build_regression(robot, Samples(np.arange(100.0), q, v, a, tau))
    for compiled in (kernel.rigid_body_rows, kernel.signal_rows, kernel.fold):
        assert len(compiled.signatures) == 1, compiled


@pytest.mark.parametrize("rows", [1, 7, 200])
def test_folding_is_a_qr_of_the_stack(rows):
    rng = np.random.default_rng(rows)
    n = 30
    R, block = np.triu(rng.normal(size=(n, n))), rng.normal(size=(rows, n))
    columns = np.array(R.T, order="C")
    assert kernel.fold(columns, np.array(block.T, order="C"), 0, 12, np.empty(24 * n)) == 0
    np.testing.assert_array_equal(np.tril(columns.T, -1), 0.0)
    np.testing.assert_allclose(columns @ columns.T, R.T @ R + block.T @ block, atol=1e-12 * rows)


def test_merging_triangles_keeps_their_products():
    rng = np.random.default_rng(0)
    triangles = np.triu(rng.normal(size=(5, 17, 17)))
    before = triangles.copy()
    R = merge_triangles(triangles)
    np.testing.assert_array_equal(triangles, before)
    np.testing.assert_array_equal(np.tril(R, -1), 0.0)
    np.testing.assert_allclose(R.T @ R, sum(T.T @ T for T in triangles), atol=1e-12)


def test_refused_arguments_are_said():
    # the leading dimension of R is its size, so a panel wider than the columns is what LAPACK can refuse
    assert kernel.fold(np.zeros((3, 3)), np.zeros((3, 2)), 0, 5, np.zeros(60)) == -4


@pytest.mark.slow
def test_the_first_compilation_is_announced_and_cached(tmp_path):
    script = textwrap.dedent(
        """
        import logging, sys
        logging.basicConfig(stream=sys.stdout, format="%(message)s")
        import numpy as np
        from dynid.io.demo import demo_robot
        from dynid.dynamics.inverse_dynamics import inverse_dynamics
        robot = demo_robot()
        inverse_dynamics(robot, *np.zeros((3, 2, 7)))
        inverse_dynamics(robot, *np.zeros((3, 2, 7)))
        """
    )

    def run():
        environment = {"NUMBA_CACHE_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    assert run() == "compiling rigid_body_rows, once on this machine, a few seconds\n"
    assert run() == ""


def test_what_was_compiled_in_this_process_is_announced_no_more(robot, caplog):
    q, v, a = motion(robot, 2)
    inverse_dynamics(robot, q, v, a)
    with caplog.at_level(logging.WARNING, logger="dynid"):
        inverse_dynamics(robot, q, v, a)
    assert not caplog.records
    assert is_cached(kernel.rigid_body_rows)


def test_signals_have_one_layout(robot):
    q, v, a = (np.asfortranarray(part) for part in motion(robot, 50))
    assert effect_signals(robot, q, v, a).flags.c_contiguous
