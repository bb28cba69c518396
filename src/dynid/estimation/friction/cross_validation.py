"""How well a friction model predicts blocks of time that it was not fitted to, from the rows of one fit.

A model at its best inner numbers is linear in everything around it: base parameters, friction values, and the tangents of its
columns along the inner numbers. Leaving a block out is then one more small linear solve, over the factors of the other blocks;
nothing is searched for again. Friction stays passive in each of them. Inner numbers may move by about their own size: a weak
pull holds those that the rest of the rows does not show.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array, BoolArray, freeze
from dynid.errors import InputError
from dynid.estimation.friction.data import Basis, FrictionData
from dynid.estimation.friction.fit import Fitted, residual_norms
from dynid.estimation.friction.model import Columns, FrictionModel, Solver

BLOCKS = 5
GAP_S = 0.3
"""Rows so near to the edge of a block are left out: filters smear what happens across it."""
LEAST_ROWS = 10
"""Rows that a block must have at least."""


@dataclass(frozen=True, eq=False)
class FrictionTrial:
    """A model and its error on blocks of time that it was not fitted to."""

    model: str
    error: float
    """``||tau - tau_hat|| / ||tau||`` over all held-out blocks and joints."""
    rmse: Array
    """Per joint."""
    n_columns: int
    squares: Array | None = None
    """``(blocks, joints)``: squared error of each held-out block, for comparing models block by block."""
    fitted_rmse: Array | None = None
    """Per joint, on the rows that the model was fitted to: decides between models of one size that predict alike."""


@dataclass(frozen=True, eq=False)
class _Part:
    """One block of time in coordinates: its system, its tangents, its torque, joint by joint."""

    A: Array
    J: Array
    y: Array
    ends: Array
    """Where the rows of each joint end."""

    @cached_property
    def triangle(self) -> Array:
        """Of ``[A J y]``: what fits to other blocks need of this one."""
        return np.asarray(np.linalg.qr(np.hstack([self.A, self.J, self.y[:, None]]), mode="r"))


def cross_validate(fitted: Fitted, name: str = "", *, blocks: int = BLOCKS) -> FrictionTrial:
    """Error on blocks of time, each predicted by a fit to the others; every log is cut into as many blocks."""
    if blocks < 2:
        raise InputError(f"cross-validation needs at least 2 blocks of time, got {blocks}")
    model, data = fitted.model, fitted.model.data
    place = data.blocks(blocks, GAP_S)
    if too_short(data, blocks):
        raise InputError(
            f"{len(place)} rows are too few for cross-validation over {blocks} blocks of time; give a longer log, or name a "
            "friction model"
        )
    parts = [_part(fitted, place == block) for block in range(blocks)]
    noise = np.sqrt(fitted.solution.cost / max(len(data.torque) * data.n_joints, 1))
    n_joints = data.n_joints
    squares = np.zeros((blocks, n_joints))
    G = model.passive_rows(fitted.theta, fitted.loads)
    joints = _joints_apart(model, parts) if model.apart else []
    for block, unseen in enumerate(parts):
        known = [part for k, part in enumerate(parts) if k != block]
        x = _fitted_apart(model, joints, block, noise, G) if model.apart else _fitted_to(known, noise, G)
        left = unseen.y - np.hstack([unseen.A, unseen.J]) @ x
        squares[block] = [float(own @ own) for own in np.split(left, unseen.ends[:-1])] / fitted.weights**2
    used = data.measured[place >= 0]
    return FrictionTrial(
        model=name,
        error=float(np.sqrt(squares.sum()) / max(np.linalg.norm(used), 1e-300)),
        rmse=freeze(np.sqrt(squares.sum(axis=0) / len(used))),
        n_columns=len(model.names) + len(model.start),
        squares=freeze(squares),
        fitted_rmse=freeze(residual_norms(fitted.solution, fitted.weights) / np.sqrt(len(data.torque))),
    )


def too_short(data: FrictionData, blocks: int = BLOCKS) -> bool:
    """Whether blocks of time would have too few rows to tell models apart."""
    place = data.blocks(blocks, GAP_S)
    counts = np.bincount(place[place >= 0], minlength=blocks)
    spare = (counts.sum() - counts.max()) * data.n_joints - data.n_shared
    return bool(counts.min() < LEAST_ROWS or spare < 10 * data.n_joints)


def _part(fitted: Fitted, rows: BoolArray) -> _Part:
    model, data = fitted.model, fitted.model.data
    basis: Basis = data.basis_of(rows)
    columns = Columns(fitted.columns.values[rows], tuple(change[rows] for change in fitted.columns.changes))
    coordinates = model.coordinates(basis, columns, data.torque[rows])
    weights = fitted.weights
    return _Part(
        A=model.system(basis, coordinates, weights),
        J=model.tangents(coordinates, fitted.solution.own, weights),
        y=np.concatenate([w * c[:, -1] for w, c in zip(weights, coordinates, strict=True)]),
        ends=np.cumsum([len(c) for c in coordinates]),
    )


def _joints_apart(model: FrictionModel, parts: list[_Part]) -> list[list[_Part]]:
    """The blocks of every joint alone, where each joint is a problem of its own."""
    return [
        [
            _Part(part.A[rows][:, own], part.J[rows][:, model.places_of(d)], part.y[rows], part.ends[d : d + 1])
            for part in parts
            for rows in [slice(int(part.ends[d - 1]) if d else 0, int(part.ends[d]))]
        ]
        for d, own in enumerate(model.entering)
    ]


def _fitted_apart(model: FrictionModel, joints: list[list[_Part]], unseen: int, noise: float, G: Array) -> Array:
    """The same joint by joint, from all blocks but one."""
    n_linear = len(model.names)
    x = np.zeros(n_linear + len(model.start))
    for d, (own, parts) in enumerate(zip(model.entering, joints, strict=True)):
        known, mine = [part for k, part in enumerate(parts) if k != unseen], G[:, own]
        x[np.concatenate([own, n_linear + model.places_of(d)])] = _fitted_to(known, noise, mine[mine.any(axis=1)])
    return x


def _fitted_to(parts: list[_Part], noise: float, G: Array) -> Array:
    """Base parameters, passive friction values and steps of the inner numbers that fit these blocks best."""
    n_linear, n_inner = parts[0].A.shape[1], parts[0].J.shape[1]
    pull = np.hstack([np.zeros((n_inner, n_linear)), noise * np.eye(n_inner)])
    rows = np.vstack([part.triangle for part in parts])
    solver = Solver(np.vstack([rows[:, :-1], pull]))
    x = solver.solve(np.concatenate([rows[:, -1], np.zeros(n_inner)]))
    found = solver.passive(x, np.hstack([G, np.zeros((len(G), n_inner))]))
    return x if found is None else found.x
