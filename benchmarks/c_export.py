"""Exported C against Pinocchio's recursive Newton-Euler: nanoseconds per call, one thread, both in compiled loops.

    python benchmarks/c_export.py [--json] [--smoke]

Pinocchio runs over the same states inside its own compiled loop (``rneaInParallel`` with one thread), so that neither side
pays for Python. ``loop_nanoseconds`` is the same recursion as C loops over constant tables instead of straight-line code:
the reason for which the exporter writes straight-line code.
"""

from __future__ import annotations

import measure

import tempfile
from pathlib import Path

import numpy as np
import pinocchio as pin

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import random_states_within_limits
from dynid.dynamics.joint_effects import rotor_matrix
from dynid.dynamics.pinocchio_model import to_pinocchio_position
from dynid.io.code.equations import SymbolicRobot
from dynid.io.code.languages import compile_library, write_c
from dynid.io.demo import demo_robot
from dynid.io.robots.proof import largest_gap
from dynid.io.robots.read import read_robot
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.robot import Robot

OPTIONS = ("-O2",)

DRIVER = """
#include "{name}.c"
void run(long n, const double *q, const double *v, const double *a, double *tau);
void run(long n, const double *q, const double *v, const double *a, double *tau)
{{
    long i;
    for (i = 0; i < n; ++i)
        inverse_dynamics(q + i * {nq}, v + i * {nv}, a + i * {nv}, tau + i * {nv});
}}
"""

