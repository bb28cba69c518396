"""The functions of one robot in C, C++, Python and MATLAB, for controllers and simulations that know nothing of dynid.

    tau = M(q) a + C(q, v) v + g(q) + friction(q, v, a, load)

C         C99, a source file with its header; compiled with ``-DDYNID_SELF_TEST`` it is a program that checks itself
C++       one header, functions in a namespace of their own
Python    one module that needs NumPy alone; every function takes one state ``(n,)`` or many ``(.., n)``
MATLAB    one class with static methods, ``robot.mass_matrix(q)``; GNU Octave runs it too

Each function is straight-line code made for this robot alone: its constants are folded, its zeros are gone, equal terms are computed
once. In C and C++ no memory is allocated, nothing is kept between calls, nothing but the mathematics of the standard library is
needed. The proof runs the file by its own compiler or interpreter and compares it with dynid on random states.
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics, needs_load, random_states_within_limits, transmitting
from dynid.dynamics.joint_effects import rotor_matrix
from dynid.dynamics.regressors import static_regressor
from dynid.errors import InputError
from dynid.files import write_text
from dynid.io.code.equations import Call, Function, load_dependent, name_of, robot_functions
from dynid.io.code.expressions import Dialect
from dynid.io.robots.proof import SMALLEST_SHARE, largest_gap
from dynid.io.robots.simulator_joint import WrittenModel, refuse_inconsistent
from dynid.model.friction import without_friction
from dynid.model.robot import Robot

SELF_TEST_STATES = 8
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

C = Dialect()
PYTHON = Dialect(
    local="",
    operators={"and": "np.logical_and({0}, {1})", "or": "np.logical_or({0}, {1})"},
    calls={"fabs": "np.abs", "pow": "np.power", "fmax": "np.maximum", "fmin": "np.minimum", "atan": "np.arctan"}
    | {name: f"np.{name}" for name in ("sin", "cos", "sqrt", "tanh", "cosh", "sinh", "exp", "expm1", "log", "log1p")},
    sign="np.sign({0})",
    select="np.where({0}, {1}, {2})",
    end="",
    entry=lambda name, place: f"{name}[..., {', '.join(map(str, place))}]",
    unused=None,
)
MATLAB = Dialect(
    local="",
    operators={"ne": "~="},
    calls={"fabs": "abs", "pow": "power", "fmax": "max", "fmin": "min"},
    sign="sign({0})",
    select="pick_({0}, {1}, {2})",
    entry=lambda name, place: f"{name}({', '.join(str(index + 1) for index in place)})",
    unused=None,
)


@dataclass(frozen=True, eq=False)
class Program:
    """What is written: the functions of a robot, what stands before their names, and the file."""

    robot: Robot
    functions: Mapping[str, Function]
    prefix: str
    path: Path

    @property
    def namespace(self) -> str:
        """That of C++: the prefix, or the robot's name."""
        return self.prefix.rstrip("_") or name_of(self.robot.name)

    def title(self) -> list[str]:
        """What the comment at the head of a file says."""
        base = (
            "q begins with position and quaternion (x y z w) of the base, v and a with its twist and the twist's rate in its",
            "own frame, linear part first.",
        )
        return [
            f"Dynamics of robot '{comment_text(self.robot.name)}'. SI units and radians.",
            f"Gravity {' '.join(map(repr, self.robot.gravity.tolist()))} m/s^2.",
            *(f"  {k}: {comment_text(row)}" for k, row in enumerate(self.robot.dof_names)),
            *(base if self.robot.floating else ()),
        ]


@dataclass(frozen=True)
class Language:
    """How the functions are written in a language, and how they are run."""

    suffix: str
    text: Callable[[Program], list[str]]
    evaluate: Callable[[Program, Path], Call]
    """Told the program and a folder for what is compiled."""
    runner: str = ""
    """What runs it, for people; empty where this Python does."""
    find_runner: Callable[[], str | None] = lambda: "python"
    header: Callable[[Program], list[str]] | None = None
    """A second file ``.h`` beside the first."""


