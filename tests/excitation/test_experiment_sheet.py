"""What the sheet says to the person at the robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.excitation.experiment_sheet import experiment_sheet
from dynid.excitation.shapes import BSplineShape
from dynid.excitation.trajectories import SequenceTrajectory


def test_experiment_sheet(excitation):
    card = experiment_sheet(excitation, 500.0, ["traj.csv"])
    for text in (
        "25 % speed",
        "Warm up",
        "500 Hz",
        "`traj.csv`",
        "a note",
        "seed 4",
        "Not checked: torque; collision",
        "Play the motion 5 times without pause. It starts and ends at rest in the same pose",
    ):
        assert text in card
    for name in excitation.robot.joint_names:
        assert name in card
    fastest = next(use for use in excitation.limit_uses if use.name == "velocity")
    assert f"| velocity | {fastest.limit:.4g} rad/s | {fastest.largest:.4g} rad/s | {100.0 * fastest.share:.1f} % |" in card


def test_the_card_says_how_each_controller_records(excitation):
    card = experiment_sheet(excitation, 500.0, ["a.script", "a_dry_run.script", "a.yaml", "a.csv", "a.html", "a.dat"])
    record = card[card.index("## Record") : card.index("## After")]
    assert record.count("RTDE with the recipe timestamp, actual_q") == 1
    assert "ros2 bag record" in record
    assert "LeRobot" not in record


def test_the_card_says_how_to_repeat(excitation):
    motion = excitation.trajectory
    open_ended = BSplineShape(5.0, 6).trajectory(np.vstack([np.linspace(0.0, 1.0, 7), np.zeros(7)]))
    for playable, core, texts in (
        (
            SequenceTrajectory((motion,) * 2),
            motion,
            ("Play the motion 3 times.", "holds 2 periods", "does not start and end at rest"),
        ),
        (
            open_ended,
            open_ended,
            ("never repeat the file without a pause", "ends 1.000 away", "back to the start pose before each"),
        ),
        (
            SequenceTrajectory((excitation.playable.pieces[0], *(motion,) * 5, excitation.playable.pieces[-1])),
            motion,
            ("Play the motion once. It holds 5 periods.",),
        ),
    ):
        card = experiment_sheet(replace(excitation, playable=playable, trajectory=core))
        for text in texts:
            assert text in card