LOOP = """
#include <math.h>
{tables}
void inverse_dynamics(const double *q, const double *v, const double *acc, double *tau);
void inverse_dynamics(const double *q, const double *v, const double *acc, double *tau)
{{
    double Rs[N][9], ps[N][3], w[N][3], b[N][3], a[N][3], f[N][3], n[N][3];
    int i, j, k;
    for (i = 0; i < N; ++i) {{
        const double c = turns[i] ? cos(q[i]) : 1.0, s = turns[i] ? sin(q[i]) : 0.0;
        const double *P = place[i], *m = phi[i];
        double *R = Rs[i], *p = ps[i], wu[3], bu[3], au[3], t[3], g[3], Iw[3], Ib[3];
        const int u = parent[i];
        for (j = 0; j < 3; ++j) {{
            R[3 * j] = c * P[3 * j] + s * P[3 * j + 1];
            R[3 * j + 1] = c * P[3 * j + 1] - s * P[3 * j];
            R[3 * j + 2] = P[3 * j + 2];
            p[j] = P[9 + j] + slides[i] * q[i] * P[3 * j + 2];
        }}
        if (u >= 0) {{
            t[0] = w[u][1] * p[2] - w[u][2] * p[1];
            t[1] = w[u][2] * p[0] - w[u][0] * p[2];
            t[2] = w[u][0] * p[1] - w[u][1] * p[0];
            g[0] = a[u][0] + b[u][1] * p[2] - b[u][2] * p[1] + w[u][1] * t[2] - w[u][2] * t[1];
            g[1] = a[u][1] + b[u][2] * p[0] - b[u][0] * p[2] + w[u][2] * t[0] - w[u][0] * t[2];
            g[2] = a[u][2] + b[u][0] * p[1] - b[u][1] * p[0] + w[u][0] * t[1] - w[u][1] * t[0];
        }}
        for (j = 0; j < 3; ++j) {{
            wu[j] = u < 0 ? 0.0 : R[j] * w[u][0] + R[3 + j] * w[u][1] + R[6 + j] * w[u][2];
            bu[j] = u < 0 ? 0.0 : R[j] * b[u][0] + R[3 + j] * b[u][1] + R[6 + j] * b[u][2];
            au[j] = u < 0 ? R[j] * up[0] + R[3 + j] * up[1] + R[6 + j] * up[2]
                          : R[j] * g[0] + R[3 + j] * g[1] + R[6 + j] * g[2];
        }}
        w[i][0] = wu[0];
        w[i][1] = wu[1];
        w[i][2] = wu[2] + turns[i] * v[i];
        b[i][0] = bu[0] + turns[i] * wu[1] * v[i];
        b[i][1] = bu[1] - turns[i] * wu[0] * v[i];
        b[i][2] = bu[2] + turns[i] * acc[i];
        a[i][0] = au[0] + 2.0 * slides[i] * wu[1] * v[i];
        a[i][1] = au[1] - 2.0 * slides[i] * wu[0] * v[i];
        a[i][2] = au[2] + slides[i] * acc[i];
        Iw[0] = m[4] * w[i][0] + m[5] * w[i][1] + m[7] * w[i][2];
        Iw[1] = m[5] * w[i][0] + m[6] * w[i][1] + m[8] * w[i][2];
        Iw[2] = m[7] * w[i][0] + m[8] * w[i][1] + m[9] * w[i][2];
        Ib[0] = m[4] * b[i][0] + m[5] * b[i][1] + m[7] * b[i][2];
        Ib[1] = m[5] * b[i][0] + m[6] * b[i][1] + m[8] * b[i][2];
        Ib[2] = m[7] * b[i][0] + m[8] * b[i][1] + m[9] * b[i][2];
        for (j = 0; j < 3; ++j) {{
            const int x = (j + 1) % 3, y = (j + 2) % 3;
            t[j] = w[i][x] * m[1 + y] - w[i][y] * m[1 + x];
        }}
        for (j = 0; j < 3; ++j) {{
            const int x = (j + 1) % 3, y = (j + 2) % 3;
            f[i][j] = m[0] * a[i][j] + b[i][x] * m[1 + y] - b[i][y] * m[1 + x] + w[i][x] * t[y] - w[i][y] * t[x];
            n[i][j] = Ib[j] + w[i][x] * Iw[y] - w[i][y] * Iw[x] + m[1 + x] * a[i][y] - m[1 + y] * a[i][x];
        }}
    }}
    for (i = N - 1; i >= 0; --i) {{
        const int u = parent[i];
        tau[i] = turns[i] * n[i][2] + slides[i] * f[i][2] + rotor[i] * acc[i];
        if (u >= 0) {{
            double F[3];
            for (j = 0; j < 3; ++j) {{
                F[j] = 0.0;
                for (k = 0; k < 3; ++k) {{
                    F[j] += Rs[i][3 * j + k] * f[i][k];
                    n[u][j] += Rs[i][3 * j + k] * n[i][k];
                }}
            }}
            for (j = 0; j < 3; ++j) {{
                const int x = (j + 1) % 3, y = (j + 2) % 3;
                f[u][j] += F[j];
                n[u][j] += ps[i][x] * F[y] - ps[i][y] * F[x];
            }}
        }}
    }}
}}
"""


def loop_source(robot: Robot) -> str:
    """The recursion over tables, for a fixed base."""
    symbols = SymbolicRobot.of(robot)
    place = np.array([np.concatenate([P[:3, :3].ravel(), P[:3, 3]]) for P in symbols.placements])

    def table(kind: str, name: str, values: Array) -> str:
        def braced(entry: object) -> str:
            return "{" + ", ".join(map(braced, entry)) + "}" if isinstance(entry, list) else repr(entry)

        shape = "".join(f"[{size}]" for size in values.shape)
        return f"static const {kind} {name}{shape} = {braced(values.tolist())};"

    tables = [
        f"#define N {robot.n_joints}",
        table("int", "parent", np.array([joint.parent for joint in robot.joints])),
        table("double", "place", place),
        table("double", "phi", symbols.inertials),
        table("double", "turns", np.array(symbols.rotates)),
        table("double", "slides", np.array(symbols.slides)),
        table("double", "rotor", np.diag(rotor_matrix(robot))),
        table("double", "up", -robot.gravity),
    ]
    return LOOP.format(tables="\n".join(tables))


