"""Reports of whole runs: what a run has is shown, what it lacks is said."""

from __future__ import annotations

import html
import re
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from defusedxml import ElementTree

from bench import Bench
from dynid.arrays import freeze
from dynid.dynamics.inverse_dynamics import random_states_within_limits
from dynid.dynamics.regressors import static_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.io.logs.read import write_recording
from dynid.io.robots.read import read_robot
from dynid.pipeline import report as run_report
from dynid.pipeline.compare import compare_on
from dynid.pipeline.export import export_models
from dynid.pipeline.filter_selection import Trial
from dynid.pipeline.folder import load_result, save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.model_files import read_exports
from dynid.pipeline.options import Settings
from dynid.pipeline.report import report_page, report_result, report_sections
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.sections.head import verdict_of
from dynid.pipeline.signal_filter import Filter
from dynid.report.figure import Figure, can_draw_text
from dynid.report.page import Folded, Section, Table, figures_of, page
from dynid.signals.recording import StaticRecording
from dynid.validation.replay import replay

COMPARISONS = (
    {"method": "ols", "relative_error": {"identification": 0.010, "validation": 0.012}, "feasible": False, "seconds": 0.1},
    {"method": "sdp", "relative_error": {"identification": 0.011, "validation": None}, "feasible": True, "seconds": 0.5},
)


@pytest.fixture(scope="module")
def run(bench: Bench) -> IdentificationResult:
    return identify(bench.urdf, bench.log, Settings(), validate_on=[bench.other_log])


def _text(page: str) -> str:
    """What a reader sees of the page."""
    visible = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", visible))


def test_whole_report(run: IdentificationResult, tmp_path: Path) -> None:
    compared = replace(run, comparisons=COMPARISONS)
    exported = export_models(run, tmp_path, ["urdf", "json"])
    path = report_result(compared, tmp_path / "report.html", exported=exported)
    page = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 6_000_000
    titles = [html.unescape(title) for title in re.findall(r"<section id=.*?><h2>(.*?)</h2>", page)]
    assert titles == [
        "The robot as identified",
        "Measured and predicted torque",
        "Forward validation",
        "Identified parameters and their uncertainty",
        "Physical consistency",
        "Friction",
        "Residual",
        "Excitation",
        "Filter",
        "Methods compared",
        "Data check",
        "The model as files",
        "How to repeat this",
    ]
    text = _text(page)
    assert f"Predicts unseen torque to {100.0 * run.validation.relative_error:.3g}\u00a0%" in text
    for expression in run.estimate.base.expressions(digits=4):
        assert expression in text
    for _, digest in (*run.logs, *run.validation_logs):
        assert digest in text
    assert text.index("Predicts unseen torque") < text.index("The robot as identified")


def test_every_link_leads_somewhere(run: IdentificationResult, tmp_path: Path) -> None:
    """Anchors exist in the page, files lie where the page says, also when it is written elsewhere."""
    exported = export_models(run, tmp_path / "run folder", ["urdf", "mjcf", "json"])
    refusals = ["sdf was not written: it would not <hold> this"]
    path = report_result(run, tmp_path / "report.html", exported=exported, refusals=refusals)
    page = path.read_text(encoding="utf-8")
    shown = re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL)
    links = [html.unescape(link) for link in re.findall(r'<a href="([^"]*)"', shown)]
    anchors = {link[1:] for link in links if link.startswith("#")}
    files = {link for link in links if not link.startswith("#")}
    assert len(anchors) > 8
    assert all(f'id="{name}"' in page for name in anchors)
    assert {(tmp_path / unquote(link)).resolve() for link in files} == {
        file.resolve() for item in exported for file in item.files
    }
    assert "Sdf was not written: it would not <hold> this." in _text(page)


def test_replay_is_that_of_the_unseen_log(run: IdentificationResult) -> None:
    section = next(section for section in report_sections(run) if section.title == "Forward validation")
    found = replay(run.model, run.unseen[0])
    assert f"{1e3 * found.end_effector_position[:, -1].mean():.3g} mm" in section.text
    drift = next(figure for figure in figures_of([section]) if figure.name == "replay_drift")
    ends = [panel.curves[0].y[-1] for panel in drift.panels]
    np.testing.assert_allclose(ends, 1e3 * found.position_drift, rtol=1e-12)


