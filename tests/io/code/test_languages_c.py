"""C export: compiled as strict C99 it equals Python to 1e-12, allocates nothing and checks itself."""

from __future__ import annotations

import ctypes
import re
import subprocess
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pinocchio as pin
import pytest

from dynid.dynamics.inverse_dynamics import random_states_within_limits
from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.dynamics.regressors import static_regressor
from dynid.errors import InconsistentModelError, InputError
from dynid.io.code.languages import c_compiler, compile_library, source_parity, write_c
from dynid.model.effects.dry_friction import AsymmetricCoulomb, Coulomb, LoadCoulomb, Sigmoid, SmoothCoulomb, Stribeck
from dynid.model.effects.effect import NonlinearParameter
from dynid.model.effects.jointwise import Coefficient, JointwiseEffect
from dynid.model.effects.linear import Armature, LoadViscous, Offset, Viscous, ViscousPolynomial
from dynid.model.effects.springs import Cable, PointSpring, Potential, TorsionSpring
from dynid.model.effects.wrapped import Coupled
from messages import facts
from problems import demo_arm, planar_2r, random_tree

CLASSICAL = (Viscous(), Coulomb(), Offset(), Armature())
COUPLING = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 1.0), (0.0, 0.0, -1.0, 1.0))

c_parity = partial(source_parity, "c")
needs_compiler = pytest.mark.skipif(c_compiler() is None, reason="no C compiler on this machine")


def with_values(robot, seed=0):
    """Every effect with a value of its own."""
    values = robot.parameters.values.copy()
    n = robot.parameters.n_inertial
    values[n:] = np.random.default_rng(seed).uniform(0.1, 1.0, len(values) - n)
    return robot.with_parameters(robot.parameters.with_values(values))


