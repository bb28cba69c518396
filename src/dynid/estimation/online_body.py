"""Ten parameters of a body while data come in: recursive least squares with flags, block by block.

After every block: the values so far, their standard deviation, and of each parameter whether it is known yet (flag 1), not excited (0)
or not to be told from others (-1). No row is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.estimation.methods.recursive import RecursiveLeastSquares
from dynid.estimation.methods.recursive_state import Columns, State, origins_of_flags
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.source import Chunk, RowSource

SETTLED_SHARE = 0.2
"""A parameter is known once its standard deviation is below this share of the size that it can have."""
EFFECTIVE = 10.0
"""Neighbouring rows share their noise: so many count as one in the standard deviation of an online estimate."""


@dataclass(frozen=True, eq=False)
class OnlineBodyState:
    """What is known after a block.

    Args:
        time_s: of the last row.
        names: of the parameters, those of the body first.
        values: so far; initial values where the flag is not 1.
        sigma: standard deviations, infinite where the flag is not 1.
        flags: 1 identified, 0 not excited, -1 linearly dependent.
        residual_rms: in units of the noise that was given.
    """

    time_s: float
    names: tuple[str, ...]
    values: Array
    sigma: Array
    flags: tuple[int, ...]
    residual_rms: float
    origin: tuple[str, ...] = ()
    """Where each value comes from; ``mixed`` where it carries one that cannot be told from it."""

    @property
    def known(self) -> tuple[str, ...]:
        """Parameters of the body that are known yet: seen, and to a fifth of the size that such a parameter can have."""
        m = abs(float(self.values[0]))
        r = max(float(np.linalg.norm(self.values[1:4])) / m, 0.05) if m > 0.0 else 0.05
        size = max(m, 1e-3) * np.array([1.0, *[r] * 3, *[r * r] * 6])
        return tuple(
            name
            for name, origin, sigma, own in zip(self.names, self.origin, self.sigma, size, strict=False)
            if origin == "data" and sigma < SETTLED_SHARE * own
        )

    def as_dict(self) -> dict[str, Any]:
        """One line of ``dynid payload --online --json``."""
        return {
            "t": self.time_s,
            "values": dict(zip(self.names, self.values.tolist(), strict=True)),
            "sigma": {n: float(s) if np.isfinite(s) else None for n, s in zip(self.names, self.sigma, strict=True)},
            "flags": dict(zip(self.names, self.flags, strict=True)),
            "known": list(self.known),
            "residual": self.residual_rms,
        }


class OnlineBody:
    """Feed it row sources or chunks of them as they come.

    Args:
        parameters: the columns of the rows, those of the body first.
        noise: standard deviation of each channel's rows.
    """

    def __init__(self, parameters: Parameters, noise: Array) -> None:
        if not (np.isfinite(noise) & (np.asarray(noise) > 0.0)).all():
            raise InputError(f"noise of an online body is {list(noise)}, expected positive numbers, one per channel")
        self.parameters = parameters
        self._weights = 1.0 / np.asarray(noise, dtype=np.float64)
        base = BaseReduction.from_matrix(np.eye(len(parameters)), parameters.names)
        method = RecursiveLeastSquares(tolerance=1e-4)
        self._columns = Columns.of(method, parameters, base)
        self._state = State(method, self._columns, None)

    def update(self, source: RowSource) -> OnlineBodyState:
        """All rows of a source, and what is known then."""
        last = np.nan
        for chunk in source.passes():
            last = self._add(chunk) or last
        return self._answer(float(last))

    def update_rows(self, blocks: list[Array], time_s: float) -> OnlineBodyState:
        """Rows ``[W y]`` of every channel over all parameters."""
        self._add(Chunk(blocks, np.full(len(blocks[0]), time_s)))
        return self._answer(time_s)

    def _add(self, chunk: Chunk) -> float | None:
        if len(chunk.blocks) != len(self._weights):
            raise InputError(f"rows of {len(chunk.blocks)} channels were given, expected {len(self._weights)}")
        rows = np.vstack([w * np.asarray(block) for w, block in zip(self._weights, chunk.blocks, strict=True)])
        chosen = np.hstack([self._columns.select(rows[:, :-1]), rows[:, -1:]])
        self._state.add(np.ascontiguousarray(chosen), len(chunk), None)
        return None if chunk.time is None else float(chunk.time[-1])

    def _answer(self, time_s: float) -> OnlineBodyState:
        found = self._state.solve()
        kept = np.flatnonzero(found.flags == 1)
        sigma = np.full(len(found.values), np.inf)
        if len(kept):
            R = np.linalg.qr(self._state.R[:, kept], mode="r")
            inverse = scipy.linalg.solve_triangular(R, np.eye(len(kept)))
            freedom = max(self._state.n_rows / EFFECTIVE - len(kept), 1.0)
            noise = found.residual_rms * np.sqrt(self._state.n_rows / freedom)
            sigma[kept] = noise * np.linalg.norm(inverse, axis=1)
        origins = origins_of_flags(self._state.R[:, :-1], found.flags)
        order = [self._columns.names.index(name) for name in self.parameters.names]
        return OnlineBodyState(
            time_s,
            self.parameters.names,
            freeze(found.values[order]),
            freeze(sigma[order]),
            tuple(int(flag) for flag in found.flags[order]),
            found.residual_rms,
            tuple(origins[place] for place in order),
        )