def write_c(robot: Robot, path: str | os.PathLike[str], prefix: str = "", allow_inconsistent: bool = False) -> WrittenModel:
    """Write inverse dynamics as C source, with the header beside it.

    Compiled with ``-DDYNID_SELF_TEST`` the file is a program that checks itself against torques computed here and prints the
    time of a call.

    Args:
        robot: with the parameters to write.
        path: ``.c`` file to write.
        prefix: put before every name, for programs with several robots.
        allow_inconsistent: write links that no physical body can be, instead of refusing.

    Returns:
        the ``.c`` file with the header as its companion.

    Examples:
        >>> import dynid
        >>> [path.name for path in dynid.write_c(dynid.demo_robot(), "arm.c").companions]
        ['arm.h']
    """
    return write_source("c", robot, path, prefix, allow_inconsistent)


def write_source(
    name: str, robot: Robot, path: str | os.PathLike[str], prefix: str = "", allow_inconsistent: bool = False
) -> WrittenModel:
    """Write the functions of a robot in a language of :data:`LANGUAGES`; see :func:`write_c`."""
    language, target = LANGUAGES[name], Path(path)
    if robot.loops:
        raise InputError(
            f"robot '{robot.name}' has closed loops ({', '.join(robot.loops.names)}), which are not written to source; "
            "export it as mjcf, urdf or json"
        )
    if target.suffix != language.suffix:
        raise InputError(f"cannot write source to '{path}': expected the suffix {language.suffix}")
    if prefix and not _NAME.fullmatch(prefix):
        raise InputError(f"prefix '{prefix}' cannot begin a name in C, expected letters, digits and underscores")
    if name == "matlab" and name_of(target.stem) != target.stem:
        raise InputError(
            f"MATLAB knows a class by its file, and '{target.stem}' is no name: expected letters, digits, underscores"
        )
    notes = refuse_inconsistent(robot, allow_inconsistent)
    program = Program(robot, robot_functions(robot), prefix, target)
    if load_dependent(program.functions):
        notes.append(
            "friction depends on load: inverse_dynamics takes the torque without friction and rotor inertia for it, and "
            "forward_dynamics is not written"
        )
    if robot.floating:
        notes.append("a floating base has no coriolis_matrix of Christoffel symbols: it is not written")
    companions: tuple[Path, ...] = ()
    if language.header is not None:
        companions = (write_text(target.with_suffix(".h"), "\n".join([*language.header(program), ""])),)
    written = write_text(target, "\n".join([*language.text(program), ""]))
    return WrittenModel(written, name, False, tuple(notes), companions)


def source_parity(
    name: str, robot: Robot, path: str | os.PathLike[str], prefix: str = "", n_states: int = 100, seed: int = 0
) -> float:
    """Largest relative difference between the functions of a file and dynid, on random states; see :func:`function_gap`."""
    with tempfile.TemporaryDirectory() as folder:
        return function_gap(robot, evaluate_source(name, robot, path, prefix, Path(folder)), n_states, seed)


def function_gap(robot: Robot, call: Call, n_states: int = 100, seed: int = 0) -> float:
    """Largest relative difference between written functions and Python, on random states.

    Every function counts. Parts of the torque are compared with the whole of it, entries of matrices with those of the inertia matrix
    ``sqrt(M_jj M_kk)``, where diagonal entries count as no less than a share of the largest entry
    (:data:`~dynid.io.robots.proof.SMALLEST_SHARE`): a link without inertia leaves nothing but rounding there.
    """
    q, v, a = random_states_within_limits(robot, n_states, seed)
    still = np.zeros_like(v)
    load, frictionless = (inverse_dynamics(one, q, v, a) for one in (transmitting(robot), without_friction(robot)))
    total = inverse_dynamics(robot, q, v, a, load)
    gravity = inverse_dynamics(robot, q, still, still, effects=False)

    def coriolis(speed: Array) -> Array:
        return inverse_dynamics(robot, q, speed, still, effects=False) - gravity

    expected = {
        "inverse_dynamics": ((q, v, a), total),
        "gravity": ((q,), gravity),
        "coriolis": ((q, v), coriolis(v)),
        "friction": ((q, v, a, load), total - frictionless),
    }
    gaps = [largest_gap(ours, call(name, given, ours.shape), total) for name, (given, ours) in expected.items()]
    inertia, _ = static_regressor(robot, q)
    M = inertia @ robot.parameters.values[: robot.parameters.n_inertial] + rotor_matrix(robot)
    diagonal = np.abs(np.diagonal(M, axis1=1, axis2=2)).max(axis=0)
    size = np.sqrt(np.maximum(diagonal, SMALLEST_SHARE * np.abs(M).max()))
    scale = np.where((both := np.outer(size, size)) > 0.0, both, 1.0)
    gaps.append(float((np.abs(call("mass_matrix", (q,), M.shape) - M).max(axis=0) / scale).max()))
    if not needs_load(robot):
        bias = inverse_dynamics(robot, q, v, still)
        answer = call("forward_dynamics", (q, v, total), a.shape)
        gaps.append(largest_gap(total, np.einsum("nij,nj->ni", M, answer) + bias))
    if not robot.floating:  # C e_j = (c(v + e_j) - c(v) - c(e_j)) / 2, of the symmetric form that c is made of
        at_v, units = coriolis(v), np.eye(robot.n_dof)
        C = 0.5 * np.stack([coriolis(v + e) - at_v - coriolis(still + e) for e in units], axis=-1)
        fastest = 1.0 + np.abs(v).max()
        gaps.append(float((np.abs(call("coriolis_matrix", (q, v), C.shape) - C).max(axis=0) / (scale * fastest)).max()))
    return max(gaps)