@needs_compiler
def test_rounding_of_a_link_without_inertia_is_no_difference(tmp_path):
    """Of inertias that cancel about a skew axis the inertia matrix keeps 1e-17, which no two ways compute alike."""
    robot = random_tree(5, 4)
    axis = np.array(robot.joints[3].screw[3:])
    last = np.flatnonzero([joint.parent == 3 for joint in robot.joints])
    assert not len(last)
    across = np.linalg.svd(axis[None, :])[2][1]
    # axis . I axis = 0 for I = a b^T + b a^T with b across the axis; with no mass nothing else is left in the last entry
    tensor = np.outer(axis, across) + np.outer(across, axis)
    names = ("Ixx4", "Ixy4", "Iyy4", "Ixz4", "Iyz4", "Izz4")
    entries = tensor[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    values = dict.fromkeys(("m4", "mx4", "my4", "mz4"), 0.0) | dict(zip(names, entries.tolist(), strict=True))
    robot = robot.with_parameters(values).with_effects(())
    inertia, _ = static_regressor(robot, random_states_within_limits(robot, 20, 0)[0])
    corner = (inertia @ robot.parameters.values)[:, 3, 3]
    assert np.abs(corner).max() < 1e-15
    path = write_c(robot, tmp_path / "arm.c", allow_inconsistent=True).path
    assert c_parity(robot, path) < 1e-11


@needs_compiler
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("floating", [False, True])
def test_any_tree_equals_python(tmp_path, seed, floating):
    robot = random_tree(seed, 6, floating=floating, effects=CLASSICAL)
    written = write_c(robot, tmp_path / "tree.c")
    assert c_parity(robot, written.path) < 1e-12
    assert c_parity(robot.with_parameters({"m6": robot.parameters["m6"] + 0.1}), written.path) > 1e-4


@needs_compiler
@pytest.mark.parametrize(
    "effects",
    [
        [Coulomb(dead_zone=0.2)],
        [Coulomb(smooth_width=(0.1, 0.0, 0.2, 0.3))],
        [SmoothCoulomb(dead_zone=(0.1, 0.2, 0.3, 0.4))],
        [SmoothCoulomb(smooth_width=0.0, smooth_time_s=0.01)],
        [AsymmetricCoulomb(smooth_width=0.5), ViscousPolynomial((2, 3, 5))],
        [Stribeck(stribeck_speed=1.0)],
        [Stribeck(form="exponential", stribeck_exponent=1.3, stribeck_speed=1.0, smooth_time_s=0.02)],
        [Sigmoid(slope=(1.0, 2.0, 3.0, 4.0), shift=0.1)],
        [LoadCoulomb(), LoadViscous(), Armature()],
        [Coupled(Armature(), COUPLING, (3, 4)), Coupled(Coulomb(), COUPLING), Viscous()],
        [PointSpring("gas", 0.3, (0.2, 0.4, 0.6, 0.8), exponent=1.3), Potential((1, 2))],
        [PointSpring("linear", 0.3, 0.5), TorsionSpring(0.2, find_rest=True), Cable(centre=0.1)],
    ],
    ids=lambda effects: "-".join(effect.name for effect in effects),
)
def test_every_effect_equals_python(tmp_path, effects):
    robot = with_values(random_tree(3, 4, effects=effects))
    written = write_c(robot, tmp_path / "robot.c")
    assert c_parity(robot, written.path) < 1e-12
    assert any("depends on load" in note for note in written.notes) == any(effect.loaded for effect in effects)


@needs_compiler
def test_helical_joints_equal_python(tmp_path):
    robot = planar_2r(CLASSICAL)
    screw = np.array([0.0, 0.05, 0.0, 0.0, 1.0, 0.0])
    helical = replace(robot, joints=(robot.joints[0], replace(robot.joints[1], screw=screw)))
    assert c_parity(helical, write_c(helical, tmp_path / "screw.c").path) < 1e-12


@needs_compiler
def test_demo_arm_equals_pinocchio(tmp_path):
    """The oracle here is another library: gravity, Coriolis and the inertia matrix of Pinocchio."""
    robot = demo_arm()
    library = ctypes.CDLL(str(compile_library(write_c(robot, tmp_path / "demo.c").path, tmp_path)))
    joints = tuple(replace(joint, kind="revolute") if joint.kind == "continuous" else joint for joint in robot.joints)
    model = pinocchio_model(replace(robot, joints=joints))
    working = model.createData()
    q, v = np.random.default_rng(4).uniform(-1.0, 1.0, (2, 7))
    pointer = ctypes.POINTER(ctypes.c_double)

    def call(name, n, *arrays):
        out = np.empty(n)
        getattr(library, name)(*(array.ctypes.data_as(pointer) for array in (*arrays, out)))
        return out

    gravity = pin.computeGeneralizedGravity(model, working, q)
    np.testing.assert_allclose(call("gravity", 7, q), gravity, atol=1e-12)
    bias = pin.nonLinearEffects(model, working, q, v)
    np.testing.assert_allclose(call("coriolis", 7, q, v), bias - gravity, atol=1e-12)
    M = pin.crba(model, working, q)
    M = np.triu(M) + np.triu(M, 1).T
    np.testing.assert_allclose(call("mass_matrix", 49, q).reshape(7, 7), M, atol=1e-12)


@needs_compiler
def test_output_may_overwrite_an_input(tmp_path):
    robot = demo_arm()
    library = ctypes.CDLL(str(compile_library(write_c(robot, tmp_path / "demo.c").path, tmp_path)))
    pointer = ctypes.POINTER(ctypes.c_double)
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 7))
    apart, same = np.empty(7), a.copy()
    library.inverse_dynamics(*(x.ctypes.data_as(pointer) for x in (q, v, a, apart)))
    library.inverse_dynamics(*(x.ctypes.data_as(pointer) for x in (q, v, same, same)))
    np.testing.assert_array_equal(same, apart)


@needs_compiler
def test_self_test_passes_and_can_fail(tmp_path):
    path = write_c(demo_arm(), tmp_path / "demo.c", prefix="demo_").path
    program = tmp_path / "self_test"

    def run():
        command = [c_compiler(), "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-DDYNID_SELF_TEST"]
        subprocess.run([*command, str(path), "-o", str(program), "-lm"], check=True)
        return subprocess.run([str(program)], capture_output=True, text=True, check=False)

    done = run()
    assert done.returncode == 0
    assert re.match(r"largest difference \S+ of \S+; \S+ us a call", done.stdout)
    text = path.read_text()
    first = re.search(r"= (-?\d+\.\d+e?-?\d*) \* ", text) or re.search(r" \* (\d+\.\d+)", text)
    assert first is not None
    path.write_text(text[: first.start(1)] + "7.0" + text[first.end(1) :])
    assert run().returncode == 1


