"""Run files: what they say is relative to themselves, and every setting has its place in them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.bodies import CentreOfMassInHull
from dynid.estimation.constraints.bounds import constraints_from_table, read_bounds
from dynid.pipeline.option_groups import SECTIONS
from dynid.pipeline.options import Settings
from dynid.pipeline.run_file import _SECTIONS, read_run_file, write_run_file


def test_paths_are_seen_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    path = write_run_file("runs/dynid.toml", 'arm "two".urdf', ["logs/ä b.parquet", tmp_path / "far.csv"])
    found = read_run_file(path)
    assert found.robot is not None
    assert found.robot.resolve() == tmp_path / 'arm "two".urdf'
    assert [log.resolve() for log in found.logs] == [tmp_path / "logs" / "ä b.parquet", tmp_path / "far.csv"]
    assert found.settings({}) == Settings()


def test_every_setting_has_a_place() -> None:
    placed = [name for section in SECTIONS for name in _SECTIONS[section]]
    assert sorted(placed) == sorted(field.name for field in fields(Settings))


def test_files_named_in_it_are_relative_to_it(tmp_path: Path) -> None:
    path = tmp_path / "dynid.toml"
    path.write_text(
        '[reading]\nmapping = "columns.toml"\n[estimation]\noptimiser = "annealing"\nstarts = 3\n', encoding="utf-8"
    )
    settings = read_run_file(path).settings({})
    assert settings.mapping == str(tmp_path / "columns.toml")
    assert (settings.optimiser, settings.starts) == ("annealing", 3)


def test_settings_that_make_no_sense_are_said() -> None:
    with pytest.raises(UnknownNameError, match="luck"):
        Settings(optimiser="luck")
    with pytest.raises(InputError, match=r"starts.* is 0"):
        Settings(starts=0)


def test_meshes_of_constraints_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    corners = [f"v {x} {y} {z}" for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    (tmp_path / "sub" / "box.obj").write_text("\n".join(corners) + "\n", encoding="utf-8")
    text = '[[constraints.com_hull]]\nlink = 2\nmesh = "box.obj"\n'
    (tmp_path / "sub" / "dynid.toml").write_text(text, encoding="utf-8")
    (tmp_path / "sub" / "bounds.toml").write_text("m1 = [0.0, 10.0]\n" + text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    settings = read_run_file("sub/dynid.toml").settings({})
    (hull,) = constraints_from_table(settings.constraints)
    (same,) = read_bounds("sub/bounds.toml").constraints
    assert isinstance(hull, CentreOfMassInHull)
    assert isinstance(same, CentreOfMassInHull)


def test_a_coupling_is_read_from_its_matrix_and_its_terms(tmp_path: Path) -> None:
    file = tmp_path / "dynid.toml"
    file.write_text('[coupling]\nmatrix = [[1, 0], [0.5, 2]]\n"1:2" = 3\neffects = ["viscous"]\nside = "motor"\n')
    options = read_run_file(file).options
    assert options["coupling"] == ("2:1=0.5", "2:2=2.0", "1:2=3")
    assert (options["motor_effects"], options["side"]) == (("viscous",), "motor")
    for rows in ("[[1, 0]]", "[[1], [2]]", '["ab", "cd"]', '[["a", 1], [1, 1]]'):
        file.write_text(f"[coupling]\nmatrix = {rows}\n")
        with pytest.raises(InputError, match="matrix"):
            read_run_file(file)


def test_a_written_file_has_examples_where_nothing_is_set_and_none_beside_own_constraints(tmp_path: Path) -> None:
    plain = write_run_file(tmp_path / "a.toml", tmp_path / "bräs.urdf", [tmp_path / "log.csv"]).read_text()
    assert "# [[constraints.mass]]" in plain
    assert 'bräs.urdf"' in plain
    assert "\n# lock = " in plain
    settings = Settings(constraints={"total_mass": {"upper": 27.0}}, lock={"elbow": 0.5})
    own = write_run_file(tmp_path / "b.toml", "arm.urdf", ["log.csv"], settings).read_text()
    assert "# [[constraints.mass]]" not in own
    assert "\nlock = " in own
    assert read_run_file(tmp_path / "b.toml").settings({}).lock == {"elbow": 0.5}
