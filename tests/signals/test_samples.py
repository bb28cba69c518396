"""Rows of samples: views that need no second check, and backward time that is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.signals.samples import Samples


def make_samples(n: int = 20) -> Samples:
    rng = np.random.default_rng(0)
    q, v, a, tau, load = rng.normal(size=(5, n, 2))
    return Samples(0.1 * np.arange(n), q, v, a, torque=tau, load=load, notes=("made",))


@pytest.mark.parametrize("rows", [slice(3, 9), slice(None), slice(2, None, 3), slice(-4, None), slice(5, 5)])
def test_rows_are_those_of_every_array(rows: slice) -> None:
    samples = make_samples()
    part = samples[rows]
    for name in ("time", "position", "velocity", "acceleration", "torque", "load"):
        values = getattr(part, name)
        np.testing.assert_array_equal(values, getattr(samples, name)[rows])
        assert values.flags.c_contiguous
        assert not values.flags.writeable
    assert (part.raw_torque, part.travel, part.notes) == (None, None, ("made",))
    assert len(part) == len(samples.time[rows])
    assert part[1:2].time.shape == part.time[1:2].shape


def test_rows_in_backward_order_are_refused() -> None:
    with pytest.raises(InputError, match="time does not grow"):
        make_samples()[::-1]
