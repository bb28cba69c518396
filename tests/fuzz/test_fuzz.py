"""A few mutated files for every reader, and the inputs that once went wrong. Many: ``make fuzz``."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dynid
from dynid.errors import InputError
from dynid.io.logs.formats import formats
from fuzz.campaign import Seeds, try_case
from fuzz.targets import (
    DH,
    MAPPING,
    MJCF,
    ROBOTS,
    SDF,
    TARGETS,
    XACRO,
    make_mapped,
    make_run,
    make_sidecar,
    motion,
    read_and_use,
    read_bounds,
    read_constraints,
    read_log,
    read_mapped,
    read_mesh,
    read_parameters,
    read_run_file,
    text_log,
    writer,
)


@pytest.mark.parametrize("name", list(TARGETS))
def test_mutated_files_are_read_or_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seeds = Seeds(TARGETS[name], tmp_path / "seeds")
    seeds.target.read(seeds.path)  # as it is, it is good
    found = {case: finding for case in range(10) if (finding := try_case(seeds, 7, case)[0]) is not None}
    assert not found


def huge(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


REFUSED = {
    "dh with an integer of 400 digits": (
        "c.toml",
        huge(DH, "d = 0.3", f"d = {'9' * 400}"),
        read_and_use,
        "integer of 1329 bits",
    ),
    "dh with an integer of 5000 digits": (
        "c.toml",
        huge(DH, "d = 0.3", f"d = {'9' * 5000}"),
        read_and_use,
        "not valid TOML",
    ),
    "dh of brackets": ("c.toml", "a = " + "[" * 5000 + "]" * 5000, read_and_use, "not valid TOML"),
    "spring at a point of lists": (
        "c.toml",
        huge((ROBOTS / "counterbalanced.toml").read_text(), "parent_point = [0.171,", "parent_point = [[1, 2],"),
        read_and_use,
        r"parent_point of .* expected three numbers",
    ),
    "spring at the end of the world": (
        "c.toml",
        huge(
            (ROBOTS / "counterbalanced.toml").read_text(),
            "parent_point = [0.171, 0.47, 0.14]",
            "parent_point = [0.171, 0.47, -1e300]",
        ),
        read_and_use,
        r"parent_point of .* expected three numbers below",
    ),
    "coupling of a joint with a number of 5000 digits": (
        "c.toml",
        huge((ROBOTS / "coupled_wrist.toml").read_text(), '"6:5"', f'"6:{"5" * 5000}"'),
        read_and_use,
        "names joint '5555",
    ),
    "sdf without a rotation": (
        "c.sdf",
        huge(SDF, "0.4 0 0.3 0 0 0 1", "0.4 0 0.3 0 0 0 0"),
        read_and_use,
        "quaternion of length 0",
    ),
    "mjcf by the million": (
        "c.xml",
        huge(MJCF, '<geom type="capsule"', '<replicate count="1e8"><geom size="1"/></replicate><geom type="capsule"'),
        read_and_use,
        "1e\\+08 copies, expected at most 10000",
    ),
    "mjcf replicated in replicates": (
        "c.xml",
        huge(
            MJCF,
            '<geom type="capsule"',
            '<replicate count="999">' * 3 + '<geom size="1"/>' + "</replicate>" * 3 + '<geom type="capsule"',
        ),
        read_and_use,
        "copies, expected at most",
    ),
    "mjcf with a mesh of the system": (
        "c.xml",
        huge(
            MJCF, "<worldbody>", '<compiler meshdir="/etc"/><asset><mesh name="m" file="passwd.stl"/></asset><worldbody>'
        ).replace('<geom type="capsule" size="0.03 0.1" mass="1"/>', '<geom type="mesh" mesh="m"/>'),
        read_and_use,
        "asks for the mesh '/etc/passwd.stl'",
    ),
    "mjcf with a fine supersphere": (
        "c.xml",
        huge(MJCF, "<worldbody>", '<asset><mesh name="m" builtin="supersphere" params="30000 1 1"/></asset><worldbody>'),
        read_and_use,
        "parameter 30000, expected at most 256",
    ),
    "bounds with large integers": ("b.toml", f"m1 = [0, {'9' * 400}]\n", read_bounds, "integer of"),
    "constraints with large integers": (
        "b.toml",
        f"[constraints]\nfixed = {{ m1 = {'9' * 400} }}\n",
        read_constraints,
        "integer of",
    ),
    "run file with large integers": ("b.toml", f"[rows]\ncutoff_hz = {'9' * 400}\n", read_run_file, "integer of"),
    "csv with a very long field": (
        "c.csv",
        text_log(motion()).replace("\n", '\n"' + "1" * 200_000 + '",', 1),
        read_log,
        "c.csv",
    ),
    "csv with a very long number in a name": (
        "c.csv",
        text_log(motion()).replace("q1", "q" + "1" * 5000, 1),
        read_log,
        "c.csv",
    ),
    "poses with a very long number in a name": (
        "c.csv",
        "q1,q2,M11,M21,M2" + "1" * 5000 + ",g1,g2\n0,0,1,0,1,0,0\n",
        read_log,
        "c.csv",
    ),
    "obj with a word for a number": ("m.obj", "v 0 0 x\n", read_mesh, "line 1 of mesh .* no vertex of three numbers"),
    "stl of 34 bytes, which is what a count of -1 would have": ("m.stl", "s" * 34, read_mesh, "m.stl"),
    "json of brackets": ("c.json", "[" * 100_000, read_parameters, "not valid JSON"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_inputs_that_went_wrong_are_refused(what: str, tmp_path: Path) -> None:
    name, text, read, sentence = REFUSED[what]
    with pytest.raises(InputError, match=sentence):
        read(writer(name, text)(tmp_path))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gear_ratios = [100, 100]", "gear_ratios = 3"),
        ("gear_ratios = [100, 100]", "gear_ratios = true"),
        ('time = "ms"', 'time = ["ms"]'),
        ('torque = "motor"', "torque = 1"),
        ("drive_gains = [10.0, 8.5]", f"drive_gains = [1{'0' * 400}, 8.5]"),
    ],
)
def test_mappings_of_other_types_are_refused(old: str, new: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"map\.toml"):
        read_mapped(make_mapped("map.toml", huge(MAPPING, old, new))(tmp_path))


def test_placements_that_are_no_rotations_are_refused(tmp_path: Path) -> None:
    path = make_sidecar(tmp_path)
    record = json.loads(path.read_text())
    for wrong in (np.zeros((4, 4)), np.diag([1.0, 1.0, -1.0, 1.0]), 2.0 * np.eye(4), np.eye(3)):
        record["joints"][0]["placement"] = wrong.tolist()
        path.write_text(json.dumps(record))
        with pytest.raises(InputError, match="placement of joint 'shoulder'"):
            read_parameters(path)


@pytest.mark.parametrize("wrong", [[], [[]], [[0.1, 0.2]], "0.1", ["0.1", "0.2"], True])
def test_numbers_inside_friction_are_one_or_one_per_joint(wrong: object, tmp_path: Path) -> None:
    path = make_sidecar(tmp_path)
    known = json.loads(path.read_text())
    next(effect for effect in known["effects"] if "smooth_width" in effect["options"])["options"]["smooth_width"] = wrong
    path.write_text(json.dumps(known))
    with pytest.raises(InputError, match=r"smooth_width is .*, expected a number, or one per joint"):
        read_parameters(path)


def test_a_run_with_numbers_of_another_type_is_refused_even_with_right_hashes(tmp_path: Path) -> None:
    from fuzz.targets import reseal_run

    folder = make_run(tmp_path)
    for place, wrong in (("rank", "text"), ("base_values", 3), ("origin", None), ("outcome", [])):
        record = json.loads((folder / "estimate.json").read_text())
        (folder / "estimate.json").write_text(json.dumps(record | {place: wrong}))
        reseal_run(tmp_path)
        with pytest.raises(InputError, match="damaged"):
            dynid.load_result(folder)
        (folder / "estimate.json").write_text(json.dumps(record))


def test_a_run_with_a_log_whose_name_no_file_can_have_is_loaded_without_it(tmp_path: Path) -> None:
    from fuzz.targets import reseal_run

    folder = make_run(tmp_path)
    record = json.loads((folder / "run.json").read_text())
    record["logs"][0] = "a" * 5000 if isinstance(record["logs"][0], str) else record["logs"][0] | {"path": "a" * 5000}
    (folder / "run.json").write_text(json.dumps(record))
    reseal_run(tmp_path)
    assert not dynid.load_result(folder, with_samples=True).samples


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    for name, read in (("log.csv", read_log), ("hull.stl", read_mesh), ("b.toml", read_bounds), ("r.urdf", read_and_use)):
        os.mkfifo(tmp_path / name)
        with pytest.raises(InputError, match=name):
            read(tmp_path / name)


def test_a_small_parquet_of_very_many_rows_is_refused(tmp_path: Path) -> None:
    zeros = np.zeros(8_000_000)
    pq.write_table(
        pa.table(dict.fromkeys(("t", "q1", "q2", "tau1", "tau2"), zeros)), tmp_path / "log.parquet", compression="zstd"
    )
    with pytest.raises(InputError, match=r"unpacks from \d+ to 320000000 bytes"):
        read_log(tmp_path / "log.parquet")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('value="2.0"', 'value="${9**9**8}"', "cannot be expanded: a power is too large"),
        ('value="2.0"', "value=\"${xacro.load_yaml('/etc/passwd')}\"", "/etc/passwd"),
        ('name="two"', 'name="$(env HOME)"', "HOME"),
    ],
)
def test_xacro_has_limits_and_sees_no_other_files(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    assert read_and_use(writer("good.xacro", XACRO)(tmp_path)) is None
    with pytest.raises(InputError, match=sentence):
        read_and_use(writer("c.xacro", huge(XACRO, old, new))(tmp_path))


def test_without_a_place_for_kernels_they_are_compiled_in_memory() -> None:
    code = (  # a function of no file has no place for its kernel
        "import logging; logging.basicConfig()\n"
        "from dynid.compiled import njit\n"
        "print(njit(cache=True, nogil=True)(lambda x: x + 1)(1), njit()(lambda x: x + 2)(1))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "2 3\n"
    assert ended.stderr.count("set NUMBA_CACHE_DIR") == 1


def test_a_parameter_with_a_number_of_5000_digits_is_a_name_like_any_other() -> None:
    from dynid.model.parameters import canonical_name, split_name

    for name in ("m" + "1" * 5000, "L" + "1" * 5000 + "xx"):
        assert canonical_name(name) == name
        assert split_name(name) is None


ENTRANCES = (
    "read_limited",
    "read_json",
    "read_arrays",
    "csv_lines",
    "toml_table",
    "json_value",
    "json_object",
    "foreign_errors",
)
"""Everything that is read goes through one of these."""


READ_BACK = {"dynid.excitation.controller_programs"}
"""Modules that read nothing but what they have just written themselves, to compare it."""


def modules_that_read() -> set[str]:
    """Modules of the package in whose source an entrance is called."""
    root = Path(dynid.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        if any(getattr(call, "id", getattr(call, "attr", "")) in ENTRANCES for call in calls):
            parts = path.relative_to(root.parent).with_suffix("").parts
            found.add(".".join(parts).removesuffix(".__init__"))
    return found - READ_BACK - {"dynid.files", "dynid.io.logs.log_file"}


@pytest.mark.slow
def test_every_module_that_reads_files_is_fuzzed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new reader without a target fails here: the seeds of all targets, read, must enter every module that reads."""
    entered: set[str] = set()

    def watching(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (name := frame.f_globals.get("__name__", "")).startswith("dynid."):
            if frame.f_code.co_name in ENTRANCES:
                name = frame.f_back.f_globals.get("__name__", "") if frame.f_back else ""
            entered.add(name)

    monkeypatch.chdir(tmp_path)
    for target in TARGETS.values():
        seeds = Seeds(target, tmp_path / "seeds")
        sys.setprofile(watching)
        try:
            target.read(seeds.path)
        finally:
            sys.setprofile(None)
    missing = modules_that_read() - entered
    assert not missing, f"no target of tests/fuzz reaches {sorted(missing)}"


def test_every_log_format_and_robot_format_has_a_target(tmp_path: Path) -> None:
    seeds = {}
    for name in TARGETS:
        folder = tmp_path / name
        folder.mkdir()
        path = TARGETS[name].make(folder)
        seeds[name] = {one.suffix for one in (path, *folder.rglob("*"))}
    suffixes = set().union(*seeds.values())
    for known in formats():
        assert not known.suffixes or suffixes & set(known.suffixes), known.name
    assert {".urdf", ".xacro", ".xml", ".sdf", ".toml"} <= suffixes
