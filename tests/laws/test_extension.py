"""What is added from outside the package, by the documented way, goes the whole path: identify, files, report, command line.

Each addition below is a class or function of this file and one call that registers it, as a user's own program would have
them: a friction effect with a friction model, a kind of rows, an estimator, a log format, a section of the report.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import dynid
from cli_program import app
from dynid.arrays import Array
from dynid.dynamics.regressors import torque_regressor
from dynid.dynamics.simulate import simulate
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.linear import LinearProblem
from dynid.estimation.methods.registry import method_names, unregister_method
from dynid.excitation.shapes import random_fourier
from dynid.io.code.languages import c_compiler
from dynid.io.logs.read import read_recording
from dynid.model.effects import unregister_effect
from dynid.model.effects.effect import NonlinearParameter
from dynid.model.effects.jointwise import Coefficient, JointwiseEffect
from dynid.model.robot import Robot
from dynid.pipeline.export import Published, write_result
from dynid.pipeline.folder import load_result
from dynid.pipeline.options import Settings
from dynid.pipeline.report import unregister_section
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.row_plan import RowKind, register_rows, row_kinds, unregister_rows
from dynid.regression.channels import Channel, full_channel
from dynid.regression.row_source import CHUNK_ROWS, Chunk, RowSource
from dynid.report.page import Section
from dynid.report.page import Table as PageTable
from dynid.signals.recording import Recording

FORMATS = ("urdf", "mjcf", "sdf", "c", "json")
QUICK = ("urdf", "json")
"""Formats of what is no part of the model, so that no format could fail to hold it."""
CUTOFF_HZ = 20.0
LINEAR = ("--friction", "linear")
"""What is added is no friction: none is searched for."""


# What a user's own program defines ---------------------------------------------------------------


@dataclass(frozen=True)
class Bowed(JointwiseEffect):
    """tau = fb x / sqrt(1 + x^2) with x = v / width: dry friction that sets in slowly."""

    name: ClassVar[str] = "bowed"
    linear: ClassVar = (Coefficient("fb", "N m", nonnegative=True, place="friction"),)
    nonlinear: ClassVar = (NonlinearParameter("width", "rad/s", "positive", low=1e-3, high=2.0),)
    width: float | tuple[float, ...] = 0.1

    def formula(self, m: Any, motion: Any, inner: Any) -> tuple[Any, ...]:
        x = motion.velocity / inner.width
        return (x / m.sqrt(1.0 + x * x),)


@dataclass(frozen=True)
class PowerRows(RowSource):
    """Power of all joints together: ``v . tau = v . Y phi``, one channel."""

    kind = "power"
    timed = True
    robot: Robot
    samples: tuple[Any, ...]

    @property
    def parameters(self) -> dynid.Parameters:
        return self.robot.parameters

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (full_channel("power", len(self.parameters)),)

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        step = chunk_rows or CHUNK_ROWS
        for log in self.samples:
            for piece in log:
                for start in range(0, len(piece), step):
                    part = piece[start : start + step]
                    Y = torque_regressor(self.robot, part.position, part.velocity, part.acceleration, part.load)
                    W = np.einsum("nj,njp->np", part.velocity, Y)
                    power = (part.velocity * part.torque).sum(axis=1)
                    yield Chunk([np.asfortranarray(np.column_stack([W, power]))], part.time)

    def by_log(self) -> tuple[PowerRows, ...]:
        return tuple(replace(self, samples=(one,)) for one in self.samples)

    def with_samples(self, samples: Sequence[Any]) -> PowerRows:
        return replace(self, samples=tuple(samples))


@dataclass(frozen=True)
class KnownNoise:
    """Least squares with the ratio of the joints' noise known beforehand: joint ``j`` has that of the first times ``ratio^j``."""

    name: ClassVar[str] = "known_noise"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order"})
    ratio: float = 1.0

    @classmethod
    def from_options(cls, options: Any, robot: Robot, tell: Any) -> KnownNoise:
        tell(f"noise of {robot.n_joints} joints is taken as known")
        return cls(ratio=float(options["prior_strength"]))

    def estimate(self, regression: dynid.Regression, base: dynid.BaseReduction, prior: dynid.Parameters) -> dynid.Estimate:
        problem = LinearProblem.of(regression, base, prior)
        weights = self.ratio ** -np.arange(len(problem.channels), dtype=float)
        beta = problem.solve(weights)
        sigma = problem.noise_sigma(beta, pooled=False)
        return problem.finish(self.name, beta, problem.covariance(weights, sigma), details={"ratio": self.ratio})


