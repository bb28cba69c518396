"""The functions in C, C++, Python and MATLAB: each run by its own compiler or interpreter, against Pinocchio and dynid."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.errors import InputError
from dynid.io.code.languages import LANGUAGES, cpp_compiler, evaluate_source, source_parity, write_source
from dynid.model.effects.dry_friction import Coulomb, Sigmoid, SmoothCoulomb, Stribeck
from dynid.model.effects.linear import Armature, Offset, Viscous
from problems import demo_arm, planar_2r, random_tree

LANGUAGE = [
    pytest.param(name, marks=pytest.mark.skipif(not one.find_runner(), reason=f"no {one.runner} on this machine"))
    for name, one in LANGUAGES.items()
]
needs_cpp = pytest.mark.skipif(cpp_compiler() is None, reason="no C++ compiler on this machine")
EFFECTS = (
    (Viscous(), Coulomb(dead_zone=0.05), Offset(), Armature()),
    (Viscous(), SmoothCoulomb(smooth_width=0.1, smooth_time_s=0.02), Stribeck(), Armature()),
    (Viscous(), Sigmoid(), Armature()),
)


def with_friction(effects):
    robot = planar_2r(effects)
    n, values = robot.parameters.n_inertial, robot.parameters.values.copy()
    values[n:] = np.random.default_rng(0).uniform(0.1, 1.0, len(values) - n)
    return robot.with_parameters(robot.parameters.with_values(values))


@pytest.mark.parametrize("language", LANGUAGE)
@pytest.mark.parametrize("robot", [demo_arm(), random_tree(6, 3)], ids=["arm", "tree"])
def test_functions_are_those_of_pinocchio_on_500_states(language, robot, tmp_path):
    """Mass matrix, Coriolis matrix, gravity, inverse and forward dynamics of rigid bodies; dM/dt - 2 C is skew."""
    joints = tuple(replace(joint, kind="revolute") if joint.kind == "continuous" else joint for joint in robot.joints)
    robot = replace(robot.with_effects(()), joints=joints)
    path = tmp_path / f"arm{LANGUAGES[language].suffix}"
    write_source(language, robot, path, allow_inconsistent=True)
    call = evaluate_source(language, robot, path, "", tmp_path)
    model, n, rng = pinocchio_model(robot), robot.n_dof, np.random.default_rng(0)
    data = model.createData()
    q, v, a = rng.uniform(-1.0, 1.0, (3, 500, n))
    M, C = call("mass_matrix", (q,), (500, n, n)), call("coriolis_matrix", (q, v), (500, n, n))
    g, torque = call("gravity", (q,), q.shape), call("inverse_dynamics", (q, v, a), q.shape)
    c, back = call("coriolis", (q, v), q.shape), call("forward_dynamics", (q, v, torque), q.shape)
    order = [int(model.joints[model.getJointId(name)].idx_v) for name in robot.joint_names]
    there = np.argsort(order)
    largest, scale = np.abs(M).max(), np.abs(torque).max() + 1.0
    for k in range(500):
        mine = (q[k][there], v[k][there], a[k][there])
        theirs = pin.crba(model, data, mine[0])
        theirs = (np.triu(theirs) + np.triu(theirs, 1).T)[np.ix_(order, order)]
        np.testing.assert_allclose(M[k], theirs, atol=1e-12 * largest)
        np.testing.assert_allclose(torque[k], pin.rnea(model, data, *mine)[order], atol=1e-12 * scale)
        bias = pin.nonLinearEffects(model, data, *mine[:2])[order]
        gravity = pin.computeGeneralizedGravity(model, data, mine[0])[order]
        np.testing.assert_allclose(g[k], gravity, atol=1e-12 * scale)
        np.testing.assert_allclose(c[k], bias - gravity, atol=1e-12 * scale)
        np.testing.assert_allclose(C[k] @ v[k], bias - gravity, atol=1e-12 * scale)
    inverse = np.linalg.inv(M)
    np.testing.assert_allclose(back, a, atol=1e-12 * scale * np.abs(inverse).max() * n)
    step, slope = 1e-2, np.zeros_like(M)  # central differences of the sixth order
    for k, weight in ((1, 45.0), (2, -9.0), (3, 1.0)):
        ahead, behind = (call("mass_matrix", (q + side * k * step * v,), M.shape) for side in (1.0, -1.0))
        slope += weight * (ahead - behind) / (60.0 * step)
    skew = slope - 2.0 * C
    assert np.abs(skew + np.swapaxes(skew, 1, 2)).max() < 1e-9


@pytest.mark.parametrize("language", LANGUAGE)
@pytest.mark.parametrize("effects", EFFECTS, ids=["coulomb", "stribeck", "sigmoid"])
def test_friction_in_every_language(effects, language, tmp_path):
    robot = with_friction(effects)
    written = write_source(language, robot, tmp_path / f"arm{LANGUAGES[language].suffix}", prefix="arm_")
    assert source_parity(language, robot, written.path, "arm_", n_states=500) < 1e-12
    heavier = robot.with_parameters({"m2": robot.parameters["m2"] + 0.1})
    assert source_parity(language, heavier, written.path, "arm_") > 1e-4
    assert "new " not in written.path.read_text()


def test_python_module_needs_numpy_alone_and_takes_one_state_or_many(tmp_path):
    write_source("python", planar_2r(), tmp_path / "arm.py")
    script = (
        "import sys; sys.path.insert(0, '.'); import arm, numpy as np; assert 'dynid' not in sys.modules; "
        "print(arm.mass_matrix([0.1, 0.2]).shape, arm.gravity(np.zeros((3, 4, 2))).shape)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(2, 2) (3, 4, 2)"


def test_a_class_needs_a_name(tmp_path):
    with pytest.raises(InputError, match="2r"):
        write_source("matlab", planar_2r(), tmp_path / "2r.m")


@needs_cpp
def test_two_robots_in_one_program(tmp_path):
    """Two namespaces, included by two files of one program."""
    one, two = planar_2r(), with_friction(EFFECTS[0])
    write_source("cpp", one, tmp_path / "one.hpp", prefix="one_")
    write_source("cpp", two, tmp_path / "two.hpp", prefix="two_")
    head = '#include "one.hpp"\n#include "two.hpp"\n'
    (tmp_path / "a.cpp").write_text(head + "double other();\nint main() { return other() > 0.0 ? 0 : 1; }\n")
    body = "double q[2] = {0.1, 0.2}, M[2][2], N[2][2]; one::mass_matrix(q, M); two::mass_matrix(q, N); return N[0][0] - M[0][0];"
    (tmp_path / "b.cpp").write_text(f"{head}double other() {{ {body} }}\n")
    command = [str(cpp_compiler()), "-std=c++11", "-Wall", "-Wextra", "-Werror", "a.cpp", "b.cpp", "-o", "both"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "both"], check=False).returncode == 0