def nanoseconds(folder: Path, name: str, motion: tuple[Array, Array, Array], repeats: int) -> tuple[float, Array]:
    """Time per call of the C file ``name`` over all states, and its torques."""
    import ctypes

    q, v, a = motion
    driver = folder / f"{name}_driver.c"
    driver.write_text(DRIVER.format(name=name, nq=q.shape[1], nv=v.shape[1]))
    library = ctypes.CDLL(str(compile_library(driver, folder, OPTIONS)))
    pointer = ctypes.POINTER(ctypes.c_double)
    library.run.argtypes = [ctypes.c_long, *[pointer] * 4]
    tau = np.empty_like(v)
    arguments = [array.ctypes.data_as(pointer) for array in (q, v, a, tau)]
    seconds = measure.median_time(lambda: library.run(len(q), *arguments), repeats)
    return 1e9 * seconds / len(q), tau


def compare(robot: Robot, urdf: Path, n_states: int, repeats: int, *, loop: bool) -> dict[str, float]:
    """Ours, Pinocchio's and (on a fixed base) the loops' time per call.

    Pinocchio reads the robot from URDF, so that its joints are of its fast, aligned kinds.
    """
    rigid = robot.with_effects([effect for effect in robot.effects if effect.name == "armature"])
    q, v, a = (np.ascontiguousarray(array) for array in random_states_within_limits(rigid, n_states))
    floating = (pin.JointModelFreeFlyer(),) if rigid.floating else ()
    model = pin.buildModelFromUrdf(str(urdf), *floating)
    model.gravity.linear = np.array(rigid.gravity)
    model.armature[:] = np.diag(rotor_matrix(rigid))
    position = np.asfortranarray(to_pinocchio_position(rigid, q).T)
    velocity, acceleration = np.asfortranarray(v.T), np.asfortranarray(a.T)
    pool = pin.ModelPool(model, 1)
    theirs = pin.rneaInParallel(1, pool, position, velocity, acceleration)
    reference = measure.median_time(lambda: pin.rneaInParallel(1, pool, position, velocity, acceleration), repeats)
    reference *= 1e9 / n_states
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_c(rigid, folder / "robot.c", allow_inconsistent=True)
        ours, tau = nanoseconds(folder, "robot", (q, v, a), repeats)
        result = {
            "n_dof": robot.n_dof,
            "nanoseconds": ours,
            "pinocchio_nanoseconds": reference,
            "speedup": reference / ours,
            "gap": largest_gap(np.ascontiguousarray(theirs.T), tau),
        }
        if loop:
            (folder / "loop.c").write_text(loop_source(rigid))
            result["loop_nanoseconds"], looped = nanoseconds(folder, "loop", (q, v, a), repeats)
            assert largest_gap(tau, looped) < 1e-12
    return result


def humanoid() -> Path | None:
    """Description of Talos, where the package ``example-robot-data`` is installed."""
    from importlib import metadata

    try:
        files = metadata.files("example-robot-data") or []
    except metadata.PackageNotFoundError:
        return None
    found = [file for file in files if str(file).endswith("talos_full_v2.urdf")]
    return Path(str(found[0].locate())) if found else None


def main() -> None:
    """Print the table."""
    arguments = measure.parser(__doc__).parse_args()
    n_states, repeats = (1000, 1) if arguments.smoke else (20000, 5)
    with tempfile.TemporaryDirectory() as folder:
        arm = demo_robot()
        urdf = write_urdf(arm, Path(folder) / "arm.urdf").path
        result: dict[str, object] = {**compare(arm, urdf, n_states, repeats, loop=True)}
    talos = None if arguments.smoke else humanoid()
    if talos is not None:
        robot = read_robot(talos, effects="none", floating=True)
        more = compare(robot, talos, n_states // 10, repeats, loop=False)
        result |= {f"{name}_humanoid": value for name, value in more.items()}
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
