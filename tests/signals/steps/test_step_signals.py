"""Pieces of a log on their way to samples: cutting, joining, what is missing, what is counted."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.signals.steps.step import Signals, Tally
from messages import facts

TIME = 0.01 * np.arange(10)
WHOLE = Signals(
    TIME, {"position": np.arange(20.0).reshape(10, 2), "raw_torque": np.ones((10, 2))}, start_s=0.0, first_row=100
)


def test_a_cut_keeps_count_of_its_rows():
    piece = WHOLE.cut(slice(3, 7))
    assert (len(piece), piece.first_row, piece.start_s) == (4, 103, 0.0)
    assert piece.end_s == pytest.approx(0.06)
    np.testing.assert_array_equal(piece.values["position"], WHOLE.values["position"][3:7])
    assert piece.cut(slice(-2, None)).first_row == 105


def test_cut_and_joined_again_is_the_same():
    again = WHOLE.cut(slice(0, 4)).joined(WHOLE.cut(slice(4, None)))
    np.testing.assert_array_equal(again.time, WHOLE.time)
    np.testing.assert_array_equal(again.values["position"], WHOLE.values["position"])
    assert again.first_row == 100


def test_chosen_rows_and_changes():
    every_third = WHOLE.chosen(np.arange(0, 10, 3), period_s=0.03)
    assert every_third.time.tolist() == pytest.approx([0.0, 0.03, 0.06, 0.09])
    assert every_third.period_s == 0.03
    assert len(WHOLE.chosen(TIME > 0.055).values["raw_torque"]) == 4


def test_updated_leaves_the_original_alone():
    more = WHOLE.updated({"velocity": np.zeros((10, 2))})
    assert set(more.values) == {"position", "raw_torque", "velocity"}
    assert "velocity" not in WHOLE.values


def test_what_a_step_misses_is_named():
    WHOLE.need(["position"], "LowPass")
    with pytest.raises(InputError, match=facts("LowPass", "'torque'", "position")) as caught:
        WHOLE.need(["position", "torque"], "LowPass")
    assert "raw_torque" not in str(caught.value)


def test_a_tally_says_each_sentence_once_and_adds_rows():
    tally = Tally()
    for rows in (3, 0, 4):
        tally.say("resampled to 1 ms")
        tally.count("{n} rows dropped", rows)
    tally.count("{n} rows repeated", 0)
    assert tally.notes == ("resampled to 1 ms", "7 rows dropped")