def test_the_replay_goes_over_growing_horizons_beside_the_description(run: IdentificationResult) -> None:
    section = next(section for section in report_sections(run) if section.title == "Forward validation")
    (folded,) = (part for part in section.parts if isinstance(part, Folded) and part.summary.startswith("Free run"))
    (table,) = folded.parts
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows][:4] == ["50", "100", "200", "500"]
    identified, description = (np.array([float(row[k]) for row in table.rows[:4]]) for k in (1, 2))
    assert (np.diff(identified) > 0.0).all()  # errors of torque grow twice integrated
    assert (identified < description).all()  # the description is drawn away from the simulated truth


def test_motion_that_cannot_be_replayed_is_said(run: IdentificationResult) -> None:
    values = 0.0 * run.estimate.standard.values
    lame = replace(run, replay=None, estimate=replace(run.estimate, standard=run.estimate.standard.with_values(values)))
    section = next(section for section in report_sections(lame) if section.title == "Forward validation")
    assert not section.parts
    assert "could not be replayed" in section.text


def test_comparisons_are_kept_with_the_run(run: IdentificationResult, tmp_path: Path) -> None:
    compared = replace(run, comparisons=tuple(one.as_dict() for one in compare_on(run, run.settings, ["ols", "wls"])))
    again = load_result(save_result(compared, tmp_path / "run"))
    assert [item["method"] for item in again.comparisons] == ["ols", "wls"]
    assert again.comparisons[0]["relative_error"]["validation"] == pytest.approx(run.validation.relative_error, rel=0.2)
    with pytest.raises(UnknownNameError, match="guess"):
        compare_on(run, run.settings, ["guess"])
    with pytest.raises(InputError, match="no data"):
        compare_on(replace(run, regression=None), run.settings)


def test_exports_are_remembered_while_their_files_are_there(run: IdentificationResult, tmp_path: Path) -> None:
    assert read_exports(tmp_path) == ()
    exported = export_models(run, tmp_path, ["urdf", "json"])
    assert read_exports(tmp_path) == exported
    exported[1].companions[0].unlink()
    assert read_exports(tmp_path) == exported[:1]
    (tmp_path / "exports.json").write_text('{"exports": [{"file": "x"}]}', encoding="utf-8")
    with pytest.raises(InputError, match=r"exports\.json' is damaged"):
        read_exports(tmp_path)


