"""Signs of effects."""

from __future__ import annotations

from consistent_problems import body, holds
from dynid.estimation.constraints.base import Layout, PositiveEffects
from dynid.model.parameters import INERTIAL_SYMBOLS


def test_signs_of_effects():
    assert holds(PositiveEffects(), body())
    assert not holds(PositiveEffects(), body(), effects=(0.1, -0.2, 0.3, -0.4))
    assert not holds(PositiveEffects(("fo",)), body())


def test_signs_are_those_that_effects_state():
    link = [f"{symbol}1" for symbol in INERTIAL_SYMBOLS]
    layout = Layout.of([*link, "fo1", "fs1", "fsig1", "flc1", "flv1", "fvv1", "fcm1", "Ia1"])
    (rows,) = PositiveEffects().rows(layout)
    assert [layout.names[i] for i in sorted(set(rows.column.tolist()))] == ["fs1", "fsig1", "flc1", "fcm1", "Ia1"]
    assert PositiveEffects().rows(Layout.of([*link, "fo1", "fvv1"])) == ()
