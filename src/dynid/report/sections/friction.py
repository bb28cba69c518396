"""Friction over velocity, and the models it was chosen from."""

from __future__ import annotations

from dynid.report.page import Folded, Part, Section, Table
from dynid.report.shown import Shown
from dynid.report.torque_plots import friction_figure
from dynid.report.verdict import percent


def friction_section(shown: Shown) -> Section | None:
    """Friction over velocity, and the models it was chosen from."""
    if shown.judged is None:
        return None
    figure = friction_figure(shown.run.identified, shown.judged)
    if figure is None:
        return None
    names = ", ".join(effect.name for effect in shown.run.robot.effects)
    parts: list[Part] = [figure]
    choice = shown.run.friction
    if choice is not None and choice.trials:
        rows = tuple(
            (trial.model, percent(trial.error), str(trial.n_columns), "chosen" if trial.model == choice.model else "")
            for trial in choice.trials
        )
        table = Table(("model", "error on held-out blocks", "columns", ""), rows, numeric=(1, 2))
        parts.append(Folded("Friction models tried", (table,)))
    return Section("Friction", f"Effects in the model: {names}. Shown is {shown.judged.name}.", tuple(parts))
