"""Options of a designed motion: what goes together."""

import pytest

from dynid.errors import InputError
from dynid.excitation.options import ExciteSettings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": "points", "harmonics": 3}, "--harmonics is given with --shape points"),
        ({"top_hz": 5.0}, "--top-hz is given without --for actuators"),
        ({"shape": "sinusoids", "amplitude": (0.1,)}, "--amplitude is given without --period-s"),
        ({"shape": "sinusoids", "centre": (0.1,)}, "--centre is given without --amplitude"),
        ({"collision": False, "clearance": 0.1}, "--clearance is given with --no-collision"),
        ({"engine": "dask:tcp://there:8786"}, "is measured on this machine"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        ExciteSettings(**options)


def test_chosen_are_those_that_have_a_value():
    settings = ExciteSettings(seed=3)
    assert settings.chosen("seed", "harmonics") == {"seed": 3}
