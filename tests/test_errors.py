"""What errors say."""

from __future__ import annotations

import pytest

from dynid.errors import DynidError, InputError, MissingPackageError, UnknownNameError, listed, reason_of


def test_an_unknown_name_lists_what_there_is() -> None:
    error = UnknownNameError("joint", "knee", ("hip", "ankle"), "go2.urdf")
    assert str(error) == "unknown joint 'knee' in go2.urdf; available: hip, ankle"
    assert (error.name, error.available) == ("knee", ("hip", "ankle"))
    assert str(UnknownNameError("joint", "knee", ())).endswith("available: none")


@pytest.mark.parametrize(("extra", "line"), [("bags", "pip install 'dynid[bags]'"), (None, "pip install mcap")])
def test_a_missing_package_names_the_line_that_installs_it(extra: str | None, line: str) -> None:
    error = MissingPackageError("mcap", "reading a bag", extra)
    assert isinstance(error, InputError)
    assert str(error) == f"reading a bag needs the package 'mcap': {line}"


def test_names_of_a_sentence_are_few() -> None:
    assert listed([]) == ""
    assert listed([], of="columns") == "none"
    assert listed(["a", "b"], 2) == "a, b"


def test_errors_of_others_are_told_with_their_kind() -> None:
    assert reason_of(DynidError("a\n  b")) == "a b"
    assert reason_of(KeyError("x")) == "KeyError: 'x'"
    assert reason_of(MemoryError()) == "MemoryError"
