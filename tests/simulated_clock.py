"""A clock that a test moves: time budgets are counted in readings of it, so that a busy or slow machine changes nothing."""

from __future__ import annotations

MODULES = ("barrier", "design_problem", "excitation_result", "points", "points_problem", "search")


class SimulatedClock:
    """Every reading is ``step_s`` later than the one before."""

    def __init__(self, monkeypatch, step_s):
        self.now_s, self.step_s = 0.0, step_s
        for module in MODULES:
            monkeypatch.setattr(f"dynid.excitation.{module}.monotonic", self)

    def __call__(self):
        self.now_s += self.step_s
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds
