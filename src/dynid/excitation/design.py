"""An exciting motion for one robot: the best of several searches, each strictly inside every limit.

Each start draws a random motion within the limits and improves it in stages: log-determinant with a ridge first, because it is
smooth and finite even for a motion that excites few parameters; then the condition number with growing power and shrinking barrier. In
three rounds the better starts are taken further; the last ones are proven on a fine grid. The work is fixed by the options and
the seed, so a seed gives the same motion again; the time budget only cuts work off, and the result says when it did. Part of the
budget is kept for the proof, whose cost is measured before the search; first-use compilation is waited for before the clock starts.
"""

from __future__ import annotations

from time import monotonic

import numpy as np
from numpy.typing import ArrayLike

from dynid.adapters.blas import one_blas_thread
from dynid.engine import Engine, Threads, engine_from
from dynid.errors import InputError
from dynid.excitation.criteria import Criterion
from dynid.excitation.fourier import FourierShape
from dynid.excitation.gradient import refuse_floating, torque_gradient
from dynid.excitation.judged import Excitation, base_regressor, finished_excitation
from dynid.excitation.limits import Limits, limits_of, pose_limits
from dynid.excitation.problem import DesignProblem, with_smooth_sign
from dynid.excitation.search import Progress, search, stages_for
from dynid.excitation.shape import LinearShape
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.torque import torque_regressor
from dynid.robot.model import Robot

__all__ = ["Excitation", "base_regressor", "design_excitation", "finished_excitation"]

DEFAULT_SECONDS = 60.0
DEFAULT_STARTS = 36

COMPILED_S = 3.0
"""A first call that takes so much longer than the second was compiling; loading what is compiled takes less."""


def design_excitation(
    robot: Robot,
    base: BaseReduction | None = None,
    shape: LinearShape | None = None,
    *,
    criterion: str | Criterion = "condition",
    scaled: bool = False,
    torque_noise: ArrayLike | None = None,
    limits: Limits | None = None,
    rest: bool = False,
    periods: int = 1,
    seconds: float = DEFAULT_SECONDS,
    seed: int = 0,
    starts: int = DEFAULT_STARTS,
    engine: Engine | str | int | None = None,
    progress: Progress | None = None,
) -> Excitation:
    """Design an exciting motion.

    Args:
        robot: with the effects whose values the motion must determine.
        base: its base parameters; None to find them.
        shape: family of motions; None for a Fourier series of 20 s with 5 harmonics.
        criterion: ``condition``, ``logdet``, ``smallest``, ``trace``, ``frobenius``, a mix such as ``condition+0.5*logdet``, or a
            :class:`Criterion`.
        scaled: judge the regressor with its columns scaled to length one.
        torque_noise: expected standard deviation of each joint's torque; rows count by its inverse.
        limits: None for those of the robot.
        rest: put ramps from and to rest around the motion.
        periods: how often the motion is to be played.
        seconds: time budget; compilation at first use is announced and not counted.
        seed: of the random starts.
        starts: number of random starts; the better ones are taken further.
        engine: where the starts run; None for one thread per core.
        progress: told after every piece of work.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects="none").only(["shoulder_pitch"])
        >>> shape = dynid.FourierShape(period_s=5.0, harmonics=2)
        >>> dynid.design_excitation(robot, shape=shape, seconds=1.0, starts=1, engine="serial").margins.smallest >= 0.0
        True
    """
    began = monotonic()
    refuse_floating(robot)
    if not (np.isfinite(seconds) and seconds > 0.0):
        raise InputError(f"time budget is {seconds:g} s, expected a positive number")
    if starts < 1:
        raise InputError(f"{starts} starts asked for, expected at least 1")
    chosen = FourierShape() if shape is None else shape
    held = limits_of(robot) if limits is None else limits
    notes = list(held.notes)
    with one_blas_thread():  # the starts are the parallelism
        compiling_s = _compiling_seconds(robot, held)
        if compiling_s > 0.0:
            began += compiling_s
            notes.append(f"{compiling_s:.0f} s of first-use compilation, once on this machine, are not counted")
        found = reduce_to_base(robot) if base is None else base
        problem = DesignProblem.of(robot, found, chosen, held, scaled, torque_noise)
        runner = Threads() if engine is None else engine_from(engine)
        results, cut_off = search(problem, stages_for(criterion), starts, seed, (began, seconds), runner, progress)
        if not results[-1]:
            raise InputError(
                f"no motion of robot '{robot.name}' was found that keeps every limit between the times of the design; "
                "try more starts, another seed, or wider limits"
            )
        winner = min(results[-1], key=lambda candidate: (candidate.value, candidate.index))
        if cut_off:
            notes.append(
                f"the time budget of {seconds:g} s cut the search off: another machine may reach another motion from this seed"
            )
        trajectory = problem.trajectory(winner.x)
        return finished_excitation(
            robot,
            found,
            trajectory,
            held,
            criterion=criterion if isinstance(criterion, str) else repr(criterion),
            rest=rest,
            periods=periods,
            n_times=problem.n_proof_times,
            began=began,
            seed=seed,
            starts=tuple(candidate.condition for candidate in results[0]),
            notes=notes,
        )


def _compiling_seconds(robot: Robot, limits: Limits) -> float:
    """How long the kernels of a design took to compile at their first use; zero where they were ready."""

    def once() -> float:
        began = monotonic()
        smooth = with_smooth_sign(robot, limits)
        q, v = np.tile(limits.centre, (2, 1)), np.zeros((2, robot.n_joints))
        torque_gradient(smooth, q, v, v, np.zeros_like(torque_regressor(smooth, q, v, v)))
        for limit in pose_limits(robot, limits).values():
            slack, pullback = limit.slacks(q, v, v)
            pullback(np.zeros_like(slack))
        return monotonic() - began

    first = once()
    if first < COMPILED_S:
        return 0.0
    spent = first - once()
    return spent if spent > COMPILED_S else 0.0
