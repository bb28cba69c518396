"""Options of a run reach the methods that know them; what a method does not know is refused."""

from __future__ import annotations

import pytest

from dynid.errors import InputError
from dynid.estimation.consistency.consistent_set import MARGIN
from dynid.estimation.consistency.fit_problem import PULL
from dynid.estimation.methods.registry import method_from_options
from dynid.io.demo import demo_robot
from dynid.pipeline.options import Settings

ROBOT = demo_robot()
ASKED = {"margin": 1e-4, "regularization": 0.0, "weighted": True, "condition": "plain"}


def made(name: str, **options: object) -> object:
    return method_from_options(name, Settings(method=name, **options).as_dict(), ROBOT)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("sdp", ("condition", "margin", "regularization", "weighted")),
        ("fbpe-wls", ("condition", "margin", "regularization", "weighted")),
        ("bpfc", ("condition", "margin", "weighted")),
        ("retrieve", ("condition", "margin")),
        ("manifold", ("margin", "regularization", "weighted")),
        ("logcholesky", ("margin", "regularization", "weighted")),
    ],
)
def test_options_reach_the_methods_that_know_them(name: str, known: tuple[str, ...]) -> None:
    asked = {option: value for option, value in ASKED.items() if option != "condition" or option in known}
    method = made(name, **asked)
    assert {option: getattr(method, option) for option in known} == {option: ASKED[option] for option in known}


def test_the_defaults_of_the_command_line_are_those_of_the_methods() -> None:
    assert (Settings().margin, Settings().regularization) == (MARGIN, PULL)


@pytest.mark.parametrize("name", ["manifold", "logcholesky"])
def test_methods_on_consistent_coordinates_refuse_what_they_cannot_keep(name: str) -> None:
    with pytest.raises(InputError, match=f"'{name}' knows the full condition only, 'plain' was given; --method sdp"):
        made(name, condition="plain")
    with pytest.raises(InputError, match=f"'{name}' takes no constraints.*sdp or bpfc or fbpe-wls or retrieve"):
        made(name, constraints={"total_mass": {"upper": 30.0}})


def test_an_unconstrained_method_is_judged_under_the_condition_asked_for() -> None:
    assert made("ols", condition="plain").name == "ols"


def test_a_prior_that_is_named_reaches_consistent_coordinates() -> None:
    assert made("manifold").prior == "none"
    assert made("manifold", prior="entropic", prior_strength=2.0).strength == 2.0
