"""Friction: fitting the numbers inside a friction model, and choosing a model by held-out prediction.

``fit_friction``: rigid bodies, friction and the numbers inside it, all joints together. ``robot`` has the effects, whose options
are where the search starts; ``samples`` are one set or several, thinned to ``most_rows``; ``weighted`` weights each joint by its
own noise; ``rounds`` limits how often weights and loads are renewed; a ``row_filter`` acts on regressor, friction and torque.

    >>> import dynid
    >>> robot = dynid.demo_robot(effects="none").only(["elbow"]).with_effects(dynid.effects.friction_effects("smooth"))
    >>> found = dynid.fit_friction(robot, dynid.demo_samples(robot))
    >>> found.relative_error < 0.05
    True

``choose_friction``: the ``robot`` with the friction ``model`` asked for, or for ``auto`` with the one that predicts held-out
blocks of the ``samples`` best. ``time_s`` is where the search for the time constant of the signal path starts; with
``bodies_held`` the rigid bodies stay and friction alone is fitted; a ``row_filter`` acts on regressor, friction and torque;
``tell`` is called with a short text before each step.

    >>> dynid.choose_friction(dynid.demo_robot(), [dynid.demo_samples()], "linear").model
    'linear'

``with_transmitted_load``: ``samples`` that carry the transmitted torque of this ``robot``, where one of its effects needs it.

    >>> loaded = dynid.demo_robot(effects=[dynid.Viscous(), dynid.LoadCoulomb()])
    >>> dynid.with_transmitted_load(loaded, dynid.demo_samples(dynid.demo_robot())).load.shape
    (1000, 7)
"""

from __future__ import annotations

from typing import Any

from dynid.lazy import Offered

_OFFERED = Offered(
    __name__,
    {
        "dynid.estimation.friction.choice": ("choose_friction",),
        "dynid.estimation.friction.fit": ("fit_friction", "with_transmitted_load"),
        "dynid.robot.effects": (
            "friction_effects",
            "friction_models",
            "register_friction_model",
            "unregister_friction_model",
        ),
    },
)


def __getattr__(name: str) -> Any:
    return _OFFERED.load(name)


def __dir__() -> list[str]:
    return _OFFERED.names