def test_figures_are_written_as_files_that_parse(run: IdentificationResult, tmp_path: Path) -> None:
    report_result(run, tmp_path / "report.html")
    written = {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    shown = {figure.name for figure in figures_of(report_sections(run))}
    assert written == shown
    assert {
        "torque",
        "sigma",
        "friction",
        "residual_spectrum",
        "singular_values",
        "consistency",
        "excitation_position",
    } <= shown
    assert not list((tmp_path / "figures").glob("*.png"))
    for path in (tmp_path / "figures").glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_every_figure_is_drawn_as_png_on_request(
    run: IdentificationResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each drawing looks like is another test's; here every SVG has its PNG."""
    monkeypatch.setattr(run_report, "can_draw_text", lambda: True)
    monkeypatch.setattr(run_report, "png_of", lambda svg: b"\x89PNG of " + svg.encode())
    report_result(run, tmp_path / "report.html", png=True)
    figures = {path.stem: path.read_bytes() for path in (tmp_path / "figures").glob("*.svg")}
    drawn = {path.stem: path.read_bytes() for path in (tmp_path / "figures").glob("*.png")}
    assert len(drawn) > 10
    assert drawn == {name: b"\x89PNG of " + content for name, content in figures.items()}


@pytest.mark.slow
def test_png_files_are_drawn_on_request(run: IdentificationResult, tmp_path: Path) -> None:
    if not can_draw_text():
        with pytest.raises(InputError, match="font"):
            report_result(run, tmp_path / "report.html", png=True)
        return
    report_result(run, tmp_path / "report.html", png=True)
    drawn = {path.stem: path.read_bytes() for path in (tmp_path / "figures").glob("*.png")}
    assert set(drawn) == {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    assert all(content.startswith(b"\x89PNG") for content in drawn.values())


def test_singular_values_are_those_of_the_stacked_regressor(run: IdentificationResult) -> None:
    figure = next(figure for figure in figures_of(report_sections(run)) if figure.name == "singular_values")
    plain = figure.panels[0].curves[0].y
    assert plain[0] / plain[-1] == pytest.approx(run.estimate.condition_number, rel=1e-6)


def test_parameters_not_excited_are_marked(run: IdentificationResult) -> None:
    found = run.estimate
    origin = ("prior", "mixed", *found.origin[2:])
    part = replace(run, estimate=replace(found, origin=origin, rank=found.rank - 1))
    sigma = next(figure for figure in figures_of(report_sections(part)) if figure.name == "sigma")
    roles = {curve.role for panel in sigma.panels for curve in panel.curves}
    assert roles == {"data", "mixed", "prior"}
    verdict = verdict_of(replace(part, checks=(), verdict=None))
    assert verdict.level == "warning"
    assert any("keep the description's values" in item.remedy for item in verdict.reasons)


def test_a_model_worse_than_the_description_is_not_to_be_used(run: IdentificationResult) -> None:
    zero = run.estimate.standard.with_values(0.1 * run.estimate.standard.values)
    bad = replace(run, validation=replace(run.validation, total=replace(run.validation.total, relative_error=0.9)))
    bad = replace(bad, estimate=replace(run.estimate, standard=zero))
    verdict = verdict_of(replace(bad, checks=(), verdict=None))
    assert verdict.level == "error"
    assert "do not use it yet" in verdict.headline


def test_the_bands_that_were_tried_are_a_table(run: IdentificationResult) -> None:
    section = next(section for section in report_sections(run) if section.title == "Filter")
    (table,) = section.parts
    assert isinstance(table, Table)
    assert len(table.rows) == len(run.trials)
    (chosen,) = [row for row in table.rows if row[-1] == "chosen"]
    assert chosen[1] == f"{run.filter.band_hz:g}"


def test_velocity_sources_at_one_cutoff_of_signals_are_a_table(run: IdentificationResult) -> None:
    trials = tuple(Trial(Filter(8.0, 8.0, 4, source), 0.01) for source in ("logged", "position"))
    one = replace(run, filter=trials[0].filter, trials=trials)
    section = next(section for section in report_sections(one) if section.title == "Filter")
    (table,) = section.parts
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == ["logged velocity", "velocity from position"]


def test_without_validation_the_reader_is_told(run: IdentificationResult) -> None:
    alone = replace(run, validation=None, validation_logs=(), data=replace(run.data, unseen=None))
    verdict = verdict_of(replace(alone, checks=(), verdict=None))
    assert verdict.level == "warning"
    assert any("--validate" in item.remedy for item in verdict.reasons)


def test_loaded_run_shows_its_logs_again(run: IdentificationResult, tmp_path: Path) -> None:
    again = load_result(save_result(run, tmp_path / "run"), with_samples=True)
    names = {figure.name for figure in figures_of(report_sections(again))}
    assert {"torque", "torque_2", "sampling_steps", "residual_velocity"} <= names


def test_run_whose_logs_are_gone(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log.parquet"
    shutil.copy(bench.log, log)
    kept = identify(bench.urdf, log, Settings(split=0.6, cutoff_hz=10.0))
    folder = save_result(kept, tmp_path / "run")
    log.unlink()
    gone = load_result(folder, with_samples=True)
    page = report_page(gone)
    assert "torque cannot be shown" in _text(page)
    assert gone.validation is not None  # what was computed is kept with the run
    assert gone.validation.relative_error == pytest.approx(kept.validation.relative_error, rel=1e-12)
    np.testing.assert_allclose(gone.identification.rmse, kept.identification.rmse)
    assert gone.checks[0].codes == kept.checks[0].codes
    assert gone.summary()["relative_error"] == kept.summary()["relative_error"]
    names = {figure.name for figure in figures_of(report_sections(gone))}
    assert names == {"sigma", "consistency", "lags"}


def test_static_run(bench: Bench, tmp_path: Path) -> None:
    robot = read_robot(bench.urdf, "none")
    q, _, _ = random_states_within_limits(robot, 40, seed=3)
    Y_inertia, Y_gravity = static_regressor(robot, q)
    phi = robot.parameters.values
    poses = StaticRecording(q, robot.joint_names, inertia=Y_inertia @ phi, gravity=Y_gravity @ phi)
    path = write_recording(poses, tmp_path / "poses.csv")
    run = identify(bench.urdf, path)
    text = _text(report_page(run))
    assert "Explains what it was identified on" in text
    assert "A table of poses has no torque over time." in text
    titles = [section.title for section in report_sections(run)]
    assert "Residual" not in titles
    assert "Filter" not in titles


def test_hostile_names_stay_text(run: IdentificationResult) -> None:
    hostile = "<img src=x onerror=alert(1)></script>"
    joints = (replace(run.robot.joints[0], name=hostile), *run.robot.joints[1:])
    columns = tuple(
        replace(column, joint=hostile) if column.joint == run.robot.joint_names[0] else column
        for column in run.robot.parameters.columns
    )
    robot = replace(
        run.robot,
        name=hostile,
        joints=joints,
        links=(hostile, *run.robot.links[1:]),
        parameters=replace(run.robot.parameters, columns=columns),
    )
    page = report_page(replace(run, robot=robot, notes=(hostile,), logs=((hostile, "0"),)))
    assert "<img src=x" not in page
    assert hostile in _text(page)


def test_more_sections_can_be_given(run: IdentificationResult, tmp_path: Path) -> None:
    extra = Section("Played forward", "In a simulator.", (Table(("a",), (("b",),)), "c"))
    page = report_result(run, tmp_path / "report.html", sections=[extra]).read_text(encoding="utf-8")
    assert "Played forward" in page
    assert page.index("Played forward") < page.index("How to repeat this")


def test_figures_hold_no_more_points_than_allowed(run: IdentificationResult) -> None:
    long = run.samples[0]
    stretched = replace(
        long,
        **{
            name: freeze(np.concatenate([getattr(long, name)] * 40))
            for name in ("position", "velocity", "acceleration", "torque", "raw_torque")
        },
        time=freeze(np.arange(40 * len(long)) * 0.004),
    )
    data = run.data
    assert data is not None
    assert data.known is not None
    known, unseen = (data.known.with_window_samples((stretched,) * n) for n in (1, 3))
    figures = figures_of(report_sections(replace(run, data=replace(data, known=known, unseen=unseen))))
    points = sum(len(curve.x) for figure in figures for panel in figure.panels for curve in panel.curves)
    assert points < 150_000
    assert all(isinstance(figure, Figure) for figure in figures)


@pytest.mark.parametrize(("error", "level"), [(0.02, "good"), (0.06, "warning"), (0.2, "error")])
def test_the_verdict_knows_a_poor_prediction(run: IdentificationResult, error: float, level: str) -> None:
    before = run.validation.total
    sizes = before.rmse / before.relative_error_per_channel
    every = np.full(len(before.rmse), error)
    total = replace(before, relative_error=error, relative_error_per_channel=every, rmse=every * sizes)
    own = replace(run.identification, relative_error=error)
    judged = replace(run, validation=replace(run.validation, total=total), identification=own)
    wrong = run.robot.parameters.with_values(20.0 * run.robot.parameters.values)  # a description that is worse still
    judged = replace(judged, robot=run.robot.with_parameters(wrong))
    assert verdict_of(replace(judged, checks=(), verdict=None, replay=None)).level == level


def test_vague_parameters_show_in_what_is_expected_of_the_joints(run: IdentificationResult) -> None:
    vague = replace(run, estimate=replace(run.estimate, covariance=1e8 * run.estimate.covariance))
    verdict = verdict_of(replace(vague, checks=(), verdict=None))
    assert verdict.level == "error"
    assert any("this motion determines the model too badly" in item.what for item in verdict.reasons)


def test_a_retrieval_shows_how_far_it_is_from_the_best(run: IdentificationResult) -> None:
    details = {
        "cost": 2.0, "lower_bound": 1.9, "gap": 0.05, "violated": {"m1": 0.25},
        "largest_joint_wrench": [{"force": 10.0 + j, "moment": 1.0} for j in range(run.robot.n_joints)],
    }  # fmt: skip
    found = replace(run, estimate=replace(run.estimate, details=details))
    assert found.summary()["retrieval"]["lower_bound"] == 1.9
    section = next(section for section in report_sections(found) if section.title == "Retrieval under bounds")
    text = _text(page("t", "s", verdict_of(run), [section]))
    assert "Violated: m1 by 0.25." in text
    assert "costs less than 1.9" in text
    assert "retrieval" not in run.summary()
