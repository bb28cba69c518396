"""Identified parameters and their uncertainty."""

from __future__ import annotations

from dynid.inertia import mass_com_inertia
from dynid.report.estimate_plots import sigma_figure
from dynid.report.page import Folded, Part, Section, Table
from dynid.report.shown import Shown
from dynid.run.record import Run


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


def _effect_table(run: Run) -> Table | None:
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


def _link_table(run: Run) -> Table:
    rows = []
    nominal = run.robot.parameters.inertials
    for name, before, after in zip(run.robot.links, nominal, run.estimate.standard.inertials, strict=True):
        mass, center, tensor = mass_com_inertia(after)
        # Products and moments about the centre of mass, in the body's axes.
        moments = ", ".join(f"{tensor[i, j]:.3g}" for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
        rows.append((name, f"{before[0]:.4g}", f"{float(mass):.4g}", ", ".join(f"{x:.3g}" for x in center), moments))
    header = ("link", "description, kg", "mass, kg", "centre of mass, m", "Ixx, Iyy, Izz, Ixy, Ixz, Iyz about it, kg m²")
    return Table(header, tuple(rows), numeric=(1, 2))
