"""The functions of one robot in C++, Python and MATLAB, from the expressions that C is written of.

C++       one header, functions in a namespace of their own
Python    one module that needs NumPy alone; every function takes one state ``(n,)`` or many ``(.., n)``
MATLAB    one class with static methods, ``robot.mass_matrix(q)``; GNU Octave runs it too

Each is proven as C is: run where its compiler or interpreter is on this machine, and compared with dynid on random states.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.files import write_text
from dynid.io.code.c import comment_text
from dynid.io.code.expressions import C, Dialect
from dynid.io.code.functions import Function, check_written, function_gap, name_of, refuse_loops, robot_functions
from dynid.io.robots.simulator_joint import WrittenModel
from dynid.model.robot import Robot

PYTHON = Dialect(
    local="",
    operators={"and": "np.logical_and({0}, {1})", "or": "np.logical_or({0}, {1})"},
    calls={"fabs": "np.abs", "pow": "np.power", "fmax": "np.maximum", "fmin": "np.minimum", "atan": "np.arctan"}
    | {name: f"np.{name}" for name in ("sin", "cos", "sqrt", "tanh", "cosh", "sinh", "exp", "expm1", "log", "log1p")},
    sign="np.sign({0})",
    select="np.where({0}, {1}, {2})",
    end="",
)
MATLAB = Dialect(
    local="",
    operators={"ne": "~="},
    calls={"fabs": "abs", "pow": "power", "fmax": "max", "fmin": "min"},
    sign="sign({0})",
    select="pick_({0}, {1}, {2})",
)


def write_cpp(
    robot: Robot, path: str | os.PathLike[str], prefix: str = "", allow_inconsistent: bool = False
) -> WrittenModel:
    """Write a C++ header; its functions stand in a namespace of the robot's name, or of the prefix."""

    def text(functions: dict[str, Function], title: list[str]) -> str:
        space = prefix.rstrip("_") or name_of(robot.name)
        lines = [*(f"// {line}" for line in title), "#pragma once", "#include <cmath>", "", f"namespace {space} {{", ""]
        lines += [f"constexpr int n_dof = {robot.n_dof};", f"constexpr int n_position = {robot.n_position};", ""]
        for name, one in functions.items():
            taken = [f"const double (&{letter})[{size}]" for letter, size in one.arguments]
            result = f"double (&{one.output})" + "".join(f"[{size}]" for size in one.shape)
            lines += [
                f"// {one.purpose}",
                f"inline void {name}({', '.join([*taken, result])})",
                "{",
                "    using namespace std;",
            ]
            for letter, size in one.arguments:
                used = one.used(letter, size)
                lines += [f"    const double {letter}{k} = {letter}[{k}];" for k in used] or [f"    (void){letter};"]
            lines += [f"    {line}" for line in one.statements(_entry(one, "[{}]"), C)]
            lines += ["}", ""]
        return "\n".join([*lines, f"}} // namespace {space}", ""])

    return _write(robot, path, ".hpp", "cpp", prefix, allow_inconsistent, text)


def write_python(
    robot: Robot, path: str | os.PathLike[str], prefix: str = "", allow_inconsistent: bool = False
) -> WrittenModel:
    """Write a Python module that needs NumPy alone."""

    def text(functions: dict[str, Function], title: list[str]) -> str:
        lines = ['"""' + "\n".join(title), '"""', "", "import numpy as np", "", f"N_DOF = {robot.n_dof}", ""]
        for name, one in functions.items():
            letters = ", ".join(letter for letter, _ in one.arguments)
            lines += ["", f"def {prefix}{name}({letters}):", f'    """{one.purpose}."""']
            for letter, size in one.arguments:
                if used := one.used(letter, size):
                    lines.append(f"    {letter} = np.asarray({letter}, dtype=float)")
                    lines += [f"    {letter}{k} = {letter}[..., {k}]" for k in used]
            first = one.arguments[0][0]
            shape = ", ".join(map(str, one.shape))
            lines.append(f"    {one.output}_ = np.empty((*np.shape({first})[:-1], {shape}))")
            lines.append('    with np.errstate(divide="ignore", invalid="ignore"):')
            entries = one.statements(lambda k, one=one: f"{one.output}_[..., {_indices(one, k)}]", PYTHON)  # type: ignore[misc]
            lines += [f"        {line}" for line in entries]
            lines += [f"    return {one.output}_", ""]
        return "\n".join(lines)

    return _write(robot, path, ".py", "python", prefix, allow_inconsistent, text)


