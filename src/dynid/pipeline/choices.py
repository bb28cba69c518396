"""What logs decide before any estimate: the filter, errors of sensors, the friction model, which rows serve and what they state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dynid.engine import Tell
from dynid.estimation.advice import Advice, advise
from dynid.estimation.calibration import Calibrated
from dynid.estimation.friction.selection import FrictionChoice, choose_friction_model
from dynid.finding import DataCheck
from dynid.model.robot import Robot
from dynid.pipeline.calibrate import calibration_notes, with_calibration, with_lag_and_gravity
from dynid.pipeline.dwells import below_dead_zone, poisoning_dwells, without_dwells
from dynid.pipeline.filter_selection import Trial, chosen_filter, filter_memory_s, planned
from dynid.pipeline.log import Data
from dynid.pipeline.options import Settings
from dynid.pipeline.row_plan import RowPlan
from dynid.pipeline.signal_filter import Filter, with_dead_zone
from dynid.regression.factor import Regression


@dataclass(frozen=True, eq=False)
class Choices:
    """Logs, and what was chosen for them so far."""

    data: Data
    settings: Settings
    checks: tuple[DataCheck, ...]
    """What was found wrong with each log."""
    filter: Filter | None = None
    """None for a table of poses, and for the wrench of a sensor, which has a filter of its own."""
    trials: tuple[Trial, ...] = ()
    calibration: tuple[Calibrated, ...] | None = None
    friction: FrictionChoice | None = None
    plan: RowPlan = field(default_factory=RowPlan)
    """What the rows state."""
    notes: tuple[str, ...] = ()

    @property
    def robot(self) -> Robot:
        """Cut to the joints of the logs, with the effects that were chosen."""
        return self.data.known.robot


def choose_filter(found: Choices, progress: Tell) -> Choices:
    """Bands of signals and rows, or one cut-off of all signals; what is not in motion has none."""
    data, settings = found.data, found.settings
    if not data.known.parts:
        return found
    if not found.robot.floating:
        filtered, trials = chosen_filter(found.robot, data.known.recordings, settings, progress)
        return replace(found, filter=filtered, trials=trials)
    from dynid.pipeline.floating import choose_floating_filter, with_setup
    from dynid.pipeline.floating_log import floating_parts

    setup, filtered, trials = choose_floating_filter(floating_parts(data.known), settings, progress)
    return replace(found, data=with_setup(data, setup), filter=filtered, trials=trials)


def correct_sensors(found: Choices, progress: Tell) -> Choices:
    """With what was asked for of sensors undone: delay of torque, direction of gravity, zeros and gains. A wrench finds gravity itself."""
    if found.data.known.wrenches:
        return found
    if found.robot.floating:
        return _correct_imu(found, progress)
    data, settings, told = with_lag_and_gravity(found.data, found.filter, found.settings, progress)
    data, settings, calibration = with_calibration(data, found.filter, settings, progress)
    notes = (*found.notes, *told, *calibration_notes(calibration))
    return replace(found, data=data, settings=settings, calibration=calibration, notes=notes)


def _correct_imu(found: Choices, progress: Tell) -> Choices:
    """With errors of an IMU undone; they bend the choice of the filter, so that it is chosen again."""
    from dynid.pipeline.floating import with_setup
    from dynid.pipeline.floating_log import floating_parts
    from dynid.pipeline.imu import find_imu_errors

    for again in (True, False):
        assert found.filter is not None
        logs = floating_parts(found.data.known)
        setup, calibration = find_imu_errors(logs[0].setup, logs, found.filter, found.settings, progress)
        found = replace(found, data=with_setup(found.data, setup), calibration=calibration or None)
        if not (setup.plan.imu and again):
            break
        found = choose_filter(found, progress)
    return replace(found, notes=(*found.notes, *(one.note() for one in calibration if one.undone)))


def choose_model(found: Choices, progress: Tell) -> Choices:
    """With samples, and the robot as they decide: dead zone, springs, friction and its nonlinear parameters, rows that are left out."""
    data, settings, filtered = found.data, found.settings, found.filter
    if filtered is None:
        return replace(found, plan=RowPlan("wrench" if data.known.wrenches else "static"))
    if found.robot.floating:
        from dynid.pipeline.floating import choose_floating_model, with_setup
        from dynid.pipeline.floating_log import floating_parts
        from dynid.pipeline.imu import with_imu_moves

        data, checks, told = choose_floating_model(data, filtered, settings, found.checks, progress)
        logs = floating_parts(data.known)
        plan = logs[0].setup.plan
        if plan.imu:
            data = with_setup(data, with_imu_moves(logs[0].setup, logs, filtered))
        return replace(found, data=data, checks=checks, plan=plan, notes=(*found.notes, *told))
    data = below_dead_zone(data.filtered(filtered, settings.max_rows), found.robot, settings)
    robot, choice = _choose_friction(data, filtered, settings, progress)
    checks, dwells = found.checks, poisoning_dwells(data, robot, settings, filtered.row_filter)
    if dwells is not None:
        data, checks = without_dwells(data, dwells, checks)
        robot, choice = _choose_friction(data, filtered, settings, progress)
    plan = planned(settings, robot, data.known.recordings, filtered, progress)
    data = replace(data, known=replace(data.known, robot=robot))
    return replace(found, data=data, checks=checks, friction=choice, plan=plan)


def _choose_friction(
    data: Data, filtered: Filter, settings: Settings, progress: Tell
) -> tuple[Robot, FrictionChoice | None]:
    robot = with_dead_zone(data.known.robot, data.known.recordings, filtered, settings)
    memory_s, model = filter_memory_s(filtered), settings.friction_model
    return choose_friction_model(robot, data.known.windows, model, filtered.row_filter, memory_s, progress)


def find_advice(found: Choices, regression: Regression) -> tuple[Advice, ...]:
    """What the residual follows; nothing where a log was misread: there it follows the misreading, which the check has named."""
    findings = [finding for check in found.checks for finding in check]
    if found.filter is None or found.robot.floating:
        return ()
    if any(one.level == "error" or one.code == "tilted_base" for one in findings):
        return ()
    robot, settings, windows = found.robot, found.settings, found.data.known.windows
    motor_side = (settings.side or (robot.coupling.side if robot.coupling else None)) == "motor"
    gains, rows = settings.drive_gains, regression.sources
    return advise(robot, windows, found.filter.row_filter, motor_side=motor_side, drive_gains=gains, known=rows)
