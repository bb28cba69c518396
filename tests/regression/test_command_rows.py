"""Command rows: the controller's torque as the left side, and delays between samples."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import InputError
from dynid.io.demo import demo_robot, demo_samples
from dynid.model.effects.dry_friction import SmoothCoulomb
from dynid.regression.command_rows import CommandRows, CommandSamples
from dynid.regression.factor import factorise
from dynid.signals.commands import Command, PositionControl

KP, KD = np.linspace(100.0, 400.0, 7), np.linspace(2.0, 8.0, 7)


def exact_log(robot: dynid.Robot, *, scale: float = 1.0, shift_s: float = 0.0, seed: int = 0) -> CommandSamples:
    """Motion whose commands are exactly those that its torque needs, sent ``shift_s`` early."""
    motion = demo_samples(robot, seconds=10.0, rate_hz=400.0, seed=seed)
    assert motion.torque is not None
    u = motion.position + (motion.torque + scale * KD * motion.velocity) / (scale * KP)
    return CommandSamples(motion, Command(motion.time - shift_s, u, "linear"), PositionControl(scale * KP, scale * KD))


def solved(rows: CommandRows) -> dict[str, float]:
    data = factorise(rows)
    stacked = data.stacked()
    values = np.linalg.lstsq(stacked[:, :-1], stacked[:, -1], rcond=None)[0]
    return dict(zip(data.parameters.names, values.tolist(), strict=True))


def test_effects_are_recovered_from_exact_commands() -> None:
    robot = demo_robot(effects=[dynid.Armature(), dynid.Viscous(), SmoothCoulomb(smooth_width=0.5), dynid.Offset()])
    truth = {name: 0.1 + 0.01 * k for k, name in enumerate(robot.parameters.names[70:])}
    robot = robot.with_parameters(truth)
    found = solved(CommandRows(robot, (exact_log(robot),), np.zeros(7)))
    assert max(abs(found[name] - value) for name, value in truth.items()) < 0.02  # of the means over a sample period


def test_a_delay_between_samples_is_undone() -> None:
    robot = demo_robot(effects=[dynid.Viscous()]).with_parameters({f"fv{j + 1}": 2.0 for j in range(7)})
    log = exact_log(robot, shift_s=0.0137)
    right = solved(CommandRows(robot, (log,), np.full(7, 0.0137)))
    wrong = solved(CommandRows(robot, (log,), np.zeros(7)))
    assert max(abs(right[f"fv{j + 1}"] - 2.0) for j in range(7)) < 0.02
    assert max(abs(wrong[f"fv{j + 1}"] - 2.0) for j in range(7)) > 0.2


def test_gains_up_to_a_factor_need_two_settings() -> None:
    robot = demo_robot(effects=[dynid.Viscous()]).with_parameters({f"fv{j + 1}": 2.0 for j in range(7)})
    free = (*robot.parameters.names[70:], *(f"{s}{j + 1}" for s in ("kp", "kd") for j in range(7)))
    one = factorise(CommandRows(robot, (exact_log(robot),), np.zeros(7), free)).stacked()
    assert np.linalg.matrix_rank(one[:, :-1] / np.linalg.norm(one[:, :-1], axis=0), tol=1e-9) == 21 - 7
    two = CommandRows(robot, (exact_log(robot), exact_log(robot, scale=2.0, seed=1)), np.zeros(7), free)
    found = solved(two)
    assert max(abs(found[name] - (2.0 if name.startswith("fv") else 1.0)) for name in free) < 0.03


def test_freed_bodies_keep_their_whole_value() -> None:
    robot = demo_robot(effects=[])
    changed = robot.with_parameters({"m7": robot.parameters["m7"] + 0.5, "mz7": robot.parameters["mz7"] + 0.05})
    rows = CommandRows(robot, (exact_log(changed),), np.zeros(7), ("mx7", "my7", "mz7"))
    held = CommandRows(changed, (exact_log(changed),), np.zeros(7), ("mx7", "my7", "mz7"))
    assert abs(solved(held)["mz7"] - changed.parameters["mz7"]) < 2e-3
    assert abs(solved(rows)["mz7"] - robot.parameters["mz7"]) > 0.02


def test_an_unknown_column_is_refused_by_name() -> None:
    robot = demo_robot(effects=[])
    with pytest.raises(InputError, match="kq3"):
        CommandRows(robot, (exact_log(robot),), np.zeros(7), ("kq3",))


def test_the_mean_of_a_staircase_is_exact_for_any_delay() -> None:
    t = np.array([0.0, 0.1, 0.2, 0.3])
    command = Command(t, np.array([[0.0], [1.0], [3.0], [3.0]]))
    assert np.isclose(command.mean(np.array([0.2]), 0.1, np.zeros(1))[0, 0], 2.0)
    assert np.isclose(command.mean(np.array([0.2]), 0.1, np.array([0.02]))[0, 0], 0.7 * 1.0 + 0.3 * 3.0)
    assert command.at(np.array([0.15, 0.2]), np.zeros(1))[:, 0].tolist() == [1.0, 3.0]
