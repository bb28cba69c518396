"""The command line: each verb calls one public function; the only place that prints or exits."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from collections.abc import Sequence

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Options of the GNU C library's allocator, by its numbers."""
KEPT_BYTES = 256 << 20
"""Freed memory that the process keeps for what comes next, and the smallest array that the system gives and takes back."""
INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended."""


def _close_stdout() -> None:
    """Let nothing that is still in the buffer be written when the program ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _keep_freed_memory() -> None:
    """Use freed arrays again: given back and asked for anew, their pages cost a tenth of a run. Long steps give them back themselves."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:  # other C libraries have none
        set_option(M_MMAP_THRESHOLD, KEPT_BYTES)
        set_option(M_TRIM_THRESHOLD, KEPT_BYTES)


def _refuse_empty(words: Sequence[str]) -> None:
    """Refuse an empty word, which a path would take for the working folder; an option that is emptied is written ``--option=``."""
    if "" not in words:
        return
    from dynid.errors import InputError

    place = list(words).index("")
    behind = f" (behind '{words[place - 1]}')" if place else ""
    raise InputError(
        f"argument {place + 1}{behind} is empty, expected a file, a folder or a value: is a variable of the shell not set?"
    )


def _folded(text: str) -> str:
    """A sentence in lines of a terminal; in a file or a pipe it stays one line, which tools can search."""
    if not sys.stderr.isatty():
        return text
    import shutil
    import textwrap

    width = max(20, min(100, shutil.get_terminal_size().columns))
    return textwrap.fill(text, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False) + "\n"


def main() -> None:
    """Run the program; bad input becomes one sentence and exit code 2."""
    _keep_freed_memory()
    # a command ends soon: looking for garbage while modules load, and among all of them at the end, takes longer than all of it
    gc.set_threshold(100_000, 50, 100)
    atexit.register(gc.freeze)
    # products here are small: threads of the BLAS would wait for one another, longer still beside other work
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("MUJOCO_GL", "disabled")  # nothing is rendered here, and looking for a window system takes time
    from dynid.cli.program import needed_verbs, program
    from dynid.errors import DynidError

    try:
        try:
            _refuse_empty(sys.argv[1:])
            program(needed_verbs(sys.argv[1:]))()
        finally:
            sys.stdout.flush()  # here, where a full disk is still an error that can be told
    except BrokenPipeError:  # the reader, such as head, has seen enough
        _close_stdout()
        sys.exit(0)
    except OSError as error:
        _close_stdout()
        where = f"'{error.filename}'" if error.filename else "the output"
        sys.stderr.write(f"dynid: cannot write {where}: {error.strerror or error}\n")
        sys.exit(2)
    except DynidError as error:
        sys.stderr.write(_folded(f"dynid: {error}\n"))
        sys.exit(2)
    except MemoryError as error:
        reason = f": {error}" if str(error) else "; fewer rows (--from, --to) or joints (--lock) need less"
        sys.stderr.write(f"dynid: this needs more memory than there is{reason}\n")
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as end:
        if (
            type(sys.stdout).__name__ == "PacifyFlushWrapper"
        ):  # how Typer leaves a pipe that was closed, with the code of a failed verdict
            sys.exit(0)
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        sys.stderr.write("dynid: interrupted\n")
        sys.exit(INTERRUPTED)
