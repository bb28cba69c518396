"""Trusted xacro files: the package expands them in a process of its own."""

from pathlib import Path

import pytest

from cli_program import dynid
from dynid.errors import InputError, MissingPackageError
from dynid.io.robots.xacro import expand_xacro
from dynid.option_types import TRUST_XACRO

HEAD = '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">'


def place(folder: Path, body: str) -> Path:
    file = folder / "arm.xacro"
    file.write_text(f"{HEAD}{body}</robot>")
    return file


def test_a_trusted_file_is_expanded_by_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xacro")
    file = place(tmp_path, "<l x=\"${'%.2f' % 1}\"/>")
    with pytest.raises(InputError, match="--trust-xacro"):
        expand_xacro(file)
    monkeypatch.setenv(TRUST_XACRO, "1")
    assert b"1.00" in expand_xacro(file)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match="pip install xacro"):
        expand_xacro(file)


def test_the_flag_trusts_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xacro")
    monkeypatch.delenv(TRUST_XACRO, raising=False)
    body = """<link name="base"/><link name="arm"><inertial><mass value="${'%d' % 2}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0"
      izz="1"/></inertial></link><joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint>"""
    file = place(tmp_path, body)
    refused = dynid("check", file)
    assert refused.returncode == 2
    assert "--trust-xacro" in refused.stderr
    with monkeypatch.context() as during:
        during.setenv(TRUST_XACRO, "0")  # what the command sets is taken back with it
        assert dynid("check", file, "--trust-xacro").returncode == 0


@pytest.mark.parametrize(
    ("text", "word"), [("${open('/etc/hostname').read()}", "open"), ("${9**9**9**9}", "takes more than")]
)
@pytest.mark.slow
def test_even_a_trusted_file_has_limits(text: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xacro")
    monkeypatch.setenv(TRUST_XACRO, "1")
    with pytest.raises(InputError, match=word):
        expand_xacro(place(tmp_path, f'<l x="{text}"/>'))
