"""C99 of one robot: inverse and forward dynamics, inertia matrix, gravity, Coriolis vector and matrix, and friction, for controllers.

    tau = M(q) a + C(q, v) v + g(q) + friction(q, v, a, load)

Each function is straight-line code made for this robot alone: its constants are folded, its zeros are gone, equal terms are
computed once. No memory is allocated, nothing is kept between calls, nothing but ``math.h`` is needed. The proof compiles
the file and compares it with Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits, transmitting
from dynid.errors import InputError
from dynid.files import write_text
from dynid.io.code.functions import Call, Function, check_written, function_gap, refuse_loops, robot_functions
from dynid.io.robots.simulator_joint import WrittenModel
from dynid.model.robot import Robot

SELF_TEST_STATES = 8


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
    refuse_loops(robot)
    target, pieces = Path(path), robot_functions(robot)
    notes = check_written(robot, target, ".c", prefix, allow_inconsistent, pieces)
    header = target.with_suffix(".h")
    write_text(header, _header(robot, pieces, prefix, header.name))
    written = write_text(target, _source(robot, pieces, prefix, header.name))
    return WrittenModel(written, "c", False, tuple(notes), (header,))


# Text ---------------------------------------------------------------------------------------------


def _signature(name: str, piece: Function, prefix: str) -> str:
    taken = [f"const double {letter}[{size}]" for letter, size in piece.arguments]
    return f"void {prefix}{name}({', '.join([*taken, f'double {piece.output}[{piece.size}]'])})"


def _header(robot: Robot, pieces: Mapping[str, Function], prefix: str, name: str) -> str:
    guard = re.sub(r"[^A-Z0-9]", "_", f"{prefix}{name}".upper())
    guard = guard if guard[0].isalpha() else f"DYNID_{guard}"
    count = f"{prefix}n".upper()
    base = [
        " *",
        " * q begins with position and quaternion (x y z w) of the base, v and a with its twist and the twist's rate in its",
        " * own frame, linear part first.",
    ]
    lines = [
        "/*",
        f" * Dynamics of robot '{comment_text(robot.name)}'.",
        " *",
        " * SI units and radians. Functions allocate nothing, keep nothing and may run in several threads at once;",
        " * an output may be the same array as an input.",
        f" * Gravity {' '.join(map(repr, robot.gravity.tolist()))} m/s^2.",
        " *",
        *(f" *   {k}: {comment_text(row)}" for k, row in enumerate(robot.dof_names)),
        *(base if robot.floating else ()),
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
    for function, piece in pieces.items():
        lines += [f"/* {piece.purpose} */", f"{_signature(function, piece, prefix)};", ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _source(robot: Robot, pieces: Mapping[str, Function], prefix: str, header: str) -> str:
    lines = [
        f"/* Dynamics of robot '{comment_text(robot.name)}'; see {header}. */",
        f'#include "{header}"',
        "",
        "#include <math.h>",
        "",
    ]
    for function, piece in pieces.items():
        lines += [_signature(function, piece, prefix), "{"]
        lines += [f"    {line}" for line in _inside(piece)]
        lines += ["}", ""]
    return "\n".join([*lines, *_self_test(robot, prefix), ""])


def _inside(piece: Function) -> list[str]:
    """Inputs into locals first, so that outputs may overwrite them."""
    lines = []
    for letter, size in piece.arguments:
        used = piece.used(letter, size)
        lines += [f"const double {letter}{k} = {letter}[{k}];" for k in used] or [f"(void){letter};"]
    return lines + piece.statements(lambda k: f"{piece.output}[{k}]")


def _self_test(robot: Robot, prefix: str) -> list[str]:
    q, v, a = random_states_within_limits(robot, SELF_TEST_STATES, seed=1)
    load = inverse_dynamics(transmitting(robot), q, v, a)
    expected = inverse_dynamics(robot, q, v, a, load)
    n = robot.n_dof
    table = [
        f"static const double {name}[{SELF_TEST_STATES}][{values.shape[1]}] = {{"
        + ", ".join("{" + ", ".join(map(repr, row)) + "}" for row in values.tolist())
        + "};"
        for name, values in (("test_q", q), ("test_v", v), ("test_a", a), ("test_tau", expected))
    ]
    return [
        "#ifdef DYNID_SELF_TEST",
        "#include <stdio.h>",
        "#include <time.h>",
        "",
        *table,
        "",
        "int main(void)",
        "{",
        f"    double tau[{n}], gap = 0.0, size = 0.0, sum = 0.0;",
        "    long call;",
        "    clock_t start;",
        "    int i, k;",
        f"    for (i = 0; i < {SELF_TEST_STATES}; ++i) {{",
        f"        {prefix}inverse_dynamics(test_q[i], test_v[i], test_a[i], tau);",
        f"        for (k = 0; k < {n}; ++k) {{",
        "            gap = fmax(gap, fabs(tau[k] - test_tau[i][k]));",
        "            size = fmax(size, fabs(test_tau[i][k]));",
        "        }",
        "    }",
        "    start = clock();",
        "    for (call = 0; call < 1000000L; ++call) {",
        f"        i = (int)(call % {SELF_TEST_STATES});",
        f"        {prefix}inverse_dynamics(test_q[i], test_v[i], test_a[i], tau);",
        "        sum += tau[0];",
        "    }",
        '    printf("largest difference %.3g of %.3g; %.3f us a call (%g)\\n", gap, size,',
        "           (double)(clock() - start) / CLOCKS_PER_SEC, sum);",
        "    return gap <= 1e-9 * size ? 0 : 1;",
        "}",
        "#endif",
    ]


def comment_text(text: str) -> str:
    """Text that cannot end a comment or begin another one."""
    printable = "".join(character if character.isprintable() and character.isascii() else "?" for character in text)
    return printable.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("??", "? ?")


# The proof ----------------------------------------------------------------------------------------


def c_compiler() -> str | None:
    """The C compiler of this machine: ``$CC`` or ``cc``."""
    return shutil.which(os.environ.get("CC") or "cc")


def compile_c(path: str | os.PathLike[str], folder: str | os.PathLike[str], options: Sequence[str] = ("-O2",)) -> Any:
    """A ``ctypes.CDLL`` of a C file, compiled as C99 with every warning an error."""
    import ctypes

    compiler = c_compiler()
    if compiler is None:
        raise InputError("there is no C compiler on this machine: neither $CC nor cc was found")
    library = Path(folder) / f"{Path(path).stem}.so"
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    command = [compiler, *strict, *options, "-shared", "-fPIC", str(path), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = next(iter(done.stderr.strip().splitlines()), f"exit code {done.returncode}")
        raise InputError(f"'{path}' cannot be compiled by {compiler}: {reason}")
    return ctypes.CDLL(str(library))


def c_parity(robot: Robot, path: str | os.PathLike[str], prefix: str = "", n_states: int = 100, seed: int = 0) -> float:
    """Largest relative difference between the compiled functions and Python, on random states; see :func:`function_gap`."""
    with tempfile.TemporaryDirectory() as folder:
        return function_gap(robot, evaluate_compiled(compile_c(path, folder), prefix), n_states, seed)


def evaluate_compiled(library: Any, prefix: str = "") -> Call:
    """The functions of a compiled library (or of its path), state by state."""
    import ctypes

    own, pointer = (ctypes.CDLL(str(library)) if isinstance(library, Path) else library), ctypes.POINTER(ctypes.c_double)

    def call(name: str, given: Sequence[Array], shape: tuple[int, ...]) -> Array:
        function = getattr(own, f"{prefix}{name}")
        function.restype, function.argtypes = None, [pointer] * (len(given) + 1)
        out, rows = np.empty(shape), [np.ascontiguousarray(values) for values in given]
        for k in range(shape[0]):
            function(*(values[k : k + 1].ctypes.data_as(pointer) for values in (*rows, out)))
        return out

    return call
