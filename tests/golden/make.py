"""Write the golden results and the public surface anew, after a change that is meant to change them.

    python tests/golden/make.py [CASE...] [--surface]

Without names every record is written; ``--surface`` writes the list of public names and flags alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # as the tests do; before NumPy is loaded
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> None:
    from golden.cases import CASES
    from golden.records import Workshop, record_path, write_record
    from golden.surface import SNAPSHOT, surface

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="CASE", help="cases to write; default: all")
    parser.add_argument("--surface", action="store_true", help="public names and flags alone")
    options = parser.parse_args()
    known = [case.name for case in CASES]
    if unknown := set(options.names) - set(known):
        parser.error(f"unknown cases {sorted(unknown)}, there are {known}")
    if options.surface or not options.names:
        SNAPSHOT.write_text(surface(), encoding="utf-8")
        sys.stdout.write(f"{SNAPSHOT}\n")
    if options.surface:
        return
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder) / "golden")
        for name in options.names or known:
            sys.stdout.write(f"{write_record(name, workshop.answer(name))}\n")
            sys.stdout.flush()
    if not options.names:
        for path in sorted(set(record_path("x").parent.glob("*.json")) - {record_path(name) for name in known}):
            path.unlink()  # of a case that is no more


if __name__ == "__main__":
    main()