def write_matlab(
    robot: Robot, path: str | os.PathLike[str], prefix: str = "", allow_inconsistent: bool = False
) -> WrittenModel:
    """Write a MATLAB class with static methods; the file has the name of the class."""

    def text(functions: dict[str, Function], title: list[str]) -> str:
        lines = [f"classdef {Path(path).stem}", *(f"    % {line}" for line in title), "    methods (Static)"]
        for name, one in functions.items():
            letters = ", ".join(letter for letter, _ in one.arguments)
            shape = ", ".join(map(str, one.shape if len(one.shape) == 2 else (*one.shape, 1)))
            lines += [f"        function {one.output}_ = {prefix}{name}({letters})", f"            % {one.purpose}"]
            for letter, size in one.arguments:
                lines += [f"            {letter}{k} = {letter}({k + 1});" for k in one.used(letter, size)]
            lines.append(f"            {one.output}_ = zeros({shape});")
            target = lambda k, one=one: f"{one.output}_({_indices(one, k, 1)})"  # noqa: E731
            lines += [
                f"            {line}".replace("pick_(", f"{Path(path).stem}.pick_(")
                for line in one.statements(target, MATLAB)
            ]
            lines += ["        end", ""]
        lines += ["        function x = pick_(condition, yes, no)", "            % yes where the condition holds, else no"]
        lines += ["            if condition", "                x = yes;", "            else", "                x = no;"]
        return "\n".join([*lines, "            end", "        end", "    end", "end", ""])

    target = Path(path)
    if name_of(target.stem) != target.stem:
        raise InputError(
            f"MATLAB knows a class by its file, and '{target.stem}' is no name: expected letters, digits, underscores"
        )
    return _write(robot, path, ".m", "matlab", prefix, allow_inconsistent, text)


def _write(
    robot: Robot,
    path: str | os.PathLike[str],
    suffix: str,
    format: str,
    prefix: str,
    allow_inconsistent: bool,
    text: Callable[[dict[str, Function], list[str]], str],
) -> WrittenModel:
    refuse_loops(robot)
    functions = robot_functions(robot)
    notes = check_written(robot, path, suffix, prefix, allow_inconsistent, functions)
    title = [
        f"Dynamics of robot '{comment_text(robot.name)}'. SI units and radians.",
        f"Gravity {' '.join(map(repr, robot.gravity.tolist()))} m/s^2.",
        f"Joints: {', '.join(comment_text(name) for name in robot.dof_names)}.",
    ]
    plain = [line.replace('"', "'") for line in title]
    return WrittenModel(write_text(Path(path), text(functions, plain)), format, False, tuple(notes))


def _entry(one: Function, bracket: str) -> Callable[[int], str]:
    """Names the place of each output of a function."""
    return lambda k: one.output + "".join(bracket.format(index) for index in np.unravel_index(k, one.shape))


def _indices(one: Function, k: int, first: int = 0) -> str:
    return ", ".join(str(int(index) + first) for index in np.unravel_index(k, one.shape))


# Proofs -------------------------------------------------------------------------------------------
def cpp_compiler() -> str | None:
    """The C++ compiler of this machine: ``$CXX`` or ``c++``."""
    return shutil.which(os.environ.get("CXX") or "c++")


def octave() -> str | None:
    """GNU Octave on this machine."""
    return shutil.which("octave-cli") or shutil.which("octave")


