"""Values of every day from rows of a store."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.apps.fleet.information import Monitored, Reducer, by_day, follow, noise_of
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import torque_channels
from fleet_simulation import Event, simulated_fleet
from small_fleet import LOAD, small_plan, small_robot

ROBOT = small_robot()


BASE = reduce_to_base(ROBOT)


CHANNELS = torque_channels(ROBOT)


def test_values_of_every_day_are_exact_without_noise() -> None:
    """Friction of each day, and the load that comes, as they were put in."""
    events = {0: (Event(3, joint=1, factor=1.5), Event(4, load=LOAD))}
    plan = small_plan(
        robots=1, days=6, events=events, torque_noise=1e-9, day_scatter=0.0, body_spread=0.0, friction_spread=0.0
    )
    entries = list(simulated_fleet(ROBOT, BASE, plan))
    reducer, sigma = Reducer(CHANNELS, BASE), noise_of(entries)
    monitored = Monitored.of(ROBOT, BASE)
    one = follow("R", by_day([reducer.information(entry, sigma) for entry in entries]), monitored)
    for p, (name, kind) in enumerate(zip(monitored.names, monitored.kinds, strict=True)):
        if kind == "load":
            continue
        factor = np.where((np.arange(6) >= 3) & (kind == "friction") & name.endswith("1"), 1.5, 1.0)
        np.testing.assert_allclose(one.values[:, p], ROBOT.parameters[name] * factor, rtol=1e-5, atol=1e-5)
    # a planar two-joint arm shows of a load its first moments; its mass is not apart from them
    for name, value in (("load mx", LOAD[1]), ("load my", LOAD[2]), ("load mz", LOAD[3]), ("load m", LOAD[0])):
        if name in monitored.names and value != 0.0:
            values = one.values[:, monitored.names.index(name)]
            assert values[4:].mean() - values[:4].mean() == pytest.approx(value, rel=1e-3), name
    assert any(kind == "load" for kind in monitored.kinds)