class JsonLines:
    """One JSON object per row."""

    name = "jsonl"
    suffixes = (".jsonl",)

    def recognises(self, path: Path, head: bytes) -> bool:
        return head.startswith(b"{") and path.suffix == ".jsonl"

    def open(self, path: Path, options: Any) -> dict[str, Array]:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def heaviest_link(shown: Any) -> Section:
    """A section of one's own: which link is the heaviest."""
    masses = [(joint, shown.run.estimate.standard[f"m{i + 1}"]) for i, joint in enumerate(shown.run.robot.joint_names)]
    name, mass = max(masses, key=lambda pair: pair[1])
    table = PageTable(("link of joint", "mass, kg"), ((name, f"{mass:.3f}"),), numeric=(1,))
    return Section("Heaviest link by our own rules", f"It hangs on joint {name}.", (table,), "Heaviest")


@pytest.fixture
def bowed() -> Iterator[None]:
    dynid.register_effect(Bowed)
    forget = dynid.register_friction_model(
        "bowed", lambda start: (dynid.Viscous(), Bowed(width=start.width), dynid.Offset()), tried=False
    )
    yield
    forget()
    unregister_effect("bowed")


@pytest.fixture
def power() -> Iterator[None]:
    forget = dynid.register_rows(dynid.RowKind("power", lambda plan, robot, samples: PowerRows(robot, tuple(samples))))
    yield
    forget()


@pytest.fixture
def known_noise() -> Iterator[None]:
    forget = dynid.register_method(KnownNoise)
    yield
    forget()


@pytest.fixture
def json_lines() -> Iterator[None]:
    forget = dynid.register_format(JsonLines())
    yield
    forget()


@pytest.fixture
def heaviest() -> Iterator[None]:
    forget = dynid.register_section(heaviest_link)
    yield
    forget()


# A log of a robot whose friction only the effect above describes -----------------------------------


@dataclass(frozen=True)
class Play:
    truth: Robot
    urdf: Path
    log: Path


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Play:
    folder = tmp_path_factory.mktemp("play")
    whole = dynid.demo_robot(effects=[dynid.Viscous(), Bowed(width=0.3), dynid.Armature()])
    arm = whole.only(whole.joint_names[:2])
    arm = arm.with_parameters({"fv1": 1.0, "fv2": 0.8, "fb1": 3.0, "fb2": 2.0, "Ia1": 0.3, "Ia2": 0.3})
    urdf = folder / "arm.urdf"
    dynid.write_urdf(arm, urdf)
    motion = random_fourier(arm, 8.0, 5, seed=7).samples(250.0)
    log = Path(dynid.write_recording(simulate(arm, motion, rate_hz=250.0, seed=7).recording, folder / "log.parquet"))
    return Play(arm, urdf, log)


def friction(robot: Robot) -> Array:
    """Torque of friction at some speeds: what it takes to keep both joints moving, less what it takes the other way."""
    v = np.outer([0.1, 0.3, 1.0, 2.0], np.ones(2))
    still = np.zeros_like(v)
    return 0.5 * (dynid.inverse_dynamics(robot, still, v, still) - dynid.inverse_dynamics(robot, still, -v, still))


def through_the_house(run: IdentificationResult, folder: Path, formats: tuple[str, ...] = FORMATS) -> tuple[Published, str]:
    """Publish, prove each file, save and load: returns what was published and the page."""
    published = write_result(run, folder, formats=formats, allow_inconsistent=True)
    assert published.refusals == ()
    assert [item.format for item in published.exported] == list(formats)
    for item in published.exported:
        assert item.proven or (item.format == "c" and c_compiler() is None), (item.format, item.notes)
    for whole in (False, True):
        loaded = load_result(folder, with_samples=whole)
        assert loaded.robot.effects == run.robot.effects
        assert loaded.settings == run.settings
        assert loaded.rows == run.rows
        assert loaded.estimate.method == run.estimate.method
        np.testing.assert_allclose(loaded.estimate.base_values, run.estimate.base_values, rtol=1e-14)
        assert (loaded.regression is not None) == whole
    return published, published.report.read_text(encoding="utf-8")


