"""The command line in this process: starting Python anew for each command would take most of the time."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from dataclasses import dataclass

from dynid.cli import main
from dynid.cli.program import program

app = program()
"""Every verb, for tests that look at all of them."""


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


def dynid(*arguments: object) -> Done:
    """The program with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    logger = logging.getLogger("dynid")
    kept, before = logger.handlers[:], sys.argv
    logger.handlers.clear()
    sys.argv = ["dynid", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = before
        logger.handlers[:] = kept
    return Done(int(code or 0), out.getvalue(), err.getvalue())
