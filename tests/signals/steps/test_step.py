"""A step of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.io.logs.read import open_recording
from dynid.signals.steps.step import Signals, Tally, Upstream


class _Doubled(dynid.Step):
    """A step as a user writes one: only what it does."""

    def over(self, upstream: Upstream, tally: Tally) -> Iterator[Signals]:
        for piece in upstream(tally):
            yield piece.updated({"torque": 2.0 * piece.values["torque"]})


def test_a_step_of_ones_own_needs_nothing_but_what_it_does(tmp_path: Path) -> None:
    log = dynid.demo_recording(seconds=6.0)
    steps = [dynid.LowPass(cutoff_hz=8.0), dynid.Differentiate()]
    plain, doubled = dynid.process(log, steps), dynid.process(log, [_Doubled(), *steps])
    np.testing.assert_allclose(doubled.torque, 2.0 * plain.torque, rtol=1e-12)
    np.testing.assert_array_equal(doubled.position, plain.position)
    path = dynid.write_recording(log, tmp_path / "log.parquet")
    stream = open_recording(path, dynid.demo_robot(), chunk_rows=50)
    pieces = list(dynid.process(stream, [_Doubled(), *steps]))
    np.testing.assert_allclose(np.vstack([piece.torque for piece in pieces]), doubled.torque, rtol=1e-9)


def test_a_step_that_does_nothing_is_refused_at_once() -> None:
    class Empty(dynid.Step):
        pass

    with pytest.raises(TypeError, match="over"):
        Empty()  # type: ignore[abstract]
