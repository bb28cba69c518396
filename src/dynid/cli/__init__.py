"""The command line: each verb calls one public function; the only place that prints or exits."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the program; bad input becomes one sentence and exit code 2."""
    from dynid.cli.app import app
    from dynid.errors import DynidError

    try:
        app()
    except DynidError as error:
        sys.stderr.write(f"dynid: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("dynid: interrupted\n")
        sys.exit(130)
