"""The data check on logs whose joints have one known fault each."""

from __future__ import annotations

import numpy as np
import pytest

from checked_logs import clean, found, motion
from dynid.signals.checks import check_signals
from problems import planar_2r


def test_standstill() -> None:
    t = np.arange(5000) / 250.0
    q, v = motion(np.clip(t, 4.0, 14.0))
    v[(t < 4.0) | (t > 14.0)] = 0.0
    v += 1e-4 * np.random.default_rng(0).normal(size=v.shape)
    check = check_signals(clean(position=q, velocity=v))
    finding = found(check, "standstill")
    assert finding.level == "warning"
    assert finding.values["share"] == pytest.approx(0.5, abs=0.01)
    assert finding.values["head_s"] == pytest.approx(4.0, abs=0.05)
    assert finding.values["tail_s"] == pytest.approx(6.0, abs=0.05)
    assert "TrimToMotion()" in finding.remedy
    bare = check_signals(clean(position=q, velocity=None))
    assert found(bare, "standstill").values["share"] == pytest.approx(0.5, abs=0.02)
    assert found(bare, "no_velocity").level == "note"


@pytest.mark.parametrize("with_robot", [False, True])
def test_degrees(with_robot: bool) -> None:
    recording = clean()
    degrees = recording.with_(position=np.rad2deg(recording.position))
    check = check_signals(degrees, planar_2r() if with_robot else None)
    finding = found(check, "degrees")
    assert finding.level == "error"
    assert "deg" in finding.remedy
    assert "position is in degrees" in found(check, "velocity_scale").what


def test_wrapped_angle() -> None:
    recording = clean()
    turning = np.stack([np.angle(np.exp(2j * recording.time)), recording.position[:, 1]], axis=1)
    finding = found(check_signals(recording.with_(position=turning, velocity=None)), "wrapped_angle")
    assert finding.where == ("shoulder",)
    assert "Unwrap()" in finding.remedy


def test_current_and_external_torque_are_no_torque() -> None:
    recording = clean()
    current = recording.with_(torque=None, current=recording.torque)
    assert "drive gains" in found(check_signals(current), "current_only").remedy
    outside = recording.with_(torque=None, external_torque=recording.torque)
    assert "external torque" in found(check_signals(outside), "no_torque").what


def test_limits() -> None:
    recording = clean()
    check = check_signals(
        recording.with_(position=4.0 * recording.position, velocity=4.0 * np.array(recording.velocity)), planar_2r()
    )
    finding = found(check, "position_limit")
    assert "joint elbow runs from -2.798 to 2.798, its limits are -2.5 and 2.5" in finding.what
    assert "reaches 6.7" in found(check, "velocity_limit").what
    assert {found(check, code).level for code in ("position_limit", "velocity_limit")} == {"warning"}


@pytest.mark.parametrize(("share", "severity"), [(0.001, None), (0.01, "note"), (0.03, "warning")])
def test_a_controller_may_overshoot_a_position_limit(share: float, severity: str | None) -> None:
    recording, robot = clean(), planar_2r()
    position = np.array(recording.position)
    position[100, 1] = robot.position_limits[1, 0] - share * np.ptp(robot.position_limits[1])
    finding = check_signals(recording.with_(position=position), robot).find("position_limit")
    assert (finding.level if finding is not None else None) == severity
    if severity == "note":
        assert "--fraction" in finding.remedy
        assert finding.where == ("elbow",)


@pytest.mark.parametrize(("over", "severity"), [(1.01, None), (1.05, "note"), (1.2, "warning")])
def test_a_controller_may_overshoot_a_speed_limit(over: float, severity: str | None) -> None:
    recording, robot = clean(), planar_2r()
    fastest = np.quantile(np.abs(recording.velocity), 0.999, axis=0)
    velocity = np.array(recording.velocity) * over * robot.limits("dq_max") / fastest
    finding = check_signals(recording.with_(velocity=velocity), robot).find("velocity_limit")
    assert (finding.level if finding is not None else None) == severity


def test_joint_names() -> None:
    recording = clean()
    check = check_signals(recording.with_(joint_names=("shoulder", "wrist")), planar_2r())
    assert "log names joints wrist, which robot 'planar_2r' does not have" in found(check, "joint_names").what
    assert found(check, "absent_joints").where == ("elbow",)
    swapped = check_signals(recording.with_(joint_names=("elbow", "shoulder")), planar_2r())
    assert "order elbow, shoulder" in found(swapped, "joint_order").what
