"""Effects by their names: the register, storage, effects of other packages."""

from __future__ import annotations

import doctest
import json
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.model.effects import (
    effect_from_dict,
    effect_to_dict,
    effects_from_names,
    nonnegative_symbols,
    register_effect,
    unregister_effect,
)
from dynid.model.effects.dry_friction import Coulomb, LoadCoulomb, Sigmoid, Stribeck
from dynid.model.effects.effect import NonlinearParameter
from dynid.model.effects.friction_models import (
    friction_effects,
    register_friction_model,
    tried_friction_models,
    unregister_friction_model,
)
from dynid.model.effects.jointwise import Coefficient, JointwiseEffect
from dynid.model.effects.linear import Armature, Viscous
from dynid.model.effects.wrapped import Coupled
from effect_cases import OTHERS, SEARCHED, WRIST, N, check_derivatives, joints, motion
from messages import facts


@pytest.mark.parametrize("effect", SEARCHED + OTHERS, ids=lambda e: repr(e)[:40])
def test_layout_and_storage(effect):
    m = motion(2)
    columns = effect.columns(range(1, N + 1), joints())
    assert effect.signals(m).shape == (50, len(columns))
    assert effect.incidence(N).shape == (N, len(columns))
    assert len({column.name for column in columns}) == len(columns)
    assert effect.is_friction == (columns[0].kind == "friction")
    again = effect_from_dict(json.loads(json.dumps(effect_to_dict(effect))))
    assert again == effect
    np.testing.assert_array_equal(again.signals(m), effect.signals(m))


def test_friction_that_never_drives_a_joint_is_not_negative():
    symbols = nonnegative_symbols()
    assert symbols[:3] == ("Ia", "fv", "fc")
    assert {"fs", "fsig", "flc", "Iam", "fcm"} <= set(symbols)
    assert not {"fo", "fcp", "fcn", "flv", "fvv", "fvvv"} & set(symbols)
    assert Coupled(Stribeck(), WRIST).nonnegative == ("fsm",)
    m = motion(8)
    for effect in (Viscous(), Coulomb(), Stribeck(), Sigmoid(shift=0.2), LoadCoulomb()):  # power that is never put in
        assert (effect.signals(m) * m.velocity).min() >= 0.0


@dataclass(frozen=True)
class Rounded(JointwiseEffect):
    """An effect as another package would write it."""

    name: ClassVar[str] = "rounded"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("frnd", "N m", nonnegative=True, place="friction"),)
    nonlinear: ClassVar[tuple[NonlinearParameter, ...]] = (
        NonlinearParameter("width", "rad/s", "positive", low=1e-3, high=1.0),
        NonlinearParameter("bend", "1", "positive", low=0.3, high=3.0),
    )
    width: float | tuple[float, ...] = 0.1
    bend: float | tuple[float, ...] = 1.0

    def formula(self, m, motion, theta):
        x = (motion.velocity / theta.width) ** 2
        return (m.sign(motion.velocity) * (x / (1.0 + x)) ** theta.bend,)


@pytest.fixture
def rounded():
    yield register_effect(Rounded)
    unregister_effect("rounded")


def test_an_effect_from_outside_is_known_everywhere(rounded):
    assert effects_from_names("viscous,rounded") == (Viscous(), Rounded())
    stored = json.loads(json.dumps(effect_to_dict(Coupled(Rounded(width=(0.1, 0.2, 0.3, 0.4)), WRIST))))
    assert effect_from_dict(stored) == Coupled(Rounded(width=(0.1, 0.2, 0.3, 0.4)), WRIST)
    assert {"frnd", "frndm"} <= set(nonnegative_symbols())
    check_derivatives(Rounded(width=(0.2, 0.4, 0.6, 0.8), bend=(0.5, 1.0, 1.5, 2.5)))
    register_friction_model("round", lambda start: (Viscous(), Rounded(width=start.width)))
    try:
        assert friction_effects("round") == (Viscous(), Rounded(width=0.02))
        assert "round" in tried_friction_models()
    finally:
        unregister_friction_model("round")
    with pytest.raises(UnknownNameError, match=facts("linear", "smooth", "round", "friction")):
        friction_effects("round")


def test_the_example_of_the_registry_runs():
    result = doctest.testmod(sys.modules["dynid.model.effects"])
    assert result.attempted > 10
    assert result.failed == 0


def test_what_cannot_be_registered_is_refused():
    @dataclass(frozen=True)
    class Lacking(Rounded):
        name: ClassVar[str] = "lacking"
        nonlinear: ClassVar[tuple[NonlinearParameter, ...]] = (NonlinearParameter("height", "1"),)

    @dataclass(frozen=True)
    class Massive(Rounded):
        name: ClassVar[str] = "massive"
        linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("mx", "kg m"),)

    @dataclass(frozen=True)
    class Second(Rounded):
        name: ClassVar[str] = "viscous"

    class Loose(Rounded):
        name: ClassVar[str] = "loose"

    for kind, words in (
        (Lacking, "effect 'lacking' has a nonlinear parameter 'height' without a dataclass field"),
        (Massive, "effect 'massive' has the symbol 'mx', expected letters that are no inertial"),
        (Second, r"effect 'viscous' is registered twice, by Viscous and .*Second"),
        (Loose, r"effect 'loose' is not a frozen dataclass; put @dataclass\(frozen=True\) above Loose"),
        (Viscous(), r"Viscous\(\) is registered as an effect, expected a class"),
    ):
        with pytest.raises(InputError, match=words):
            register_effect(kind)
    with pytest.raises(InputError, match=facts("auto", "friction")):
        register_friction_model("auto", lambda start: ())
    assert effects_from_names("viscous") == (Viscous(),)


def test_names_and_stored_options_are_checked():
    assert effects_from_names("sigmoid,load_coulomb,armature") == (Sigmoid(), LoadCoulomb(), Armature())
    with pytest.raises(UnknownNameError, match="unknown effect 'coupled'"):
        effects_from_names("coupled")
    with pytest.raises(UnknownNameError, match=facts("colour", "viscous")):
        effect_from_dict({"name": "viscous", "colour": 1})
    with pytest.raises(UnknownNameError, match="unknown effect 'magic'"):
        effect_from_dict({"name": "magic"})
