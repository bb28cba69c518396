"""Rows of position-controlled joints without torque: the torque that their controller must have produced.

    kp (u(t - d) - q) - kd v = Y_held phi_held + Y phi

``u`` is the command, ``d`` its delay. What is held (rigid bodies as the description has them, by default) goes to the left, what is
asked for (friction, rotor inertia, bodies that are freed) are columns; so are gains that are not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array, freeze
from dynid.dynamics.inverse_dynamics import effect_signals, inverse_dynamics
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.model.effects.effect import unit_on
from dynid.model.parameters import Column, Parameters
from dynid.model.robot import Robot
from dynid.regression.channels import Channel
from dynid.regression.row_source import CHUNK_ROWS, Chunk, SampleRows
from dynid.signals.commands import Command, PositionControl
from dynid.signals.samples import Samples

GAIN_UNITS = {"kp": "N m/rad", "kd": "N m s/rad"}


@dataclass(frozen=True, eq=False)
class CommandSamples:
    """Motion of one log on an even clock, the command as logged, and what is known of the controller.

    Args:
        motion: position, velocity and acceleration.
        command: commanded positions on their own clock.
        control: gains and limits of the drives in this log.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.regression.command_rows import CommandSamples
        >>> from dynid.signals.commands import Command, PositionControl
        >>> motion = dynid.demo_samples(seconds=2.0)
        >>> control = PositionControl(np.full(7, 100.0), np.zeros(7))
        >>> len(CommandSamples(motion, Command(motion.time, motion.position), control))
        200
    """

    motion: Samples
    command: Command
    control: PositionControl

    def __len__(self) -> int:
        return len(self.motion)

    @property
    def period_s(self) -> float:
        """Sampling period of the motion."""
        return self.motion.duration_s / max(len(self.motion) - 1, 1)


@dataclass(frozen=True, eq=False)
class CommandRows(SampleRows):
    """Rows of position-controlled joints, one channel per joint.

    Args:
        robot: bodies as described, and the effects whose values are asked for.
        samples: one set per log, each with the gains of that log.
        delay_s: delay of the command, s, one per joint.
        free: names of the columns that are estimated: parameters of the robot, ``kp1``.. and ``kd1``.. for gains that are not known.
            The value of a gain is then a multiple of the log's own number. None for all effects of the robot.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.regression.command_rows import CommandRows, CommandSamples
        >>> from dynid.signals.commands import Command, PositionControl
        >>> robot, motion = dynid.demo_robot(), dynid.demo_samples()
        >>> kp = np.full(7, 100.0)
        >>> u = motion.position + motion.torque / kp  # what a drive without delay would have been sent
        >>> log = CommandSamples(motion, Command(motion.time, u, "linear"), PositionControl(kp, 0.0 * kp))
        >>> rows = CommandRows(robot, (log,), np.zeros(7))
        >>> rows.kind, len(rows.channels), rows.parameters.names[0]
        ('command', 7, 'fv1')
    """

    kind = "command"
    timed = True
    samples: tuple[CommandSamples, ...]
    delay_s: Array
    free: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delay_s", freeze(np.broadcast_to(self.delay_s, (self.robot.n_dof,))))
        if self.robot.floating:
            raise InputError(f"robot '{self.robot.name}' has a floating base; hold its base and describe it as fixed")
        columns = self.robot.parameters.columns[self.robot.parameters.n_inertial :]
        names = tuple(column.name for column in columns) if self.free is None else tuple(self.free)
        known = {*self.robot.parameters.names, *(column.name for column in _gain_columns(self.robot))}
        for name in names:
            if name not in known:
                raise UnknownNameError("parameter", name, sorted(known), f"robot '{self.robot.name}'")
        object.__setattr__(self, "free", names)

    @cached_property
    def parameters(self) -> Parameters:
        own = self.robot.parameters
        chosen = set(self.free or ())
        columns = [column for column in (*own.columns, *_gain_columns(self.robot)) if column.name in chosen]
        nominal = own.as_dict()
        return Parameters(tuple(columns), np.array([nominal.get(column.name, 1.0) for column in columns]))

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        n, chosen = len(self.parameters), []
        for j, name in enumerate(self.robot.dof_names):
            columns = [k for k, column in enumerate(self.parameters.columns) if self._enters(column, j)]
            chosen.append(Channel(name, freeze(columns, np.int64), freeze(np.eye(n)[columns])))
        return tuple(chosen)

    def _enters(self, column: Column, joint: int) -> bool:
        if column.kind != "inertial":
            return column.number == joint + 1
        tree, body = self.robot.tree, column.number - 1
        return joint in tree.support[tree.support_start[body] : tree.support_start[body + 1]]

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        step = chunk_rows or CHUNK_ROWS
        for log in self.samples:
            command = log.command.band_limited(log.motion.time, log.period_s, self.delay_s)
            rate = np.gradient(command, log.period_s, axis=0) if log.control.rate else np.zeros_like(command)
            # Torque of the drives as far as their gains are known, and what gains that are not known multiply.
            names = self.parameters.names
            error, slip = log.control.parts(command, rate, log.motion.position, log.motion.velocity, log.motion.time)
            known = {
                symbol: np.array([f"{symbol}{j + 1}" not in names for j in range(self.robot.n_dof)], dtype=float)
                for symbol in GAIN_UNITS
            }
            torque = known["kp"] * error - known["kd"] * slip
            sure = (known["kp"] * known["kd"]) > 0.0
            torque = np.where(sure, log.control.limited(torque, log.motion.velocity), torque)
            made = {"kp": -error, "kd": slip}
            torque = log.control.lagged(torque, log.period_s)
            signals = {symbol: log.control.lagged(x, log.period_s) for symbol, x in made.items()}
            for start in range(0, len(log), step):
                part = slice(start, start + step)
                yield self._rows(log.motion[part], torque[part], {symbol: x[part] for symbol, x in signals.items()})

    def _rows(self, motion: Samples, drive: Array, signals: dict[str, Array]) -> Chunk:
        robot, q, v, a = self.robot, motion.position, motion.velocity, motion.acceleration
        names = self.parameters.names
        torque = drive - inverse_dynamics(robot, q, v, a, effects=False)
        effects = effect_signals(robot, q, v, a) if robot.effects else np.empty((len(q), 0))
        effect_names = robot.parameters.names[robot.parameters.n_inertial :]
        free = set(names)
        for k, name in enumerate(effect_names):
            if name not in free:
                torque = torque - robot.parameters[name] * effects[:, [k]] * robot.effect_incidence[:, k]
        inertial = [column.name for column in self.parameters.columns if column.kind == "inertial"]
        Y = torque_regressor(robot, q, v, a) if inertial else None
        blocks = []
        for j, channel in enumerate(self.channels):
            parts: list[Array] = []
            for k in channel.columns:
                column = self.parameters.columns[k]
                if column.symbol in GAIN_UNITS:
                    parts.append(signals[column.symbol][:, j])
                elif column.kind == "inertial":
                    assert Y is not None
                    place = robot.parameters.index(column.name)
                    # a freed value goes back to the right, whole: it was subtracted with the other bodies
                    parts.append(Y[:, j, place])
                    torque[:, j] += Y[:, j, place] * robot.parameters.values[place]
                else:
                    k_effect = effect_names.index(column.name)
                    parts.append(effects[:, k_effect] * robot.effect_incidence[j, k_effect])
            blocks.append(np.asfortranarray(np.column_stack([*parts, torque[:, j]])))
        return Chunk(blocks, motion.time)


def _gain_columns(robot: Robot) -> tuple[Column, ...]:
    return tuple(
        Column(symbol, j + 1, "actuator", unit_on(joint, unit), joint.name)
        for symbol, unit in GAIN_UNITS.items()
        for j, joint in enumerate(robot.joints)
    )
