"""A stream gives the numbers of the batch path, whatever comes between its rows, and goes on from what it stored."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dynid.apps.online.checkpoint import packed, unpacked
from dynid.apps.online.decode import HEAD_ROWS
from dynid.apps.online.options import OnlineSettings
from dynid.apps.online.rows import RowOptions
from dynid.apps.online.watcher import OnlineReport, Watcher
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import WeightedLeastSquares
from dynid.estimation.result import Estimate
from dynid.io.logs.layout import ReadOptions
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import factorise
from dynid.regression.polynomial_rows import PolynomialRows
from dynid.regression.row_filter import BandLimit, FilteredRows
from dynid.regression.row_source import RowSource
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.polynomial_kernels import PolynomialApproximation
from dynid.signals.process import process
from dynid.signals.steps.clock import Resample, nominal_period_s
from dynid.signals.steps.filters import SavitzkyGolay
from online_streams import RATE_HZ, Stream, small_arm, stream

POLYNOMIAL = RowOptions(kind="polynomial", polynomial=PolynomialApproximation(window_s=0.1))


def batch_rows(given: Stream, options: RowOptions) -> RowSource:
    """The same rows by the path of whole logs."""
    rec = given.recording
    if options.kind == "polynomial":
        return PolynomialRows(given.robot, (rec,), options.polynomial, "product", options.every(1.0 / RATE_HZ))
    window = options.window_rows(1.0 / RATE_HZ)
    smooth = SavitzkyGolay(window=window, order=options.order, velocity="position", signals=("position",))
    samples = process(rec, [smooth], edge_s=(window // 2) / RATE_HZ)
    return FilteredRows(TorqueRows(given.robot, (samples,)), BandLimit(options.band_hz))


def batch(given: Stream, options: RowOptions) -> Estimate:
    method = WeightedLeastSquares(settle=1e-12, iterations=50, covariance="classical")
    return estimate(factorise(batch_rows(given, options)), reduce_to_base(given.robot), method)


def watched(given: Stream, lines: list[str] | None = None, **options: Any) -> tuple[Watcher, list[OnlineReport]]:
    watcher = Watcher(given.robot, **options)
    reports = [report for line in lines or given.json_lines() for report in watcher.feed(line)]
    last = watcher.finish()
    assert last is not None
    return watcher, [*reports, last]


def same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    return float(np.abs(one - other).max() / np.abs(other).max())


@pytest.mark.parametrize("options", [RowOptions(), POLYNOMIAL], ids=["torque", "polynomial"])
def test_equals_batch(options: RowOptions) -> None:
    given = stream(6.0)
    found, expected = watched(given, rows=options)[1][-1], batch(given, options)
    assert found.n_used == expected.n_samples
    assert found.answer.names == expected.base.names
    assert (found.answer.flags == 1).all()
    assert same(found.answer.values, expected.base_values) < 1e-9
    assert found.answer.residual_rms == pytest.approx(float(np.sqrt((expected.residual_rms**2).mean())), rel=1e-9)


def test_reports_at_the_rate_asked_for() -> None:
    _, reports = watched(stream(4.0), settings=OnlineSettings(every=0.5))
    assert [round(report.time_s, 6) for report in reports[:-1]] == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]
    record = reports[-1].as_dict()
    assert {"t", "values", "sigma", "flags", "residual", "alarm"} <= set(record)
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_malformed_lines_are_counted_and_change_nothing() -> None:
    given = stream(4.0)
    lines = given.csv_lines()
    junk = [
        "",
        "x",
        "1,2",
        "nan," * 6 + "nan",
        "1e999,0,0,0,0,0,0",
        "{}",
        "\x00\xff",
        "1," * 5000,
        "9" * 5000 + ",1,1,1,1,1,1",
    ]
    junk += ["0.1,1e300,0,0,0,0,0", lines[0] + ",extra"]
    rng = np.random.default_rng(0)
    mixed = [lines[0]]
    for line in lines[1:]:
        mixed += [junk[k] for k in rng.integers(len(junk), size=rng.integers(4))] + [line]
    clean, dirty = watched(given, lines), watched(given, mixed)
    assert clean[0].n_malformed == 0
    assert dirty[0].n_malformed == len(mixed) - len(lines)
    assert dirty[1][-1].n_rows == clean[1][-1].n_rows == len(lines) - 1
    np.testing.assert_array_equal(dirty[1][-1].answer.values, clean[1][-1].answer.values)


def test_gap_and_jumps_of_the_clock_start_new_parts() -> None:
    parts = [stream(4.0, seed=k) for k in range(3)]
    shifts = (0.0, 10_000.0, -5_000.0)  # forward by hours, then back
    lines = []
    for part, shift in zip(parts, shifts, strict=True):
        lines += [json.dumps(json.loads(line) | {"t": json.loads(line)["t"] + shift}) for line in part.json_lines()]
    watcher, reports = watched(parts[0], lines)
    assert (watcher.counts.gaps, watcher.counts.jumps_back) == (1, 1)
    data = [factorise(batch_rows(part, RowOptions())) for part in parts]
    method = WeightedLeastSquares(settle=1e-12, iterations=50, covariance="classical")
    expected = estimate(data[0] + data[1] + data[2], reduce_to_base(parts[0].robot), method)
    assert reports[-1].n_used == expected.n_samples
    assert same(reports[-1].answer.values, expected.base_values) < 1e-9


def test_repeated_and_late_rows_are_left_out_and_counted() -> None:
    given = stream(4.0)
    lines = given.json_lines()
    mixed = [*lines[:300], lines[299], lines[295], *lines[300:]]
    (clean, expected), (watcher, reports) = watched(given), watched(given, mixed)
    assert (watcher.counts.repeated, watcher.counts.late) == (1, 1)
    assert clean.counts.repeated == clean.counts.late == 0
    np.testing.assert_array_equal(reports[-1].answer.values, expected[-1].answer.values)


def test_jitter_is_interpolated_as_in_a_log() -> None:
    given = stream(8.0)
    rec, rng = given.recording, np.random.default_rng(0)
    at = rec.time + rng.uniform(-0.001, 0.001, len(rec.time))
    shaken = Stream(given.robot, rec.with_(time=at))
    watcher, reports = watched(shaken)
    assert (watcher.counts.gaps, watcher.counts.late) == (0, 0)
    options = RowOptions()
    period_s = nominal_period_s(at[:HEAD_ROWS])
    window = options.window_rows(period_s)
    smooth = SavitzkyGolay(window=window, order=options.order, velocity="position", signals=("position",))
    samples = process(shaken.recording, [Resample(period_s=period_s), smooth], edge_s=(window // 2) * period_s)
    data = factorise(FilteredRows(TorqueRows(given.robot, (samples,)), BandLimit(options.band_hz)))
    method = WeightedLeastSquares(settle=1e-12, iterations=50, covariance="classical")
    expected = estimate(data, reduce_to_base(given.robot), method)
    assert reports[-1].n_used == expected.n_samples
    assert same(reports[-1].answer.values, expected.base_values) < 1e-9


@pytest.mark.parametrize(
    "rows", [pytest.param(RowOptions(), id="torque"), pytest.param(POLYNOMIAL, id="polynomial", marks=pytest.mark.slow)]
)
def test_goes_on_with_the_same_digits(rows: RowOptions) -> None:
    given = stream(5.0)
    options = {"rows": rows, "settings": OnlineSettings(forget=20.0, learn=2.0)}
    lines = [*given.json_lines()[:700], "junk", *given.json_lines()[760:]]  # with a gap
    _, expected = watched(given, lines, **options)
    reports: list[OnlineReport] = []
    watcher = Watcher(given.robot, **options)
    for k, line in enumerate(lines):
        reports += watcher.feed(line)
        if k % 197 == 60:  # also before the head of the stream is complete
            kept = unpacked(packed(watcher.state()))
            watcher = Watcher(given.robot, **options)
            watcher.restore(kept, lines[0], replayed=False)
            if kept["stream"] is None:  # rows of the head are not stored: the sender sends them again
                reports += [report for again in lines[: k + 1] for report in watcher.feed(again)]
    last = watcher.finish()
    assert last is not None
    assert [report.as_dict() for report in [*reports, last]] == [report.as_dict() for report in expected]


def test_sender_that_cannot_seek_sends_again() -> None:
    given = stream(6.0)
    lines = given.json_lines()
    _, expected = watched(given)
    first = Watcher(given.robot)
    for line in lines[:800]:
        list(first.feed(line))
    second = Watcher(given.robot)
    second.restore(unpacked(packed(first.state())), None, replayed=True)
    assert second.last_stamp_s == pytest.approx(given.recording.time[799])
    for line in lines[500:]:  # from earlier than needed
        list(second.feed(line))
    last = second.finish()
    assert last is not None
    assert second.n_skipped == 300
    np.testing.assert_array_equal(last.answer.values, expected[-1].answer.values)


def test_other_options_do_not_continue() -> None:
    given = stream(2.0)
    watcher = Watcher(given.robot)
    for line in given.json_lines():
        list(watcher.feed(line))
    other = Watcher(given.robot, rows=RowOptions(band_hz=5.0))
    with pytest.raises(InputError, match="other options"):
        other.restore(watcher.state(), given.json_lines()[0], replayed=False)


def test_window_and_forgetting_follow_a_change() -> None:
    arm = small_arm()
    stiff = arm.with_parameters({"fv1": 2.0 * arm.parameters["fv1"]})
    before, after = stream(8.0), stream(16.0, robot=stiff, start_s=8.0)
    lines = before.json_lines() + after.json_lines()
    final = {}
    for name, memory in (("all", {}), ("window", {"last": 8.0}), ("forget", {"forget": 3.0})):
        answer = watched(before, lines, settings=OnlineSettings(**memory))[1][-1].answer
        final[name] = answer.values[answer.names.index("fv1")] / arm.parameters["fv1"]
    assert final["window"] == pytest.approx(2.0, abs=0.02)
    assert final["forget"] == pytest.approx(2.0, abs=0.05)
    assert final["all"] < 1.8


def test_flags_of_a_joint_that_stands_still() -> None:
    given = stream(6.0, noise=0.0)
    q = np.array(given.recording.position)
    lines = []
    for t, row, tau in zip(given.recording.time, q, given.recording.torque, strict=True):
        lines.append(json.dumps({"t": t, "q": [0.3, *row[1:]], "tau": tau.tolist()}))
    answer = watched(given, lines)[1][-1].answer
    flags = dict(zip(answer.names, answer.flags.tolist(), strict=True))
    assert flags["fv1"] == flags["fc1"] == 0
    assert not np.isfinite(answer.sigma[answer.names.index("fv1")])


def test_bounds_clip_what_is_reported() -> None:
    given = stream(4.0)
    answer = watched(given, bounds={"fv1": (0.0, 0.5)})[1][-1].answer
    place = answer.names.index("fv1")
    assert answer.values[place] == 0.5
    assert answer.clipped[place]


def test_sigma_is_the_spread_of_the_values() -> None:
    scores = []
    for seed in range(8):
        given = stream(6.0, seed=seed, noise=0.5)
        answer = watched(given, settings=OnlineSettings(every=50.0))[1][-1].answer
        truth = reduce_to_base(given.robot).base_values(given.robot.parameters)
        scores.append((answer.values - truth) / answer.sigma)
    # 200 scores of 25 parameters that depend on one another
    assert 0.8 < float(np.sqrt(np.mean(np.square(scores)))) < 1.25


def test_columns_by_joint_units_and_drive_gains() -> None:
    given = stream(4.0)
    names = given.robot.joint_names
    reading = ReadOptions(units={"position": "deg", "time": "ms"}, drive_gains=(10.0, 10.0, 10.0))
    lines = [
        json.dumps(
            {"stamp": 1e3 * t}
            | {f"{name}.position": np.degrees(x) for name, x in zip(names, q, strict=True)}
            | {f"{name}.current": x / 10.0 for name, x in zip(names, tau, strict=True)}
        )
        for t, q, tau in zip(given.recording.time, given.recording.position, given.recording.torque, strict=True)
    ]
    watcher = Watcher(given.robot, reading)
    for line in lines:
        list(watcher.feed(line))
    found, expected = watcher.finish(), watched(given)[1][-1]
    assert found is not None
    assert same(found.answer.values, expected.answer.values) < 1e-9


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"t": 0.0, "q": [1, 2, 3]}', "no joint torque"),
        ('{"q": [1, 2, 3], "tau": [1, 2, 3]}', "no time column"),
        ('{"t": 0.0, "tau": [1, 2, 3]}', "position"),
        ('{"t": 0.0, "q": [1, 2, 3], "current": [1, 2, 3]}', "--drive-gains"),
    ],
)
def test_streams_without_what_is_needed_are_refused(line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(Watcher(small_arm(), where="the stream").feed(line))