def dynid_command(*words: object) -> Any:
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def same_by_command(
    run: IdentificationResult, play: Play, folder: Path, *flags: object, log: Path | None = None, to: str = "json,urdf"
) -> Any:
    """The same by the command line: identify, then report, export and validate from what was stored."""
    words = ("identify", play.urdf, log or play.log, "--cutoff-hz", CUTOFF_HZ, *flags, "-o", folder, "--export", "json")
    result = dynid_command(*words, "--json")
    found = {one["name"]: one["value"] for one in result["base"]}
    known = dict(zip(run.estimate.base.names, run.estimate.base_values.tolist(), strict=True))
    assert found == pytest.approx(known, rel=1e-9, abs=1e-12)
    files = dynid_command("export", folder, "--to", to, "-o", folder / "models", "--allow-inconsistent", "--json")
    assert len(files["files"]) >= len(to.split(","))
    dynid_command("report", folder, "--json")
    return result


# The laws ----------------------------------------------------------------------------------------


def test_a_friction_effect(bowed: None, play: Play, tmp_path: Path) -> None:
    settings = Settings(effects=("viscous", "bowed", "armature"), cutoff_hz=CUTOFF_HZ)
    run = dynid.identify(play.urdf, play.log, settings)
    assert [effect.name for effect in run.robot.effects] == ["viscous", "bowed", "armature"]
    assert run.estimate.standard["fb2"] == pytest.approx(2.0, rel=0.1)
    (width,) = (effect.width for effect in run.robot.effects if isinstance(effect, Bowed))
    np.testing.assert_allclose(width, 0.3, rtol=0.3)  # the search knew the number inside by its declaration
    # values and width make up for one another a little; the torque of friction they give does not
    np.testing.assert_allclose(friction(run.model), friction(play.truth), rtol=0.05)
    published, page = through_the_house(run, tmp_path / "run")
    assert "fb2" in page
    assert "bowed" in page
    source = next(item.path for item in published.exported if item.format == "c").read_text(encoding="utf-8")
    assert "sqrt" in source
    result = same_by_command(run, play, tmp_path / "other", "--effects", "viscous,bowed,armature", to="c,json")
    assert result["friction"] == "viscous,bowed,armature"


def test_a_friction_model(bowed: None, play: Play, tmp_path: Path) -> None:
    run = dynid.identify(play.urdf, play.log, Settings(friction="bowed", cutoff_hz=CUTOFF_HZ, split=0.65))
    linear = dynid.identify(play.urdf, play.log, Settings(friction="linear", cutoff_hz=CUTOFF_HZ, split=0.65))
    assert run.friction_choice is not None
    assert run.friction_choice.model == "bowed"
    assert run.validation is not None
    assert linear.validation is not None
    assert run.validation.relative_error < 0.7 * linear.validation.relative_error
    _, page = through_the_house(run, tmp_path / "run")
    assert "fb1" in page
    result = same_by_command(run, play, tmp_path / "other", "--friction", "bowed", "--split", "0.65")
    assert result["friction_model"]["model"] == "bowed"


def test_a_kind_of_rows(power: None, play: Play, tmp_path: Path) -> None:
    assert "power" in row_kinds()
    settings = Settings(rows="power", cutoff_hz=CUTOFF_HZ, split=0.65, friction="linear")
    run = dynid.identify(play.urdf, play.log, settings)
    assert run.estimate.channel_names == ("power",)
    assert run.estimate.feasible
    assert run.row_error is not None
    assert run.row_error.kind == "power"
    assert run.row_validation is not None
    assert run.row_validation.relative_error < 0.1
    assert run.validation is not None
    assert run.validation.relative_error < 0.1
    through_the_house(run, tmp_path / "run", QUICK)
    result = same_by_command(run, play, tmp_path / "other", "--rows", "power", "--split", "0.65", *LINEAR)
    assert result["rows"]["kind"] == "power"
    compared = dynid_command(
        "compare", play.urdf, play.log, "--rows", "power", "--cutoff-hz", CUTOFF_HZ, "--methods", "ols,recursive,sdp", "--json"
    )  # fmt: skip
    assert compared["rows"]["kind"] == "power"
    assert {one["outcome"] for one in compared["methods"]} == {"solved"}


