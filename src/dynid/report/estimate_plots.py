"""What was identified and how surely; what the data can tell apart; whether bodies could exist; what was tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimation.result import Estimate
from dynid.inertia import consistency
from dynid.report.figure import Figure
from dynid.report.panel import Axis, Curve, Mark, Panel, Role
from dynid.robot.model import Robot

_SURE, _VAGUE = 0.01, 1000.0  # percent: shown between these
FLAT = 1e-4
"""Share of the smallest second moment below which a link is a plate, too little for a bar to be seen."""
_ORIGINS: tuple[tuple[str, Role, str], ...] = (
    ("data", "data", "from the data"),
    ("mixed", "mixed", "from data and prior together"),
    ("prior", "prior", "not excited: prior alone"),
)


def sigma_figure(found: Estimate, unit_of: Mapping[str, str]) -> Figure:
    """One standard deviation of every base parameter in percent of its value, a panel per joint."""
    groups: dict[int, list[int]] = {}
    names, columns = found.base.names, {column.name: column for column in found.standard.columns}
    for i, name in enumerate(names):
        groups.setdefault(columns[name].number if name in columns else 0, []).append(i)
    texts = found.base.expressions(digits=3)
    sigma = np.clip(np.nan_to_num(found.sigma_percent, nan=_VAGUE, posinf=_VAGUE), _SURE, _VAGUE)
    panels = []
    for number, members in sorted(groups.items()):
        curves = []
        for origin, role, label in _ORIGINS:
            chosen = [place for place, i in enumerate(members) if found.origin[i] == origin]
            if not chosen:
                continue
            rows = [members[place] for place in chosen]
            hints = tuple(
                f"{_short(texts[i])} = {found.base_values[i]:.4g} ± {found.sigma[i]:.2g} {unit_of.get(names[i], '')}".strip()
                for i in rows
            )
            curves.append(Curve(label, sigma[rows], np.array(chosen, dtype=np.float64), role, "rows", texts=hints))
        title = columns[names[members[0]]].joint if number else "base parameters"
        panels.append(
            Panel(
                title,
                Axis("sigma, % of the value", log=True, low=_SURE, high=_VAGUE),
                Axis(categories=tuple(names[i] for i in members)),
                tuple(curves),
                (Mark("x", 100.0, "as large as the value"),),
            )
        )
    caption = (
        "Short bars are small uncertainties. Each base parameter carries the name of the first of the parameters it combines; "
        "point at a bar for the whole expression."
    )
    return Figure("sigma", "Uncertainty of each base parameter", caption, tuple(panels), "grid", 180)


def singular_value_figure(found: Estimate, W: Array) -> Figure:
    """Singular values of the base regressor as it is and with columns of equal length."""
    lengths = np.linalg.norm(W, axis=0)
    seen = lengths > 0.0
    names = [name for name, shown in zip(found.base.names, seen, strict=True) if shown]
    plain = np.asarray(np.linalg.svd(W[:, seen], compute_uv=False), dtype=np.float64)
    _, scaled, V = np.linalg.svd(W[:, seen] / lengths[seen], full_matrices=False)
    index = np.arange(1, len(plain) + 1, dtype=np.float64)
    curves = [
        Curve("SI units", index, plain, "measured", "points", width=5.0),
        Curve(
            "columns of equal length",
            index,
            scaled,
            "data",
            "points",
            width=5.0,
            texts=tuple(_direction(row, names) for row in V),
        ),
    ]
    panel = Panel("", Axis("number"), Axis("singular value", log=True), tuple(curves))
    weakest = _direction(V[-1], names)
    caption = (
        f"Condition number {found.condition_number:.4g} in SI units over the parameters that the data determine, "
        f"{found.condition_number_scaled:.4g} with columns of equal length. Least determined direction: {weakest}."
    )
    return Figure("singular_values", "Singular values of the base regressor", caption, (panel,), "grid", 260, columns=1)


def _direction(row: Array, names: Sequence[str], terms: int = 4) -> str:
    """The largest parts of a unit vector over base parameters."""
    order = np.argsort(-np.abs(row))[:terms]
    sign = np.sign(row[order[0]]) or 1.0
    return " ".join(f"{sign * row[i]:+.2f} {names[i]}" for i in order if abs(row[i]) > 0.05).removeprefix("+")


def consistency_figure(robot: Robot, identified: Robot) -> Figure:
    """Smallest second central moment of every moving link as a share of their sum: negative is no body."""
    panels_of = {}
    for label, model in (("identified", identified), ("description", robot)):
        facts = consistency(model.parameters.inertials)
        total = np.abs(facts.second_moments).sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(total > 0.0, facts.second_moments[..., 0] / total, np.nan)
        panels_of[label] = np.where(facts.mass > 0.0, share, -1.0), facts.empty
    share, empty = panels_of["identified"]
    place = np.arange(len(share), dtype=np.float64)
    good = share >= 0.0
    curves: list[Curve] = []
    sides: tuple[tuple[str, Any, Role], ...] = (("consistent", good, "good"), ("no physical body", ~good, "bad"))
    for name, mask, role in sides:
        rows = mask & ~empty
        if rows.any():
            curves.append(Curve(name, share[rows], place[rows], role, "rows"))
    nominal, hollow = panels_of["description"]
    if not hollow.all():
        curves.append(Curve("description", nominal[~hollow], place[~hollow], "measured", "points", width=7.0))
    low = float(np.nanmin(np.concatenate([share[~empty], nominal[~hollow], [-0.02]])))
    panel = Panel(
        "",
        Axis("smallest second moment, share of all three", low=1.1 * low, high=0.36),
        Axis(categories=identified.links),
        tuple(curves),
        (Mark("x", 0.0, "boundary", "limit"),),
    )
    caption = "A sphere has a third, a plate zero; below zero no distribution of mass has these parameters."
    flat = [link for link, one, bare in zip(identified.links, share, empty, strict=True) if not bare and 0.0 <= one < FLAT]
    if flat:
        caption += (
            f" On the boundary, as flat as a plate: {', '.join(flat)}; their thickness is a limit of the fit, not measured."
        )
    return Figure("consistency", "Physical consistency of every link", caption, (panel,), "grid", 200, columns=1)


def trial_figure(trials: Sequence[tuple[str, float, float]], chosen: float | None) -> Figure:
    """Held-out error against raw torque over the cut-off, a curve per velocity source: ``(source, Hz, error)``."""
    roles: tuple[Role, ...] = ("data", "predicted", "residual", "mixed")
    sources = list(dict.fromkeys(source for source, _, _ in trials))
    curves = []
    for k, source in enumerate(sources):
        points = sorted((hz, 100.0 * error) for name, hz, error in trials if name == source and np.isfinite(error))
        if points:
            hz, error = np.array(points).T
            role = roles[k % len(roles)]
            curves.append(Curve(source, hz, error, role, width=1.6))
            curves.append(Curve(source, hz, error, role, "points", width=7.0))
    marks = () if chosen is None else (Mark("x", chosen, "chosen", "chosen"),)
    panel = Panel("", Axis("cut-off, Hz", log=True), Axis("held-out error, %"), tuple(curves), marks)
    caption = "Error against raw torque of a held-out part; the error against filtered torque always decreases as the cut-off is lowered."
    return Figure("filter_trials", "Filters tried", caption, (panel,), "grid", 230, columns=1)


def method_figure(comparisons: Sequence[Mapping[str, Any]]) -> Figure:
    """Error of every method on what it was identified on and on unseen data."""
    names = tuple(str(item["method"]) for item in comparisons)
    place = np.arange(len(names), dtype=np.float64)
    curves = []
    sides: tuple[tuple[str, str, Role], ...] = (
        ("identification", "identification", "measured"),
        ("validation", "unseen", "predicted"),
    )
    for key, label, role in sides:
        values = [item["relative_error"].get(key) for item in comparisons]
        error = np.array([np.nan if value is None else 100.0 * float(value) for value in values])
        if np.isfinite(error).any():
            curves.append(Curve(label, error, place, role, "points", width=9.0))
    panel = Panel("", Axis("relative torque error, %", low=0.0), Axis(categories=names), tuple(curves))
    caption = "The same data, filter and base parameters for every method."
    return Figure("methods", "Torque error of each method", caption, (panel,), "grid", 200, columns=1)


def _short(text: str, most: int = 90) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
