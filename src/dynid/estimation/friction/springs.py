"""Geometry of springs between two points, found by variable projection beside smooth friction.

Torque is linear in stiffness and force, and in everything else of the robot; only where the points are nearest (``phase``), how
much their distance changes (``ratio``) and the gas column stand inside. The error over these has several valleys, so a coarse
grid over them is looked at first, each place of it one small linear solve, and a short search starts from the best place of every
phase: the least on the grid need not lie in the deepest valley.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array
from dynid.estimation.friction.fit import fit_model, residual_norms
from dynid.estimation.friction.model import FrictionModel
from dynid.estimation.friction.rows import FrictionData
from dynid.model.effects.effect import Effect
from dynid.model.effects.friction_models import modelled_effects
from dynid.model.effects.springs import PointSpring
from dynid.model.effects.wrapped import OnJoints
from dynid.model.friction import with_friction
from dynid.model.robot import Robot
from dynid.regression.row_filter import RowFilter
from dynid.signals.samples import Samples

PHASES = 12
"""Places of the phase over a turn that are looked at."""
RATIOS = (0.25, 0.55, 0.8, 0.95)
"""Ratios that are looked at."""
COLUMNS = (0.3, 1.0, 4.0)
"""Gas columns that are looked at, m."""


def with_spring_geometry(robot: Robot, samples: Sequence[Samples], row_filter: RowFilter | None = None) -> Robot:
    """The robot with the geometry of its springs found, where it is to be found; otherwise as it is."""
    open_ = [effect for effect in robot.effects if _searched(effect)]
    if not open_:
        return robot
    smooth = robot
    if not modelled_effects().isdisjoint(effect.name for effect in robot.effects):
        smooth = with_friction(robot, "smooth")
    model = FrictionModel(smooth, FrictionData.of(smooth, samples, row_filter))
    starts = _best_on_grid(model, open_)
    tried = [fit_model(model, weighted=True, rounds=1, start=start, finish=False) for start in starts]
    # what each leaves of the torque, all joints alike
    left = [np.log(np.maximum(residual_norms(fit.solution, fit.weights), 1e-300)).sum() for fit in tried]
    fitted = fit_model(model, weighted=True, start=tried[int(np.argmin(left))].places())
    found = {effect.label: effect for effect in fitted.tuned.effects}
    settled = []
    for effect in robot.effects:
        spring = _spring(found[effect.label]) if _searched(effect) else None
        if spring is None:
            settled.append(effect)
        else:
            settled.append(OnJoints(spring.settled(), effect.joints) if isinstance(effect, OnJoints) else spring.settled())
    return robot.with_effects(settled)


def _spring(effect: Effect) -> PointSpring | None:
    inner = effect.effect if isinstance(effect, OnJoints) else effect
    return inner if isinstance(inner, PointSpring) else None


def _searched(effect: Effect) -> bool:
    spring = _spring(effect)
    return spring is not None and spring.fit


def _best_on_grid(model: FrictionModel, springs: Sequence[Effect]) -> list[dict[str, Array]]:
    """Places of phase, ratio and column from which the search starts, joint after joint; several for the last spring."""
    n = model.data.n_joints
    theta = model.start.reshape(-1, n).copy()
    row = {option.key: k for k, (option, _) in enumerate(model.variables)}
    size = np.sqrt((model.data.measured**2).mean(axis=0))
    weights = 1.0 / np.maximum(size, 1e-6 * max(float(size.max()), 1e-300))  # for a first look

    def cost(place: Array) -> float:
        columns = model.columns(place.ravel(), None, changes=False, coarse=True)
        return model.solve(columns, weights, model.passive_rows(place.ravel(), None)).cost

    starts = [theta]
    for effect in springs:
        spring = _spring(effect)
        assert spring is not None
        joints = [joint - 1 for joint in effect.joints] if isinstance(effect, OnJoints) else list(range(n))
        gas = COLUMNS if spring.form == "gas" else (None,)
        for joint in joints:
            tried: list[tuple[float, int, Array]] = []
            for phase in np.linspace(-np.pi, np.pi, PHASES, endpoint=False):
                for ratio in RATIOS:
                    for column in gas:
                        place = theta.copy()
                        place[row["phase"], joint], place[row["ratio"], joint] = phase, ratio
                        if column is not None:
                            place[row["column"], joint] = np.log(column)
                        tried.append((cost(place), len(tried), place))
            best: dict[float, Array] = {}  # of every phase
            for _, _, place in sorted(tried):
                best.setdefault(float(place[row["phase"], joint]), place)
            starts = list(best.values())
            theta = starts[0]
    return [{key: start[k] for key, k in row.items()} for start in starts]
