"""Names that come from files are text everywhere: no markup, no code, in any form that is written."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import dynid
from dynid.excitation.shapes import random_fourier
from dynid.pipeline.report import report_page
from dynid.pipeline.run_file import read_run_file, write_run_file
from fuzz.targets import _identified

HOSTILE = (
    '"><script>document.title="owned"</script>',
    "*/ int owned = 1; /*",
    '"; int owned = 1; //',
    "a\\\n#define double int",
    "]] \nowned = true\n[x",
    "$(touch owned); `touch owned`; 'x",
    "%s%n {x} ${x} \\u0022",
    "x: !!python/object/apply:os.system ['touch owned']",
    'end"\n  popup("owned")',
    "</style></script><img src=x onerror=alert(1)>",
)


def hostile_run(name: str) -> dynid.IdentificationResult:
    run = _identified()
    joints = tuple(replace(joint, name=f"{joint.name} {name}") for joint in run.robot.joints)
    robot = replace(run.robot, name=name, joints=joints)
    return replace(run, robot=robot, notes=(name,))


class Scripts(HTMLParser):
    """Elements and attributes of a page that could run something, and were not written by the page itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.found += [f"{tag} {name}" for name, _ in attrs if name.startswith("on")]
        self.found += [tag for _ in range(tag == "img") if ("src", "x") in attrs]


def elements(page: str) -> Scripts:
    parser = Scripts()
    parser.feed(page)
    return parser


@pytest.fixture(scope="module")
def plain() -> Scripts:
    """What the page of the same run without such names has."""
    return elements(report_page(_identified()))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_report_takes_no_markup_from_names(name: str, plain: Scripts) -> None:
    hostile = elements(report_page(hostile_run(name)))
    assert hostile.scripts == plain.scripts
    assert hostile.found == plain.found


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler")
@pytest.mark.parametrize("name", HOSTILE)
def test_c_source_takes_no_code_from_names(name: str, tmp_path: Path) -> None:
    written = dynid.write_c(hostile_run(name).model, tmp_path / "arm.c", "", True)
    sources = [str(path) for path in (written.path, *written.companions)]
    ended = subprocess.run(
        ["gcc", "-std=c99", "-Wall", "-Werror", "-c", sources[0], "-o", str(tmp_path / "arm.o")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    symbols = subprocess.run(["nm", str(tmp_path / "arm.o")], capture_output=True, text=True, check=True).stdout
    assert "owned" not in symbols


@pytest.mark.parametrize("name", HOSTILE)
def test_run_files_and_commands_take_no_keys_and_no_commands_from_names(name: str, tmp_path: Path) -> None:
    robot, log = f"{name.replace('/', '_')}.urdf", f"{name.replace('/', '_')}.csv"
    file = write_run_file(tmp_path / "dynid.toml", tmp_path / robot, [tmp_path / log])
    table = tomllib.loads(file.read_text())
    assert "owned" not in table
    found = read_run_file(file)
    assert found.robot is not None
    assert found.robot.name == robot
    assert [path.name for path in found.logs] == [log]
    run = replace(_identified(), logs=((str(tmp_path / log), "0" * 64),))
    words = shlex.split(run.command())
    assert words[0] == "dynid"
    assert str(tmp_path / log) in words
    # and in a real shell, where the words go to a program that prints them
    shown = subprocess.run(
        ["sh", "-c", run.command().replace("dynid", "printf '%s\\0'", 1)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.split("\0")[:-1] == words[1:]
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("name", HOSTILE)
def test_motions_for_robots_take_no_code_from_names(name: str, tmp_path: Path) -> None:
    import yaml

    robot = dynid.demo_robot()
    motion = random_fourier(robot.only(robot.joint_names[:6]), period_s=2.0)
    names = tuple(f"{name} {k}" for k in range(6))
    ros = dynid.write_motion(motion, tmp_path / "motion.yaml", names)
    table = yaml.safe_load(Path(ros).read_text())
    assert set(table) == {"header", "joint_names", "points"}
    assert table["joint_names"] == list(names)
    script = Path(dynid.write_motion(motion, tmp_path / "motion.script", names)).read_text()
    assert script.count("popup") == 1  # its own, where the robot does not stand at the start
    assert "owned" not in script
