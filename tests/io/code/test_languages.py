"""C++, Python and MATLAB: the same functions as in C, run by their own compiler or interpreter."""

import subprocess
import sys

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.io.code.languages import (
    cpp_compiler,
    cpp_parity,
    matlab_parity,
    octave,
    python_parity,
    write_cpp,
    write_matlab,
    write_python,
)
from dynid.model.effects.dry_friction import Coulomb, Sigmoid, SmoothCoulomb, Stribeck
from dynid.model.effects.linear import Armature, Offset, Viscous
from problems import planar_2r

needs_cpp = pytest.mark.skipif(cpp_compiler() is None, reason="no C++ compiler on this machine")
needs_octave = pytest.mark.skipif(octave() is None, reason="no GNU Octave on this machine")
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


@needs_cpp
@pytest.mark.parametrize("effects", EFFECTS, ids=["coulomb", "stribeck", "sigmoid"])
def test_cpp_header(effects, tmp_path):
    robot = with_friction(effects)
    written = write_cpp(robot, tmp_path / "arm.hpp")
    assert cpp_parity(robot, written.path, n_states=500) < 1e-12
    assert cpp_parity(robot.with_parameters({"m2": robot.parameters["m2"] + 0.1}), written.path) > 1e-4
    assert "new " not in written.path.read_text()


@pytest.mark.parametrize("effects", EFFECTS, ids=["coulomb", "stribeck", "sigmoid"])
def test_python_module(effects, tmp_path):
    robot = with_friction(effects)
    written = write_python(robot, tmp_path / "arm.py", prefix="arm_")
    assert python_parity(robot, written.path, "arm_", n_states=500) < 1e-12


def test_python_module_takes_one_state_or_many(tmp_path):
    write_python(planar_2r(), tmp_path / "arm.py")
    script = "import arm, numpy as np; print(arm.mass_matrix([0.1, 0.2]).shape, arm.gravity(np.zeros((3, 4, 2))).shape)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(2, 2) (3, 4, 2)"


@needs_octave
def test_matlab_class(tmp_path):
    robot = with_friction(EFFECTS[1])
    assert matlab_parity(robot, write_matlab(robot, tmp_path / "arm.m").path, n_states=500) < 1e-12


def test_a_class_needs_a_name(tmp_path):
    with pytest.raises(InputError, match="2r"):
        write_matlab(planar_2r(), tmp_path / "2r.m")


@needs_cpp
def test_two_robots_in_one_program(tmp_path):
    """Two namespaces, included by two files of one program."""
    one, two = planar_2r(), with_friction(EFFECTS[0])
    write_cpp(one, tmp_path / "one.hpp", prefix="one_")
    write_cpp(two, tmp_path / "two.hpp", prefix="two_")
    head = '#include "one.hpp"\n#include "two.hpp"\n'
    (tmp_path / "a.cpp").write_text(head + "double other();\nint main() { return other() > 0.0 ? 0 : 1; }\n")
    body = "double q[2] = {0.1, 0.2}, M[2][2], N[2][2]; one::mass_matrix(q, M); two::mass_matrix(q, N); return N[0][0] - M[0][0];"
    (tmp_path / "b.cpp").write_text(f"{head}double other() {{ {body} }}\n")
    command = [str(cpp_compiler()), "-std=c++11", "-Wall", "-Wextra", "-Werror", "a.cpp", "b.cpp", "-o", "both"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "both"], check=False).returncode == 0
