"""The data check on logs whose sensors have one known fault each."""

from __future__ import annotations

import numpy as np
import pytest

from checked_logs import NAMES, clean, found, motion
from dynid.errors import InputError
from dynid.io.demo import demo_recording, demo_robot
from dynid.pipeline.options import Settings
from dynid.pipeline.signal_filter import velocity_sources
from dynid.signals.checks import check_signals
from dynid.signals.measures import is_difference, lag_between, noise_level, velocity_lag
from dynid.signals.recording import Recording
from problems import planar_2r


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


def test_a_few_steps_of_the_encoder_tell_nothing_of_velocity() -> None:
    recording = clean()
    random = np.random.default_rng(0)
    pushed = 2e-3 * recording.position / np.ptp(recording.position, axis=0)
    coarse = recording.with_(position=np.round(pushed, 4), velocity=1e-3 * random.normal(size=pushed.shape))
    assert check_signals(coarse).find("velocity_unrelated") is None
    fine = recording.with_(position=pushed, velocity=1e-3 * random.normal(size=pushed.shape))
    assert found(check_signals(fine), "velocity_unrelated").level == "error"


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
