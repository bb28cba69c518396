"""The data check on logs whose clock or rows have one known fault each."""

from __future__ import annotations

import json

import numpy as np
import pytest

from checked_logs import clean, found, motion
from dynid.codec import to_record
from dynid.finding import DataCheck, Finding, dropped_rows
from dynid.signals.checks import check_signals
from dynid.signals.recording import RecordingSource
from problems import planar_2r


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


def test_a_very_short_log_is_only_called_short() -> None:
    assert check_signals(clean().rows(0, 10)).codes == ("short",)


def test_findings_are_ranked_and_merge() -> None:
    note, fault = Finding("note", "one", "do", code="a"), Finding("error", "two", "do", code="b")
    check = DataCheck((note,), {"x": 1}).merged(DataCheck((fault,), {"y": np.array([1.0, np.nan])}))
    assert check.codes == ("b", "a")
    assert len(check) == 2
    assert to_record(check)["facts"] == {"x": 1, "y": [1.0, None]}
    assert check.find("c") is None
