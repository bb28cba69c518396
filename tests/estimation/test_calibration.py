"""Zeros, gains and offsets are found with intervals that hold, and what rows cannot tell apart has no number."""

from __future__ import annotations

import numpy as np
import pytest

from calibrated_logs import JOINTS, Geared, WrongSensors, geared_log, wrong_sensors
from dynid.errors import InputError
from dynid.estimation.calibration import GEAR_BAND_HZ, Calibrated, Sought, find_calibration
from dynid.pipeline.signal_filter import Filter, to_samples
from dynid.regression.row_filter import BandLimit

SEPARABLE = [("zero", 1), ("zero", 2), *(("gain", j) for j in (0, 2, 3)), *(("offset", j) for j in range(JOINTS))]


def found_in(made: WrongSensors, sought: list[Sought], **known: float) -> tuple[Calibrated, ...]:
    return find_calibration(
        made.robot, made.samples, BandLimit(10.0), sought, with_friction=lambda robot, _: robot, fixed=known
    )[0]


def test_errors_are_found_beside_one_another() -> None:
    made = wrong_sensors(3, zero=True, gain=True, offset=True)
    for (name, j), one in zip(SEPARABLE, found_in(made, SEPARABLE), strict=True):
        assert one.value is not None, one.reason
        assert one.lower is not None
        assert one.upper is not None
        assert (one.joint, one.quantity) == (made.robot.joint_names[j], name)
        assert abs(one.value - made.true(name, j)) <= 0.5 * (one.upper - one.lower) * 4.0 / 1.96
        assert one.upper - one.lower < {"zero": 0.02, "gain": 0.05, "offset": 0.5}[name]
    assert "which was undone" in found_in(made, [("zero", 1)])[0].note()


def test_what_cannot_be_told_apart_has_no_number() -> None:
    made = wrong_sensors(0, zero=True)
    first, last = found_in(
        made, [("zero", 0), ("zero", JOINTS - 1)]
    )  # a vertical axis, and a link that may turn with its joint
    assert first.value is None
    assert last.value is None
    assert "no torque of this motion shows it" in first.note()
    gains = found_in(made, [("gain", j) for j in range(JOINTS)])
    assert all(one.value is None and "all masses" in one.reason for one in gains)


def test_a_known_parameter_fixes_the_scale() -> None:
    made = wrong_sensors(1, gain=True)
    last = made.robot.parameters.as_dict()
    names = [f"{symbol}{JOINTS}" for symbol in ("mx", "my", "mz")]
    found = found_in(made, [("gain", j) for j in range(JOINTS)], **{name: last[name] for name in names if name in last})
    for j, one in enumerate(found):
        assert one.value == pytest.approx(made.true("gain", j), abs=0.03)


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    found = found_in(wrong_sensors(5), SEPARABLE)
    assert not any(one.undone for one in found)
    assert "no more than chance" in found[0].note()


def test_short_logs_are_refused() -> None:
    made = wrong_sensors(0)
    with pytest.raises(InputError, match="too short"):
        find_calibration(made.robot, [made.samples[0][:40]], None, [("zero", 1)], with_friction=lambda robot, _: robot)


@pytest.mark.slow
def test_intervals_hold_over_many_logs() -> None:
    inside, false = [], 0
    for seed in range(60):
        made = wrong_sensors(seed, zero=True, gain=True, offset=True)
        for (name, j), one in zip(SEPARABLE, found_in(made, SEPARABLE), strict=True):
            assert one.value is not None, one.reason
            assert one.lower is not None
            assert one.upper is not None
            inside.append(one.lower <= made.true(name, j) <= one.upper)
        false += any(one.undone for one in found_in(wrong_sensors(1000 + seed), SEPARABLE))
    assert 0.90 <= np.mean(inside) <= 0.98
    assert false <= 3  # 5 % of the logs


def found_behind_gears(log: Geared, sought: list[Sought]) -> tuple[Calibrated, ...]:
    band = Filter(2.0 * GEAR_BAND_HZ, 2.0 * GEAR_BAND_HZ, 4, "position", row_band_hz=GEAR_BAND_HZ)
    samples = to_samples(log.recording, band, log.recording.n_samples)
    return find_calibration(log.robot, [samples], band.row_filter, sought, with_friction=lambda robot, _: robot)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "quantities"), [({"stiff": True}, ("compliance",)), ({"play": True, "warm": True}, ("backlash", "temperature"))]
)
def test_gears_and_temperature_of_an_arm_in_mujoco(made: dict[str, bool], quantities: tuple[str, ...]) -> None:
    sought = [(name, j) for name in quantities for j in range(JOINTS)]
    seen = 0
    for seed in (0, 1):
        for (name, j), one in zip(sought, found_behind_gears(log := geared_log(seed, **made), sought), strict=True):
            if one.value is not None and one.lower is not None and one.upper is not None:
                assert abs(one.value - log.true(name, j)) < (one.upper - one.lower) / 3.92 * 4.0
                seen += one.undone
    assert seen >= 5


@pytest.mark.slow
def test_no_play_is_found_where_there_is_none_and_a_vertical_axis_has_no_number() -> None:
    found = found_behind_gears(geared_log(3), [("backlash", j) for j in range(JOINTS)])
    assert found[0].value is None
    assert "no torque of this motion shows it" in found[0].note()
    assert not any(one.undone for one in found)


def test_a_stiffness_is_told_in_words() -> None:
    assert "stiffness of 5000 to 2e+04 N m/rad" in Calibrated("elbow", "compliance", 1e-4, 5e-5, 2e-4, undone=True).note()
    assert "5000 or more N m/rad" in Calibrated("elbow", "compliance", 1e-5, -1e-5, 2e-4).note()


def test_play_needs_rows_that_are_filtered() -> None:
    made = wrong_sensors(0)
    with pytest.raises(InputError, match="filtered signals"):
        find_calibration(made.robot, made.samples, None, [("backlash", 1)], with_friction=lambda robot, _: robot)
