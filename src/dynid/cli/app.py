"""The program with every verb, for those who look at all of them: the documentation and the tests."""

from __future__ import annotations

from dynid.cli.program import program

app = program()
