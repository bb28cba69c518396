"""A designed motion that tests of two rooms look at."""

from __future__ import annotations

import numpy as np

from dynid.excitation.excitation_result import Excitation, finished_excitation
from dynid.excitation.limits import limits_of
from dynid.excitation.shapes import FourierShape
from dynid.regression.base import reduce_to_base
from problems import planar_2r


def designed_motion() -> Excitation:
    robot = planar_2r()
    motion = FourierShape(5.0, 3).trajectory(0.3 * np.random.default_rng(0).normal(size=(2, 7)))
    return finished_excitation(
        robot,
        reduce_to_base(robot),
        motion,
        limits_of(robot),
        criterion="condition",
        rest=True,
        periods=1,
        n_times=1000,
        began=0.0,
        seed=4,
        notes=("a note <b>",),
    )