@needs_compiler
def test_two_robots_in_one_program(tmp_path):
    one = write_c(planar_2r(CLASSICAL), tmp_path / "one.c", prefix="one_")
    two = write_c(demo_arm(), tmp_path / "two.c", prefix="two_")
    both = tmp_path / "both.c"
    both.write_text('#include "one.c"\n#include "two.c"\n')
    library = ctypes.CDLL(str(compile_library(both, tmp_path)))
    assert library.one_gravity is not None
    assert library.two_mass_matrix is not None
    assert c_parity(planar_2r(CLASSICAL), one.path, prefix="one_") < 1e-12
    assert c_parity(demo_arm(), two.path, prefix="two_") < 1e-12


def test_source_is_plain_c_without_state(tmp_path):
    written = write_c(demo_arm(), tmp_path / "demo.c")
    (header,) = written.companions
    text = written.path.read_text().split("#ifdef DYNID_SELF_TEST")[0]
    assert "static" not in text
    assert "malloc" not in text
    assert re.findall(r"#include .*", text) == ['#include "demo.h"', "#include <math.h>"]
    assert "#define N_DOF 7" in header.read_text()
    for name in demo_arm().joint_names:
        assert name in header.read_text()
    assert write_c(demo_arm(), tmp_path / "demo.c").path.read_text().startswith(text)


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"expected the suffix \.c"):
        write_c(planar_2r(), tmp_path / "arm.h")
    with pytest.raises(InputError, match="prefix '2r_' cannot begin a name in C"):
        write_c(planar_2r(), tmp_path / "arm.c", prefix="2r_")
    with pytest.raises(InputError, match=facts("undecided", "m.where")):
        write_c(planar_2r([Undecided()]), tmp_path / "arm.c")
    broken = planar_2r().with_parameters({"Iyy1": -1.0})
    with pytest.raises(InconsistentModelError, match="upper"):
        write_c(broken, tmp_path / "arm.c")
    assert write_c(broken, tmp_path / "arm.c", allow_inconsistent=True).notes == (
        "links upper are not physically consistent",
    )


@needs_compiler
def test_broken_source_is_told(tmp_path):
    path = tmp_path / "broken.c"
    path.write_text("void f(void) { return 1; }\n")
    with pytest.raises(InputError, match=r"broken\.c' cannot be compiled by"):
        compile_library(path, tmp_path)


def test_names_cannot_break_out_of_comments(tmp_path):
    robot = replace(planar_2r(), name="a */ int x; /* ??/ \\ ü")
    text = write_c(robot, tmp_path / "odd.c").path.read_text()
    assert "*/ int" not in text
    if c_compiler() is not None:
        assert c_parity(robot, tmp_path / "odd.c") < 1e-12


def test_an_effect_of_another_package_is_written_by_its_own_formula(tmp_path):
    robot = with_values(planar_2r([Rippled(), Coupled(Rippled(ripple=0.3), ((1.0, 1.0), (1.0, -1.0)))]))
    text = write_c(robot, tmp_path / "ripple.c").path.read_text()
    assert "cos(" in text
    if c_compiler() is not None:
        assert c_parity(robot, tmp_path / "ripple.c") < 1e-12


@dataclass(frozen=True)
class Rippled(JointwiseEffect):
    """Dry friction that varies along the way, and damping that sets in above a speed."""

    name: ClassVar[str] = "rippled"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("frip", "N m"), Coefficient("flat", "N m s/rad"))
    nonlinear: ClassVar[tuple[NonlinearParameter, ...]] = (NonlinearParameter("ripple", "1"),)
    ripple: float = 0.2

    def formula(self, m, motion, inner):
        q, v = motion.position, motion.velocity
        dry = m.sign(v) * (1.0 + inner.ripple * m.cos(2.0 * q)) ** 3
        late = m.where((v > 0.5) | (v < -0.5), lambda: v * m.exp(-abs(v)) / m.log(2.0 + v * v), 0.0)
        return dry, late + m.maximum(v, 2.0**v) - m.minimum(m.sqrt(abs(q)), m.sin(q)) + abs(v) ** 1.5


@dataclass(frozen=True)
class Undecided(Viscous):
    name: ClassVar[str] = "undecided"

    def formula(self, m, motion, inner):
        return (motion.velocity if np.all(motion.velocity > 0.0) else 0.0,)