def evaluate_source(name: str, robot: Robot, path: str | os.PathLike[str], prefix: str, folder: Path) -> Call:
    """The functions of a file, run by its own compiler or interpreter; what is compiled lies in the folder."""
    return LANGUAGES[name].evaluate(Program(robot, robot_functions(robot), prefix, Path(path).resolve()), folder)


# Texts --------------------------------------------------------------------------------------------
def comment_text(text: str) -> str:
    """Text that cannot end a comment or begin another one."""
    printable = "".join(character if character.isprintable() and character.isascii() else "?" for character in text)
    return printable.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("??", "? ?").replace('"', "'")


def _indented(lines: Sequence[str], levels: int = 1) -> list[str]:
    return [f"{'    ' * levels}{line}" for line in lines]


def _c_signature(name: str, one: Function, prefix: str) -> str:
    taken = [f"const double {letter}[{size}]" for letter, size in one.arguments]
    return f"void {prefix}{name}({', '.join([*taken, f'double {one.output}[{one.size}]'])})"


def _c_header(program: Program) -> list[str]:
    prefix, robot = program.prefix, program.robot
    guard = re.sub(r"[^A-Z0-9]", "_", f"{prefix}{program.path.stem}.h".upper())
    guard = guard if guard[0].isalpha() else f"DYNID_{guard}"
    count = f"{prefix}n".upper()
    lines = [
        "/*",
        *(f" * {line}".rstrip() for line in program.title()),
        " *",
        " * Functions allocate nothing, keep nothing and may run in several threads at once; an output may be the same array",
        " * as an input.",
        " */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        f"#define {count}_DOF {robot.n_dof}",
        f"#define {count}_POSITION {robot.n_position}",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for name, one in program.functions.items():
        lines += [f"/* {one.purpose} */", f"{_c_signature(name, one, prefix)};", ""]
    return [*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif"]


def _c_text(program: Program) -> list[str]:
    header = program.path.with_suffix(".h").name
    lines = [f"/* Dynamics of robot '{comment_text(program.robot.name)}'; see {header}. */", f'#include "{header}"', ""]
    lines += ["#include <math.h>", ""]
    for name, one in program.functions.items():
        flat = replace(one, shape=(one.size,))
        lines += [_c_signature(name, one, program.prefix), "{", *_indented(flat.body(C)), "}", ""]
    q, v, a = random_states_within_limits(program.robot, SELF_TEST_STATES, seed=1)
    load = inverse_dynamics(transmitting(program.robot), q, v, a)
    expected = inverse_dynamics(program.robot, q, v, a, load)
    tables = [
        f"static const double {name}[{SELF_TEST_STATES}][{values.shape[1]}] = {{"
        + ", ".join("{" + ", ".join(map(repr, row)) + "}" for row in values.tolist())
        + "};"
        for name, values in (("test_q", q), ("test_v", v), ("test_a", a), ("test_tau", expected))
    ]
    call, n = f"{program.prefix}inverse_dynamics(test_q[i], test_v[i], test_a[i], tau);", program.robot.n_dof
    text = f"""
int main(void)
{{
    double tau[{n}], gap = 0.0, size = 0.0, sum = 0.0;
    long call;
    clock_t start;
    int i, k;
    for (i = 0; i < {SELF_TEST_STATES}; ++i) {{
        {call}
        for (k = 0; k < {n}; ++k) {{
            gap = fmax(gap, fabs(tau[k] - test_tau[i][k]));
            size = fmax(size, fabs(test_tau[i][k]));
        }}
    }}
    start = clock();
    for (call = 0; call < 1000000L; ++call) {{
        i = (int)(call % {SELF_TEST_STATES});
        {call}
        sum += tau[0];
    }}
    printf("largest difference %.3g of %.3g; %.3f us a call (%g)\\n", gap, size,
           (double)(clock() - start) / CLOCKS_PER_SEC, sum);
    return gap <= 1e-9 * size ? 0 : 1;
}}"""
    return [
        *lines,
        *["#ifdef DYNID_SELF_TEST", "#include <stdio.h>", "#include <time.h>", "", *tables, *text.splitlines(), "#endif"],
    ]


def _cpp_text(program: Program) -> list[str]:
    lines = [*(f"// {line}" for line in program.title()), "#pragma once", "#include <cmath>", ""]
    lines += [f"namespace {program.namespace} {{", "", f"constexpr int n_dof = {program.robot.n_dof};"]
    lines += [f"constexpr int n_position = {program.robot.n_position};", ""]
    for name, one in program.functions.items():
        taken = [f"const double (&{letter})[{size}]" for letter, size in one.arguments]
        taken.append(f"double (&{one.output})" + "".join(f"[{size}]" for size in one.shape))
        lines += [f"// {one.purpose}", f"inline void {name}({', '.join(taken)})", "{"]
        lines += [*_indented(["using namespace std;", *one.body(C)]), "}", ""]
    return [*lines, f"}} // namespace {program.namespace}"]


def _python_text(program: Program) -> list[str]:
    lines = ['"""' + "\n".join(program.title()), '"""', "", "import numpy as np", "", f"N_DOF = {program.robot.n_dof}", ""]
    for name, one in program.functions.items():
        letters = [letter for letter, _ in one.arguments]
        shape = ", ".join(map(str, one.shape))
        named = replace(one, output=f"{one.output}_")  # tau and a are arguments of other functions
        body = [f'"""{one.purpose}."""', *(f"{letter} = np.asarray({letter}, dtype=float)" for letter in letters)]
        body += [f"{named.output} = np.empty((*{letters[0]}.shape[:-1], {shape}))"]
        body += ['with np.errstate(divide="ignore", invalid="ignore"):', *_indented(named.body(PYTHON))]
        lines += ["", f"def {program.prefix}{name}({', '.join(letters)}):"]
        lines += [*_indented([*body, f"return {named.output}"]), ""]
    return lines


def _matlab_text(program: Program) -> list[str]:
    own, methods = program.path.stem, list[str]()
    for name, one in program.functions.items():
        letters = ", ".join(letter for letter, _ in one.arguments)
        shape = ", ".join(map(str, one.shape if len(one.shape) == 2 else (*one.shape, 1)))
        named = replace(one, output=f"{one.output}_")
        methods.append(f"function {named.output} = {program.prefix}{name}({letters})")
        body = [f"% {one.purpose}", f"{named.output} = zeros({shape});", *named.body(MATLAB)]
        methods += [*_indented([line.replace("pick_(", f"{own}.pick_(") for line in body]), "end", ""]
    methods += ["function x = pick_(condition, yes, no)", "    % yes where the condition holds, else no"]
    methods += ["    if condition", "        x = yes;", "    else", "        x = no;", "    end", "end"]
    inside = [*(f"% {line}" for line in program.title()), "methods (Static)", *_indented(methods), "end"]
    return [f"classdef {own}", *_indented(inside), "end"]


# What runs them -----------------------------------------------------------------------------------
def c_compiler() -> str | None:
    """The C compiler of this machine: ``$CC`` or ``cc``."""
    return shutil.which(os.environ.get("CC") or "cc")


def cpp_compiler() -> str | None:
    """The C++ compiler of this machine: ``$CXX`` or ``c++``."""
    return shutil.which(os.environ.get("CXX") or "c++")


def octave() -> str | None:
    """GNU Octave on this machine."""
    return shutil.which("octave-cli") or shutil.which("octave")


def compile_library(path: str | os.PathLike[str], folder: str | os.PathLike[str], options: Sequence[str] = ("-O2",)) -> Path:
    """A shared library of a C or C++ file, compiled as C99 or C++11 with every warning an error."""
    cpp = Path(path).suffix == ".cpp"
    compiler, standard = (cpp_compiler(), "c++11") if cpp else (c_compiler(), "c99")
    if compiler is None:
        wanted = (
            "C++ compiler on this machine: neither $CXX nor c++" if cpp else "C compiler on this machine: neither $CC nor cc"
        )
        raise InputError(f"there is no {wanted} was found")
    library = Path(folder) / f"{Path(path).stem}.so"
    strict = [f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    _run(
        [compiler, *strict, *options, "-shared", "-fPIC", str(path), "-o", str(library), "-lm"],
        f"compiled by {compiler}",
        path,
    )
    return library


def call_library(library: Path, prefix: str = "") -> Call:
    """The functions of a compiled library, state by state."""
    import ctypes

    own, pointer = ctypes.CDLL(str(library)), ctypes.POINTER(ctypes.c_double)

    def call(name: str, given: Sequence[Array], shape: tuple[int, ...]) -> Array:
        function = own[f"{prefix}{name}"]
        function.restype, function.argtypes = None, [pointer] * (len(given) + 1)
        out, rows = np.empty(shape), [np.ascontiguousarray(values) for values in given]
        for k in range(shape[0]):
            function(*(values[k : k + 1].ctypes.data_as(pointer) for values in (*rows, out)))
        return out

    return call


def _evaluate_cpp(program: Program, folder: Path) -> Call:
    """The header behind functions with C's names and pointers."""
    lines = [f'#include "{program.path}"', 'extern "C" {']
    for name, one in program.functions.items():
        taken = ", ".join(f"const double *{letter}" for letter, _ in one.arguments)
        given = ", ".join(f"*reinterpret_cast<const double (*)[{size}]>({letter})" for letter, size in one.arguments)
        result = "*reinterpret_cast<double (*)" + "".join(f"[{size}]" for size in one.shape) + ">(out)"
        lines.append(f"void {name}({taken}, double *out) {{ {program.namespace}::{name}({given}, {result}); }}")
    source = folder / "shim.cpp"
    source.write_text("\n".join([*lines, "}", ""]))
    return call_library(compile_library(source, folder, ("-O1",)))


def call_module(path: Path, prefix: str = "") -> Call:
    """The functions of a Python module, of all states at once."""
    module = runpy.run_path(str(path))
    return lambda name, given, shape: np.asarray(module[f"{prefix}{name}"](*given)).reshape(shape)


def call_class(path: Path, prefix: str, folder: Path) -> Call:
    """The methods of a MATLAB class by GNU Octave, state by state; numbers go through files in a folder."""
    into, out = folder / "in.txt", folder / "out.txt"

    def call(name: str, given: Sequence[Array], shape: tuple[int, ...]) -> Array:
        np.savetxt(into, np.hstack(given), fmt="%.17g")
        ends = np.cumsum([0, *(values.shape[1] for values in given)])
        states = ", ".join(f"x(k, {low + 1}:{high})" for low, high in pairwise(ends))
        script = (
            f"addpath('{path.parent}'); x = load('{into}'); f = fopen('{out}', 'w'); "
            f"for k = 1:rows(x), y = {path.stem}.{prefix}{name}({states}); "
            "fprintf(f, '%.17g ', y.'); fprintf(f, \"\\n\"); end; fclose(f);"
        )
        _run([octave() or "octave", "--no-gui", "--no-init-file", "--quiet", "--eval", script], "run by GNU Octave", path)
        return np.loadtxt(out).reshape(shape)

    return call


def _run(command: Sequence[str], how: str, path: str | os.PathLike[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = next(iter(done.stderr.strip().splitlines()), f"exit code {done.returncode}")
        raise InputError(f"'{path}' cannot be {how}: {reason}")


LANGUAGES: Mapping[str, Language] = {
    "c": Language(
        ".c",
        _c_text,
        lambda program, folder: call_library(compile_library(program.path, folder), program.prefix),
        "C compiler",
        c_compiler,
        _c_header,
    ),
    "cpp": Language(".hpp", _cpp_text, _evaluate_cpp, "C++ compiler", cpp_compiler),
    "python": Language(".py", _python_text, lambda program, _folder: call_module(program.path, program.prefix)),
    "matlab": Language(
        ".m", _matlab_text, lambda program, folder: call_class(program.path, program.prefix, folder), "GNU Octave", octave
    ),
}
