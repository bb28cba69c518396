"""The robot as identified, link by link as boxes."""

from __future__ import annotations

from dynid.adapters.surfaces import Surface
from dynid.errors import InputError
from dynid.recording.samples import Samples
from dynid.report.page import Section
from dynid.report.scene import make_scene
from dynid.report.shown import Shown
from dynid.robot.model import Robot
from dynid.robot.shapes import link_shapes


def robot_section(shown: Shown) -> Section:
    """The robot as identified, link by link as boxes."""
    run = shown.run
    motion: Samples | None = shown.judged.samples if shown.judged is not None else next(iter(run.samples), None)
    text = (
        "Each link as the uniform box that has its ten parameters, at its centre of mass and along its principal axes; "
        "dashed, the box of the description. Red boxes stand for parameters that no physical body has."
    )
    heavy = run.identified.parameters.inertials[:, 0] > 0.0
    if not heavy.all():
        without = [name for name, has in zip(run.robot.links, heavy, strict=True) if not has]
        text += f" No box: {', '.join(without)}, without a positive mass."
    shapes, told = shapes_to_draw(run.robot)
    scene = make_scene(run.robot, run.identified, motion, shapes)
    return Section("The robot as identified", f"{text} {told}", (scene,), "Robot")


def shapes_to_draw(robot: Robot) -> tuple[tuple[Surface | None, ...], str]:
    """The shapes of the links, and a sentence on them or on why there are none."""
    try:
        shapes = link_shapes(robot)
    except InputError as error:
        return (), f"No shapes are drawn behind the boxes: {error}."
    return shapes, "Grey, the shapes of the links in the description, with fewer faces."
