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
    inner = tuple((one.joint, one.name, f"{one.value:.4g}", one.unit, one.interval_text) for one in shown.run.inner_numbers)
    if inner:
        header = ("joint", "number inside friction", "value", "unit", "95 % interval")
        parts.append(Folded("Numbers inside the friction of every joint", (Table(header, inner, numeric=(2,), code=(1,)),)))
    choice = shown.run.friction
    if choice is not None and choice.trials:
        rows = tuple(
            (trial.model, percent(trial.error), str(trial.n_columns), "chosen" if trial.model == choice.model else "")
            for trial in choice.trials
        )
        table = Table(("model", "error on held-out blocks", "columns", ""), rows, numeric=(1, 2))
        parts.append(Folded("Friction models tried", (table,)))
    return Section("Friction", f"Effects in the model: {names}. Shown is {shown.judged.name}.", tuple(parts))