def test_an_estimator(known_noise: None, play: Play, tmp_path: Path) -> None:
    assert "known_noise" in method_names()
    told: list[str] = []
    settings = Settings(method="known_noise", cutoff_hz=CUTOFF_HZ, prior_strength=2.0, friction="linear")
    run = dynid.identify(play.urdf, play.log, settings, tell=told.append)
    assert run.estimate.method == "known_noise"
    assert run.estimate.details["ratio"] == 2.0
    assert "noise of 2 joints is taken as known" in told
    equal = dynid.identify(play.urdf, play.log, replace(settings, method="wls"))
    assert not np.allclose(run.estimate.base_values, equal.estimate.base_values, rtol=1e-9)
    _, page = through_the_house(run, tmp_path / "run", QUICK)
    assert "method known_noise" in page
    result = same_by_command(run, play, tmp_path / "other", "--method", "known_noise", "--prior-strength", "2", *LINEAR)
    assert result["method"] == "known_noise"


def test_a_log_format(json_lines: None, play: Play, tmp_path: Path) -> None:
    known = read_recording(play.log, play.truth)
    assert isinstance(known, Recording)
    assert known.torque is not None
    columns = {"t": known.time, "q1": known.position[:, 0], "q2": known.position[:, 1]}
    columns |= {"tau1": known.torque[:, 0], "tau2": known.torque[:, 1]}
    log = tmp_path / "log.jsonl"
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    log.write_text("\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows) + "\n", encoding="utf-8")
    settings = Settings(method="ols", cutoff_hz=CUTOFF_HZ, velocity="position", friction="linear")
    run = dynid.identify(play.urdf, log, settings)
    same = dynid.identify(play.urdf, play.log, settings)
    np.testing.assert_allclose(run.estimate.base_values, same.estimate.base_values, rtol=1e-9, atol=1e-12)
    assert run.recordings[0].source.format == "jsonl"
    _, page = through_the_house(run, tmp_path / "run", QUICK)
    assert "log.jsonl" in page
    same_by_command(run, play, tmp_path / "other", "--method", "ols", "--velocity", "position", *LINEAR, log=log)
    assert dynid_command("data", log, "--robot", play.urdf, "--json")


def test_a_section_of_the_report(heaviest: None, play: Play, tmp_path: Path) -> None:
    run = dynid.identify(play.urdf, play.log, Settings(method="ols", cutoff_hz=CUTOFF_HZ, friction="linear"))
    _, page = through_the_house(run, tmp_path / "run", QUICK)
    assert "Heaviest link by our own rules" in page
    same_by_command(run, play, tmp_path / "other", "--method", "ols", *LINEAR)
    again = (tmp_path / "other" / "report.html").read_text(encoding="utf-8")
    assert "Heaviest link by our own rules" in again
    assert again.index("Heaviest link") < again.index("How to repeat this")


def test_all_of_them_together(
    bowed: None, power: None, known_noise: None, json_lines: None, heaviest: None, play: Play, tmp_path: Path
) -> None:
    """Additions know nothing of one another: any of them works with any other."""
    settings = Settings(rows="power", method="known_noise", friction="bowed", cutoff_hz=CUTOFF_HZ)
    run = dynid.identify(play.urdf, play.log, settings)
    assert (run.rows.kind, run.estimate.method, run.friction_choice and run.friction_choice.model) == (
        "power",
        "known_noise",
        "bowed",
    )
    _, page = through_the_house(run, tmp_path / "run")
    assert "Heaviest link by our own rules" in page
    again = dynid_command(*shlex.split(run.command())[1:], "-o", tmp_path / "again", "--export", "json", "--json")
    assert {one["name"]: one["value"] for one in again["base"]} == pytest.approx(
        dict(zip(run.estimate.base.names, run.estimate.base_values.tolist(), strict=True)), rel=1e-12
    )


def test_what_is_taken_back_is_unknown_again(play: Play) -> None:
    for settings, name in (
        ({"rows": "power"}, "power"),
        ({"method": "known_noise"}, "known_noise"),
        ({"friction": "bowed"}, "bowed"),
    ):
        with pytest.raises(UnknownNameError, match=name):
            Settings(**settings)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="bowed"):
        dynid.identify(play.urdf, play.log, Settings(effects=("bowed",)))
    for forget, name in ((unregister_rows, "torque"), (unregister_method, "sdp")):
        with pytest.raises(InputError, match=name):  # what comes with the package stays
            forget(name)
    with pytest.raises(InputError, match="heaviest_link"):
        unregister_section(heaviest_link)
    with pytest.raises(InputError, match="'energy'"):
        register_rows(RowKind("energy", lambda plan, robot, samples: PowerRows(robot, tuple(samples))))
