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
from dynid.estimation.friction.data import FrictionData
from dynid.estimation.friction.fit import Fitted, fit_model, residual_norms
from dynid.estimation.friction.model import FrictionModel
from dynid.recording.samples import Samples
from dynid.regression.row_filter import RowFilter
from dynid.robot.effects import Effect, OnJoints, PointSpring
from dynid.robot.effects.models import friction_effects, modelled_effects
from dynid.robot.friction import with_friction
from dynid.robot.model import Robot

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
        smooth = with_friction(robot, friction_effects("smooth", time_s=0.0))
    model = FrictionModel(smooth, FrictionData.of(smooth, samples, row_filter))
    starts = _best_on_grid(model, open_)
    tried = [fit_model(model, weighted=True, rounds=1, start=start, finish=False) for start in starts]
    fitted = fit_model(model, weighted=True, start=min(tried, key=_left).places())
    found = {effect.label: effect for effect in fitted.robot.effects}
    return robot.with_effects([_settled(found[effect.label]) if _searched(effect) else effect for effect in robot.effects])


def _spring(effect: Effect) -> PointSpring | None:
    inner = effect.effect if isinstance(effect, OnJoints) else effect
    return inner if isinstance(inner, PointSpring) else None


def _searched(effect: Effect) -> bool:
    spring = _spring(effect)
    return spring is not None and spring.fit


def _settled(effect: Effect) -> Effect:
    spring = _spring(effect)
    assert spring is not None
    return OnJoints(spring.settled(), effect.joints) if isinstance(effect, OnJoints) else spring.settled()


def _left(fitted: Fitted) -> float:
    """What a fit leaves of the torque, all joints alike; of fits to the same rows."""
    return float(np.log(np.maximum(residual_norms(fitted.solution, fitted.weights), 1e-300)).sum())


def _best_on_grid(model: FrictionModel, springs: Sequence[Effect]) -> list[dict[str, Array]]:
    """Places of phase, ratio and column from which the search starts, joint after joint; several for the last spring."""
    data, n = model.data, model.data.n_joints
    theta = model.start.reshape(-1, n).copy()
    row = {variable.option.key: k for k, variable in enumerate(model.variables)}
    weights = _joint_weights(model)

    def cost(place: Array) -> float:
        columns = model.columns(place.ravel(), None, changes=False, coarse=True)
        coordinates = model.coordinates(data.basis, columns, data.torque)
        return model.solve(data.basis, coordinates, weights, model.passive_rows(place.ravel(), None)).cost

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
            starts = _best_of_phases(sorted(tried), row["phase"], joint)
            theta = starts[0]
    return [{key: start[k] for key, k in row.items()} for start in starts]


def _best_of_phases(tried: Sequence[tuple[float, int, Array]], row: int, joint: int) -> list[Array]:
    """The best place of every phase, best first; ``tried`` has the least cost first."""
    found: dict[float, Array] = {}
    for _, _, place in tried:
        found.setdefault(float(place[row, joint]), place)
    return list(found.values())


def _joint_weights(model: FrictionModel) -> Array:
    """Joints counted by the size of their torque, for a first look."""
    size = np.sqrt((model.data.measured**2).mean(axis=0))
    return np.asarray(1.0 / np.maximum(size, 1e-6 * max(float(size.max()), 1e-300)))
