"""Bodies on the terminal: mass, centre and inertia with their intervals, and what a sensor measured of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynid.cli.run_screen import headline
from dynid.cli.screen import Screen

if TYPE_CHECKING:
    from dynid.estimation.body import BodyEstimate
    from dynid.finding import Verdict
    from dynid.pipeline.wrench import SensorBody


def show_sensor(found: SensorBody, verdict: Verdict | None = None) -> None:
    """The body on a sensor by every method, and the offsets; with a verdict what follows from it, which the screen of a run has itself."""
    best, screen = found.best, Screen()
    if verdict is not None:
        screen.line(headline(verdict), verdict.grade)
    screen.line(f"body on the sensor, in frame '{found.frame}'; {found.filter.describe()}")
    for line in body_lines(best):
        screen.line(line)
    force, moment = found.offsets[:3], found.offsets[3:]
    screen.line(f"offsets of the sensor: {numbers_text(force, 3)} N, {numbers_text(moment, 4)} N m")
    if found.gravity is not None:
        screen.line(f"gravity in the base frame: {numbers_text(found.gravity, 4)} m/s^2")
    rows = [
        (
            body.method,
            f"{body.mass:.4f} +- {1.96 * body.sigma[0]:.4f}",
            numbers_text(1e3 * body.com, 1),
            numbers_text(1e3 * body.inertia.diagonal(), 2),
            "yes" if body.feasible else "no",
        )
        for body in found.bodies
    ]
    screen.table(("method", "mass, kg (95 %)", "centre, mm", "inertia about it, g m^2: xx, yy, zz", "consistent"), rows)
    if verdict is not None:
        screen.findings((reason.level, reason.what, reason.remedy) for reason in verdict.reasons)
        for note in found.notes:
            screen.remark(note)
    screen.show()


def numbers_text(values: Any, digits: int) -> str:
    """Three numbers in a row."""
    return ", ".join(f"{value:.{digits}f}" for value in values)


def _spread_text(values: Any) -> str:
    """Half widths of intervals, with as many digits as they mean."""
    return ", ".join(f"{value:.2g}" for value in values)


def body_lines(body: BodyEstimate) -> list[str]:
    """Mass, centre and inertia of a body with their 95 % intervals."""
    lines = [
        f"mass {body.mass:.4f} +- {1.96 * body.sigma[0]:.4f} kg (95 %)",
        f"centre of mass [{numbers_text(body.com, 5)}] +- [{_spread_text(1.96 * body.com_sigma)}] m",
    ]
    lines += [
        "inertia about it " + "  ".join(f"{value: .5f}" for value in row) + f"  +- {_spread_text(1.96 * spread)} kg m^2"
        for row, spread in zip(body.inertia, body.inertia_sigma, strict=True)
    ]
    lines.append(f"physically consistent: {'yes' if body.feasible else 'no'}")
    return [*lines, f"not determined by these data: {', '.join(body.unknown)}"] if body.unknown else lines
