"""What was identified and how surely; what the data can tell apart; whether bodies could exist; what was tried.

The robot as identified, link by link as boxes.

Identified parameters and their uncertainty.

Whether the bodies could exist.

Retrieval under bounds: how far from the best possible, and what the joints carry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.result import Estimate
from dynid.finding import Finding
from dynid.io.robots.shapes import link_shapes
from dynid.io.robots.solids import Surface
from dynid.model.inertia import consistency, mass_com_inertia
from dynid.model.robot import Robot
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.sections.context import Shown
from dynid.report.figure import Figure
from dynid.report.page import Folded, Part, Section, Table
from dynid.report.panel import Axis, Curve, Mark, Panel, Role
from dynid.report.scene import make_scene
from dynid.signals.samples import Samples

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


def robot_section(shown: Shown) -> Section:
    """The robot as identified, link by link as boxes."""
    run = shown.run
    motion: Samples | None = shown.judged.samples if shown.judged is not None else next(iter(run.samples), None)
    text = (
        "Each link as the uniform box that has its ten parameters, at its centre of mass and along its principal axes; "
        "dashed, the box of the description. Red boxes stand for parameters that no physical body has."
    )
    heavy = run.model.parameters.inertials[:, 0] > 0.0
    if not heavy.all():
        without = [name for name, has in zip(run.robot.links, heavy, strict=True) if not has]
        text += f" No box: {', '.join(without)}, without a positive mass."
    shapes, told = shapes_to_draw(run.robot)
    scene = make_scene(run.robot, run.model, motion, shapes)
    return Section("The robot as identified", f"{text} {told}", (scene,), "Robot")


def shapes_to_draw(robot: Robot) -> tuple[tuple[Surface | None, ...], str]:
    """The shapes of the links, and a sentence on them or on why there are none."""
    try:
        shapes = link_shapes(robot)
    except InputError as error:
        return (), f"No shapes are drawn behind the boxes: {error}."
    return shapes, "Grey, the shapes of the links in the description, with fewer faces."


def parameters_section(shown: Shown) -> Section:
    """Identified parameters and their uncertainty."""
    run = shown.run
    found = run.estimate
    units = dict(zip(found.standard.names, found.standard.units, strict=True))
    nominal = found.base.base_values(run.robot.parameters)
    words = {"data": "data", "mixed": "data and prior", "prior": "prior, not excited"}
    rows = tuple(
        (
            text,
            f"{value:.6g}",
            units.get(name, ""),
            spread,
            f"{before:.4g}",
            words[origin],
        )
        for name, text, value, spread, before, origin in zip(
            found.base.names,
            found.base.expressions(digits=4),
            found.base_values,
            found.sigma_texts,
            nominal,
            found.origin,
            strict=True,
        )
    )
    table = Table(("base parameter", "value", "unit", "sigma", "description", "from"), rows, numeric=(1, 3, 4), code=(0,))
    effects = _effect_table(run)
    parts: list[Part] = [sigma_figure(found, units)]
    if effects is not None:
        parts.append(Folded("Friction and rotor inertia of every joint", (effects,)))
    parts.append(Folded(f"All {found.base.n_base} base parameters with their expressions", (table,)))
    parts.append(Folded("Inertial parameters of every link", (_link_table(run),)))
    text = (
        "Base parameters are the combinations that motion can determine; sigma is one standard deviation of their value. "
        "What the motion did not excite keeps the value of the description and is marked."
    )
    return Section("Identified parameters and their uncertainty", text, tuple(parts), "Parameters")


def _effect_table(run: IdentificationResult) -> Table | None:
    found = run.estimate.standard
    columns = found.columns[found.n_inertial :]
    if not columns:
        return None
    sigma = dict(zip(run.estimate.base.names, run.estimate.sigma, strict=True))
    rows = tuple(
        (
            column.name,
            column.joint,
            f"{found[column.name]:.5g}",
            f"{sigma[column.name]:.2g}" if column.name in sigma else "–",
            column.unit,
        )
        for column in columns
    )
    return Table(("parameter", "joint", "value", "sigma of its base parameter", "unit"), rows, numeric=(2, 3), code=(0,))


def _link_table(run: IdentificationResult) -> Table:
    rows = []
    nominal = run.robot.parameters.inertials
    for name, before, after in zip(run.robot.links, nominal, run.estimate.standard.inertials, strict=True):
        mass, center, tensor = mass_com_inertia(after)
        # Products and moments about the centre of mass, in the body's axes.
        moments = ", ".join(f"{tensor[i, j]:.3g}" for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
        rows.append((name, f"{before[0]:.4g}", f"{float(mass):.4g}", ", ".join(f"{x:.3g}" for x in center), moments))
    header = ("link", "description, kg", "mass, kg", "centre of mass, m", "Ixx, Iyy, Izz, Ixy, Ixz, Iyz about it, kg m²")
    return Table(header, tuple(rows), numeric=(1, 2))


def consistency_section(shown: Shown) -> Section:
    """Whether the bodies could exist."""
    run = shown.run
    verdict = run.consistency
    rows = tuple(
        (
            link.name,
            f"{link.mass:.5g}",
            "empty" if link.empty else ("yes" if link.consistent else "no"),
            f"{link.triangle_slack:.3g}",
            f"{link.min_eigenvalue:.3g}",
            link.fault,
        )
        for link in verdict.links
    )
    header = ("link", "mass, kg", "consistent", "triangle slack, kg m²", "smallest eigenvalue", "fault")
    table = Table(header, rows, numeric=(1, 3, 4))
    text = (
        "A body is physically consistent if its mass is positive and its principal moments obey the triangle "
        "inequality. Motion does not determine how a sum is shared among links, so parameters that predict well may still "
        "belong to no physical body."
    )
    proven = run.feasibility
    if proven is not None:
        stated = proven.sentence or f"Base values: a robot whose links meet the {proven.condition} condition has them"
        text += f" {'; '.join(part for part in (stated[:1].upper() + stated[1:], proven.inertia_matrix) if part)}."
    return Section(
        "Physical consistency",
        text,
        (consistency_figure(run.robot, run.model), Folded("Link by link", (table,))),
        "Consistency",
    )


def retrieval_section(shown: Shown) -> Section | None:
    """How far a retrieved set is from the best possible, what it violates, and what the joints would carry."""
    run = shown.run
    found = run.retrieval
    if not found:
        return None
    violated = found["violated"]
    items = [
        Finding("good", "Every bound and condition is met.")
        if not violated
        else Finding("error", f"Violated: {', '.join(f'{name} by {size:.3g}' for name, size in violated.items())}."),
        Finding(
            "note",
            f"Its cost is {found['cost']:.6g}; no set that meets the convex conditions costs less than "
            f"{found['lower_bound']:.6g}, so the gap is {found['gap']:.2g}.",
        ),
    ]
    parts: list[Part] = [tuple(items)]
    wrenches = found.get("largest_joint_wrench", ())
    if wrenches:
        rows = tuple(
            (name, f"{entry['force']:.4g}", f"{entry['moment']:.4g}")
            for name, entry in zip(run.robot.joint_names, wrenches, strict=True)
        )
        parts.append(Table(("joint", "largest force, N", "largest moment, N m"), rows, numeric=(1, 2)))
    given = found.get("coefficients", ())
    if given:
        lines = tuple(
            (
                entry["name"],
                f"{entry['given']:.6g}",
                f"{entry['retrieved']:.6g}",
                "–"
                if entry["sigma_percent"] is None or math.isnan(entry["sigma_percent"])
                else f"{entry['sigma_percent']:.3g} %",
            )
            for entry in given
        )
        header = ("coefficient", "given", "retrieved", "sigma of the given one")
        parts.append(Folded(f"All {len(given)} coefficients", (Table(header, lines, numeric=(1, 2, 3), code=(0,)),)))
    text = "Parameters that joint torque does not determine still set the forces inside the joints; plausible bodies give plausible forces."
    return Section("Retrieval under bounds", text, tuple(parts), "Retrieval")
