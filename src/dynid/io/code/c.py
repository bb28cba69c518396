"""C99 of one robot: inverse dynamics, inertia matrix, gravity, Coriolis and friction, for controllers.

    tau = M(q) a + c(q, v) + g(q) + friction(q, v, a, load)

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits, transmitting
from dynid.dynamics.joint_effects import rotor_matrix
from dynid.dynamics.regressors import static_regressor
from dynid.errors import InputError
from dynid.files import write_text
from dynid.io.code.equations import SymbolicRobot
from dynid.io.code.expressions import inputs_of, straight_line
from dynid.io.robots.proof import SMALLEST_SHARE, largest_gap
from dynid.io.robots.simulator_joint import WrittenModel, refuse_inconsistent
from dynid.model.friction import without_friction
from dynid.model.robot import Robot

FUNCTIONS = ("inverse_dynamics", "mass_matrix", "gravity", "coriolis", "friction")
SELF_TEST_STATES = 8
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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
    if robot.loops:
        raise InputError(
            f"robot '{robot.name}' has closed loops ({', '.join(robot.loops.names)}), which are not written to C source; "
            "export it as mjcf, urdf or json"
        )
    notes = refuse_inconsistent(robot, allow_inconsistent)
    target = Path(path)
    if target.suffix != ".c":
        raise InputError(f"cannot write C source to '{target}': expected the suffix .c")
    if prefix and not _NAME.fullmatch(prefix):
        raise InputError(f"prefix '{prefix}' cannot begin a name in C, expected letters, digits and underscores")
    pieces = _pieces(robot)
    if any(f"load[{k}]" in pieces["friction"].inputs for k in range(robot.n_dof)):
        notes.append("friction depends on load: inverse_dynamics takes the torque without friction and rotor inertia for it")
    header = target.with_suffix(".h")
    write_text(header, _header(robot, pieces, prefix, header.name))
    written = write_text(target, _source(robot, pieces, prefix, header.name))
    return WrittenModel(written, "c", False, tuple(notes), (header,))


@dataclass(frozen=True, eq=False)
class _Piece:
    """One function: what it takes, what it fills, its statements and its purpose."""

    arguments: tuple[tuple[str, int], ...]
    output: tuple[str, int]
    statements: tuple[str, ...]
    inputs: frozenset[str]
    purpose: str


def _pieces(robot: Robot) -> dict[str, _Piece]:
    symbols = SymbolicRobot.of(robot)
    (q, v, a), n = symbols.motion(), robot.n_dof
    still, load = symbols.constants(np.zeros(n)), symbols.inputs("load", n)
    carried = symbols.transmitted_torque(q, v, a)
    total = carried + symbols.rotor_torque(a) + symbols.friction(q, v, a, carried)
    M = symbols.mass_matrix(q)
    position, velocity, acceleration = ("q", robot.n_position), ("v", n), ("a", n)
    return {
        "inverse_dynamics": _piece(
            (position, velocity, acceleration), "tau", total, "tau = M(q) a + c(q, v) + g(q) + friction: torque of a motion"
        ),
        "mass_matrix": _piece((position,), "M", M.ravel(), "inertia matrix with rotor inertias, row by row"),
        "gravity": _piece((position,), "tau", symbols.rigid_torque(q, still, still), "torque that holds against gravity"),
        "coriolis": _piece(
            (position, velocity),
            "tau",
            symbols.rigid_torque(q, v, still, gravity=False),
            "Coriolis and centrifugal torque c(q, v) = C(q, v) v",
        ),
        "friction": _piece(
            (position, velocity, acceleration, ("load", n)),
            "tau",
            symbols.friction(q, v, a, load),
            "friction and offsets; load is the torque that the joints transmit",
        ),
    }


def _piece(arguments: Sequence[tuple[str, int]], output: str, values: NDArray[np.object_], purpose: str) -> _Piece:
    outputs = {f"{output}[{k}]": value for k, value in enumerate(values)}
    return _Piece(
        tuple(arguments), (output, len(values)), tuple(straight_line(outputs)), frozenset(inputs_of(values)), purpose
    )


# Text ---------------------------------------------------------------------------------------------


def _signature(name: str, piece: _Piece, prefix: str) -> str:
    taken = [f"const double {letter}[{size}]" for letter, size in piece.arguments]
    return f"void {prefix}{name}({', '.join([*taken, f'double {piece.output[0]}[{piece.output[1]}]'])})"


def _header(robot: Robot, pieces: Mapping[str, _Piece], prefix: str, name: str) -> str:
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
        f" * Dynamics of robot '{_comment(robot.name)}'.",
        " *",
        " * SI units and radians. Functions allocate nothing, keep nothing and may run in several threads at once;",
        " * an output may be the same array as an input.",
        f" * Gravity {' '.join(map(repr, robot.gravity.tolist()))} m/s^2.",
        " *",
        *(f" *   {k}: {_comment(row)}" for k, row in enumerate(robot.dof_names)),
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


def _source(robot: Robot, pieces: Mapping[str, _Piece], prefix: str, header: str) -> str:
    lines = [
        f"/* Dynamics of robot '{_comment(robot.name)}'; see {header}. */",
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


def _inside(piece: _Piece) -> list[str]:
    """Inputs into locals first, so that outputs may overwrite them."""
    lines = []
    statements = list(piece.statements)
    for letter, size in piece.arguments:
        used = [k for k in range(size) if f"{letter}[{k}]" in piece.inputs]
        lines += [f"const double {letter}{k} = {letter}[{k}];" for k in used]
        if not used:
            lines.append(f"(void){letter};")
        statements = [re.sub(rf"\b{letter}\[(\d+)\]", rf"{letter}\1", line) for line in statements]
    return lines + statements


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


def _comment(text: str) -> str:
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
    """Largest relative difference between the compiled functions and Python, on random states.

    Every function counts. Parts of the torque are compared with the whole of it, entries of the inertia matrix with
    ``sqrt(M_jj M_kk)``, where diagonal entries count as no less than a share of the largest entry
    (:data:`~dynid.io.robots.proof.SMALLEST_SHARE`): a link without inertia leaves nothing but rounding there.
    """
    q, v, a = random_states_within_limits(robot, n_states, seed)
    still = np.zeros_like(v)
    load, frictionless = (inverse_dynamics(one, q, v, a) for one in (transmitting(robot), without_friction(robot)))
    total = inverse_dynamics(robot, q, v, a, load)
    gravity = inverse_dynamics(robot, q, still, still, effects=False)
    inertia, _ = static_regressor(robot, q)
    M = inertia @ robot.parameters.values[: robot.parameters.n_inertial] + rotor_matrix(robot)
    expected = {
        "inverse_dynamics": ((q, v, a), total),
        "gravity": ((q,), gravity),
        "coriolis": ((q, v), inverse_dynamics(robot, q, v, still, effects=False) - gravity),
        "friction": ((q, v, a, load), total - frictionless),
    }
    with tempfile.TemporaryDirectory() as folder:
        library = compile_c(path, folder)
        gaps = [
            largest_gap(ours, _evaluated(getattr(library, f"{prefix}{name}"), given, ours.shape), total)
            for name, (given, ours) in expected.items()
        ]
        difference = _evaluated(getattr(library, f"{prefix}mass_matrix"), (q,), M.shape) - M
    diagonal = np.abs(np.diagonal(M, axis1=1, axis2=2)).max(axis=0)
    size = np.sqrt(np.maximum(diagonal, SMALLEST_SHARE * np.abs(M).max()))
    scale = np.outer(size, size)
    return max(*gaps, float((np.abs(difference).max(axis=0) / np.where(scale > 0.0, scale, 1.0)).max()))


def _evaluated(function: Any, given: Sequence[Array], shape: tuple[int, ...]) -> Array:
    import ctypes

    pointer = ctypes.POINTER(ctypes.c_double)
    function.restype = None
    function.argtypes = [pointer] * (len(given) + 1)
    out = np.empty(shape)
    rows = [np.ascontiguousarray(values) for values in given]
    for k in range(shape[0]):
        arguments = [values[k : k + 1].ctypes.data_as(pointer) for values in (*rows, out)]
        function(*arguments)
    return out
