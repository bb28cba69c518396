"""How long lines take from their arrival to the state they change, in memory that does not grow."""

from __future__ import annotations

import math

_PER_DECADE = 40
_SMALLEST_S = 1e-6
_BINS = 9 * _PER_DECADE


class Latency:
    """A histogram over nine decades from a microsecond, each bin 6 % wide."""

    def __init__(self) -> None:
        self._bins = [0] * _BINS
        self.n = 0
        self.longest_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        place = int(_PER_DECADE * math.log10(max(seconds, _SMALLEST_S) / _SMALLEST_S))
        self._bins[min(place, _BINS - 1)] += 1
        self.n += 1
        self.longest_s = max(self.longest_s, seconds)

    def quantile_s(self, share: float) -> float:
        """Upper end of the bin in which this share is reached; zero where nothing was counted."""
        left = share * self.n
        for place, count in enumerate(self._bins):
            left -= count
            if left <= 0.0 and self.n:
                return float(min(_SMALLEST_S * 10.0 ** ((place + 1) / _PER_DECADE), self.longest_s))
        return 0.0

    def as_dict(self) -> dict[str, float]:
        """Milliseconds."""
        return {
            "median": 1e3 * self.quantile_s(0.5),
            "p999": 1e3 * self.quantile_s(0.999),
            "largest": 1e3 * self.longest_s,
        }