def cpp_parity(robot: Robot, path: str | os.PathLike[str], prefix: str = "", n_states: int = 100, seed: int = 0) -> float:
    """Largest relative difference between the compiled header and dynid, see :func:`function_gap`."""
    from dynid.io.code.c import evaluate_compiled

    space, functions = prefix.rstrip("_") or name_of(robot.name), robot_functions(robot)
    lines = [f'#include "{Path(path).resolve()}"', 'extern "C" {']
    for name, one in functions.items():
        taken = ", ".join(f"const double *{letter}" for letter, _ in one.arguments)
        given = ", ".join(f"*reinterpret_cast<const double (*)[{size}]>({letter})" for letter, size in one.arguments)
        result = "".join(f"[{size}]" for size in one.shape)
        lines.append(
            f"void {name}({taken}, double *out) {{ {space}::{name}({given}, *reinterpret_cast<double (*){result}>(out)); }}"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "shim.cpp", Path(folder) / "shim.so"
        source.write_text("\n".join([*lines, "}", ""]))
        strict = ["-std=c++11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
        done = subprocess.run(
            [cpp_compiler() or "c++", *strict, str(source), "-o", str(library)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise InputError(f"'{path}' cannot be compiled: {next(iter(done.stderr.strip().splitlines()), done.returncode)}")
        return function_gap(robot, evaluate_compiled(library), n_states, seed)


def python_parity(robot: Robot, path: str | os.PathLike[str], prefix: str = "", n_states: int = 100, seed: int = 0) -> float:
    """Largest relative difference between the module, run by a Python of its own, and dynid, see :func:`function_gap`."""
    script = (
        "import sys, importlib.util, numpy as np\n"
        "spec = importlib.util.spec_from_file_location('written', sys.argv[1]); m = importlib.util.module_from_spec(spec)\n"
        "sys.dont_write_bytecode = True; spec.loader.exec_module(m)\n"
        "assert 'dynid' not in sys.modules\n"
        "given = np.load(sys.argv[2]); states = [given[f'x{k}'] for k in range(len(given.files))]\n"
        "np.save(sys.argv[3], getattr(m, sys.argv[4])(*states))\n"
    )
    with tempfile.TemporaryDirectory() as folder:

        def call(name: str, given: Sequence[Array], shape: tuple[int, ...]) -> Array:
            into, out = Path(folder) / "in.npz", Path(folder) / "out.npy"
            np.savez(into, **{f"x{k}": values for k, values in enumerate(given)})  # type: ignore[arg-type]
            _run([sys.executable, "-I", "-c", script, str(path), str(into), str(out), f"{prefix}{name}"], path)
            return np.asarray(np.load(out)).reshape(shape)

        return function_gap(robot, call, n_states, seed)


def matlab_parity(robot: Robot, path: str | os.PathLike[str], prefix: str = "", n_states: int = 100, seed: int = 0) -> float:
    """Largest relative difference between the class, run by GNU Octave, and dynid, see :func:`function_gap`."""
    target = Path(path).resolve()
    with tempfile.TemporaryDirectory() as folder:

        def call(name: str, given: Sequence[Array], shape: tuple[int, ...]) -> Array:
            into, out = Path(folder) / "in.txt", Path(folder) / "out.txt"
            np.savetxt(into, np.hstack(given), fmt="%.17g")
            ends = np.cumsum([0, *(values.shape[1] for values in given)])
            states = ", ".join(f"x(k, {low + 1}:{high})" for low, high in pairwise(ends))
            script = (
                f"addpath('{target.parent}'); x = load('{into}'); f = fopen('{out}', 'w'); "
                f"for k = 1:rows(x), y = {target.stem}.{prefix}{name}({states}); "
                "fprintf(f, '%.17g ', y.'); fprintf(f, \"\\n\"); end; fclose(f);"
            )
            _run([octave() or "octave", "--no-gui", "--no-init-file", "--quiet", "--eval", script], path)
            return np.loadtxt(out).reshape(shape)

        return function_gap(robot, call, n_states, seed)


def _run(command: Sequence[str], path: str | os.PathLike[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InputError(f"'{path}' cannot be run: {(done.stderr.strip().splitlines() or [str(done.returncode)])[-1]}")
