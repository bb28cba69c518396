"""The data check on logs with one known fault each, and on the public logs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.codec import to_record
from dynid.errors import InputError
from dynid.finding import DataCheck, Finding, dropped_rows
from dynid.io.demo import demo_recording, demo_robot
from dynid.pipeline.options import Settings
from dynid.pipeline.signal_filter import velocity_sources
from dynid.signals.checks import check_signals
from dynid.signals.measures import is_difference, lag_between, noise_level, velocity_lag
from dynid.signals.recording import Recording, RecordingSource
from problems import planar_2r

NAMES = ("shoulder", "elbow")


def motion(t: Array) -> tuple[Array, Array]:
    q = np.stack([0.8 * np.sin(2.1 * t), 0.5 * np.cos(1.3 * t) + 0.2 * np.sin(3.0 * t)], axis=1)
    v = np.stack([1.68 * np.cos(2.1 * t), -0.65 * np.sin(1.3 * t) + 0.6 * np.cos(3.0 * t)], axis=1)
    return q, v


def clean(n: int = 5000, rate_hz: float = 250.0, **changes: Any) -> Recording:
    t = np.arange(n) / rate_hz
    q, v = motion(t)
    noise = np.random.default_rng(0).normal(size=(2, n, 2))
    tau = 20.0 * np.cos(q) + 2.0 * np.tanh(v / 0.05) + 0.1 * noise[0]
    recording = Recording(time=t, position=q, velocity=v + 1e-4 * noise[1], torque=tau, joint_names=NAMES)
    return recording.with_(**changes)


def found(check: DataCheck, code: str) -> Finding:
    finding = check.find(code)
    assert finding is not None, f"{code} not among {check.codes}"
    assert finding.what
    assert finding.remedy
    return finding


def test_a_clean_log_has_no_finding() -> None:
    check = check_signals(clean(), planar_2r())
    assert check.codes == ()
    assert check.facts["rate_hz"] == pytest.approx(250.0)
    np.testing.assert_allclose(check.facts["velocity_noise"], 1e-4, rtol=0.1)
    np.testing.assert_allclose(check.facts["torque_noise"], 0.1, rtol=0.1)
    json.dumps(to_record(check), allow_nan=False)


def test_jitter() -> None:
    t = np.cumsum(np.random.default_rng(1).uniform(0.002, 0.006, 5000))
    q, v = motion(t)
    check = check_signals(clean(time=t, position=q, velocity=v))
    finding = found(check, "jitter")
    assert finding.level == "warning"
    assert "steps from 2 to 6 ms" in finding.what
    assert "Resample(period_s=0.004)" in finding.remedy
    assert check.find("velocity_lag") is None


def test_gaps() -> None:
    recording = clean()
    t = recording.time.copy()
    t[3000:] += 0.5
    q, v = motion(t)
    finding = found(check_signals(clean(time=t, position=q, velocity=v)), "gaps")
    assert "missing in 1 places: up to 504 ms, at 12" in finding.what
    assert "SplitAtGaps(0.25)" in finding.remedy


@pytest.mark.parametrize(("scale", "severity"), [(1000.0, "error"), (1e-6, "warning")])
def test_unit_of_time(scale: float, severity: str) -> None:
    recording = clean()
    check = check_signals(recording.with_(time=recording.time * scale))
    assert found(check, "time_unit").level == severity


def test_repeated_rows() -> None:
    recording = clean()
    stale = np.arange(10, 5000, 20)
    values = {}
    for name in ("position", "velocity", "torque"):
        array = getattr(recording, name).copy()
        array[stale] = array[stale - 1]
        values[name] = array
    finding = found(check_signals(recording.with_(**values)), "repeated_rows")
    assert finding.values["rows"] == len(stale)
    assert "5.0 %" in finding.what
    assert "DropRepeated()" in finding.remedy


def test_rows_dropped_in_reading() -> None:
    source = RecordingSource(path="x.csv", n_rows_in_file=5200, n_dropped=200)
    finding = found(check_signals(clean(source=source)), "dropped_rows")
    assert "200 of 5200 rows" in finding.what
    assert finding.level == "warning"


def test_reasons_of_reading_are_told_once() -> None:
    said = dropped_rows("7 rows with NaN were left out", 7, 5200)
    source = RecordingSource(path="x.csv", n_rows_in_file=5200, n_dropped=7, findings=(said,))
    check = check_signals(clean(source=source))
    assert check.codes == ("dropped_rows",)
    assert found(check, "dropped_rows").what == "7 rows with NaN were left out (7 of 5200 rows of the file)"
    assert found(check, "dropped_rows").level == "note"


@pytest.mark.parametrize(
    ("quantity", "value"), [("position", 4e200), ("position", -2e6), ("velocity", 1e160), ("torque", 2e9)]
)
def test_numbers_that_no_robot_has(quantity: str, value: float) -> None:
    recording = clean()
    values = getattr(recording, quantity).copy()
    values[41, 1] = value
    check = check_signals(recording.with_(**{quantity: values}))
    finding = found(check, "impossible_value")
    assert check.codes == ("impossible_value",)
    assert (finding.level, finding.where) == ("error", (recording.joint_names[1],))
    assert f"{quantity} of joint {recording.joint_names[1]} is {value:.4g} in row 42" in finding.what


def test_a_log_too_short_to_identify_from() -> None:
    recording = clean()
    rate = recording.rate_hz
    short = recording.rows(0, int(1.9 * rate))
    finding = found(check_signals(short), "short")
    assert finding.level == "error"
    assert f"log of {short.n_samples} rows and 1.9 s is too short to identify from: filters lose 0.3 s" in finding.what
    assert "expected at least 2 s" in finding.what
    assert check_signals(recording.rows(0, int(2.1 * rate))).find("short") is None
    slow = recording.with_(time=recording.time * 100.0).rows(0, 63)
    assert "expected at least 64 rows" in found(check_signals(slow), "short").what


def test_saturation() -> None:
    recording = clean()
    assert recording.torque is not None
    check = check_signals(recording.with_(torque=np.minimum(recording.torque, [np.inf, 19.0])))
    finding = found(check, "saturation")
    assert finding.where == ("elbow",)
    assert finding.values["share"][0] == 0.0
    limited = planar_2r()
    assert check_signals(recording, limited).find("saturation") is None


@pytest.mark.parametrize("step", [0.4, 0.05])
def test_torque_in_steps_is_not_cut_off(step: float) -> None:
    recording = clean()
    assert recording.torque is not None
    smooth = 20.0 * np.cos(recording.position)  # stays on its last step for many rows
    for torque in (smooth, recording.torque):
        assert check_signals(recording.with_(torque=np.round(torque / step) * step)).find("saturation") is None
    cut = np.minimum(np.round(smooth / step) * step, [np.inf, 19.0])
    assert found(check_signals(recording.with_(torque=cut)), "saturation").where == ("elbow",)


def test_torque_beyond_its_limit_was_not_cut_off_there() -> None:
    """As where it is in newton millimetres: only the check of limits has something to say."""
    recording = demo_recording()
    check = check_signals(recording.with_(torque=1000.0 * recording.torque), demo_robot())
    assert check.find("saturation") is None
    assert check.find("torque_limit") is not None


@pytest.mark.parametrize(("grain", "severity"), [(2e-4, "note"), (2e-3, "note"), (0.2, "warning")])
def test_quantised_position(grain: float, severity: str) -> None:
    recording = clean()
    check = check_signals(recording.with_(position=np.round(recording.position / grain) * grain))
    finding = found(check, "quantised_position")
    assert finding.level == severity
    np.testing.assert_allclose(finding.values["grain"], grain, rtol=1e-6)
    np.testing.assert_allclose(finding.values["velocity_error"], grain / np.sqrt(12.0) / np.sqrt(2.0) * 250.0, rtol=1e-6)


def test_quantised_torque_and_digits() -> None:
    recording = clean()
    assert recording.torque is not None
    check = check_signals(recording.with_(torque=np.round(recording.torque)))
    assert found(check, "quantised_torque").level in ("note", "warning")
    digits = check_signals(recording.with_(position=np.round(recording.position, 5)))
    np.testing.assert_allclose(digits.facts["grain"]["position"], 1e-5)
    np.testing.assert_array_equal(check.facts["grain"]["velocity"], 0.0)


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


def test_resting_joint_and_dead_signal() -> None:
    recording = clean()
    q = recording.position.copy()
    q[:, 1] = 0.3
    v = np.array(recording.velocity)
    v[:, 1] = 0.0
    assert found(check_signals(recording.with_(position=q, velocity=v)), "resting_joint").where == ("elbow",)
    tau = np.array(recording.torque)
    tau[:, 0] = 0.0
    finding = found(check_signals(recording.with_(torque=tau)), "dead_signal")
    assert finding.level == "error"
    assert finding.where == ("shoulder",)


@pytest.mark.parametrize("lag", [0.005, -0.012, 0.0305])
@pytest.mark.parametrize("jitter", [False, True])
def test_velocity_lag_to_a_fraction_of_a_step(lag: float, jitter: bool) -> None:
    random = np.random.default_rng(0)
    t = np.cumsum(random.uniform(0.002, 0.006, 6000)) if jitter else np.arange(6000) / 250.0
    q, _ = motion(t)
    _, v = motion(t - lag)
    recording = Recording(
        time=t, position=q + 1e-5 * random.normal(size=q.shape), velocity=v + 0.01 * random.normal(size=v.shape),
        torque=q, joint_names=NAMES,
    )  # fmt: skip
    measured = velocity_lag(recording)
    np.testing.assert_allclose(measured.seconds, lag, atol=3e-4)
    np.testing.assert_allclose(measured.scale, 1.0, atol=2e-3)
    finding = found(check_signals(recording), "velocity_lag")
    assert ("lags" if lag > 0 else "leads") in finding.what
    said = float(finding.what.split(" by ")[1].split(" ms")[0])
    assert said == pytest.approx(1e3 * abs(lag), abs=0.3)
    assert "Shift(" in finding.remedy


@pytest.mark.parametrize("counts", [2**12, 2**17, None])
def test_a_velocity_that_is_the_difference_of_two_positions(counts: int | None) -> None:
    """It is told from a velocity of its own, from one that was filtered and from one of a sensor with noise."""
    recording = clean()
    t, q = recording.time, np.array(recording.position)
    if counts is not None:
        q = np.round(q * counts / (2.0 * np.pi)) * (2.0 * np.pi / counts)
    difference = np.diff(q, axis=0, prepend=q[:1]) / 0.004
    own = recording.with_(position=q, velocity=difference)
    assert is_difference(own)
    assert is_difference(own.with_(velocity=difference + 1e-6 * np.sin(1e4 * t)[:, None]))  # rounded
    finding = found(check_signals(own), "velocity_difference")
    assert finding.level == "note"
    assert velocity_sources([own], Settings()) == ("position",)
    assert velocity_sources([own], Settings(velocity="logged")) == ("logged",)
    assert velocity_sources([own, recording], Settings()) == ("logged", "position")
    central = np.gradient(q, 0.004, axis=0)
    smooth = np.array([np.convolve(column, np.ones(5) / 5.0, mode="same") for column in difference.T]).T
    for other in (recording.velocity, central, smooth, None):
        assert not is_difference(own.with_(velocity=other))


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (180.0 / np.pi, "degrees per second"),
        (-1.0, "opposite sign"),
        (30.0 / np.pi, "revolutions per minute"),
        (100.0, "gearbox"),
    ],
)
def test_velocity_scale(scale: float, words: str) -> None:
    recording = clean()
    check = check_signals(recording.with_(velocity=scale * np.array(recording.velocity)))
    finding = found(check, "velocity_scale")
    assert words in finding.what
    np.testing.assert_allclose(finding.values["scale"], scale, rtol=0.01)
    assert check.find("velocity_lag") is None


def test_a_noisy_velocity_is_still_the_derivative_of_position() -> None:
    recording = clean()
    v = recording.velocity + 0.8 * np.random.default_rng(0).normal(size=recording.position.shape)
    check = check_signals(recording.with_(velocity=v))
    assert (check.facts["velocity_mismatch"] > 0.3).any()  # far above the band of the motion
    assert check.find("velocity_unrelated") is None
    assert check.find("velocity_mismatch") is None


def test_velocity_of_something_else() -> None:
    recording = clean()
    random = np.random.default_rng(0)
    v = np.array(recording.velocity)
    v[:, 1] = random.normal(size=5000)
    assert found(check_signals(recording.with_(velocity=v)), "velocity_mismatch").where == ("elbow",)
    v = random.normal(size=v.shape)
    assert found(check_signals(recording.with_(velocity=v)), "velocity_unrelated").level == "error"


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


def test_a_very_short_log_is_only_called_short() -> None:
    assert check_signals(clean().rows(0, 10)).codes == ("short",)


def test_findings_are_ranked_and_merge() -> None:
    note, fault = Finding("note", "one", "do", code="a"), Finding("error", "two", "do", code="b")
    check = DataCheck((note,), {"x": 1}).merged(DataCheck((fault,), {"y": np.array([1.0, np.nan])}))
    assert check.codes == ("b", "a")
    assert len(check) == 2
    assert to_record(check)["facts"] == {"x": 1, "y": [1.0, None]}
    assert check.find("c") is None


def test_noise_level_ignores_the_motion() -> None:
    t = np.arange(4000) / 500.0
    x = np.stack([3.0 * np.sin(t), t**2], axis=1) + np.random.default_rng(0).normal(size=(4000, 2)) * [0.01, 0.2]
    np.testing.assert_allclose(noise_level(x), [0.01, 0.2], rtol=0.06)


def test_lag_of_a_signal_that_is_not_there() -> None:
    x = np.stack([np.sin(np.arange(1000) / 50.0), np.zeros(1000)], axis=1)
    lag = lag_between(x, x, 0.01)
    assert lag.unexplained[0] < 1e-9
    assert lag.unexplained[1] == 1.0
    with pytest.raises(InputError, match="no velocity to compare"):
        velocity_lag(clean(velocity=None))
