"""What every benchmark shares: one BLAS thread, the median of repeated calls, one form of output.

Import this module before NumPy, SciPy or dynid: BLAS reads its thread count once, when it is loaded.

    import measure

    import numpy as np

    def main() -> None:
        arguments = measure.parser(__doc__).parse_args()
        repeats = 1 if arguments.smoke else 5
        ours = measure.median_time(lambda: ..., repeats)
        reference = measure.median_time(lambda: ..., repeats)
        measure.print_result({"speedup": reference / ours}, arguments.json)
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping

if "numpy" in sys.modules:
    raise ImportError("import measure before numpy: BLAS has already read its thread count")
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that all benchmarks take; a script adds its own to what is returned."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", action="store_true", help="one JSON object on stdout, nothing else there")
    options.add_argument("--smoke", action="store_true", help="a small problem: shows that the script runs, not how fast")
    return options


def median_time(
    call: Callable[[], object], repeats: int = 5, warmup: int = 1, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Median wall-clock seconds of ``call()`` over ``repeats`` runs, after ``warmup`` uncounted ones; or by another ``clock``.

    The garbage collector rests while the clock runs, so that neither side pays for the other's litter.
    """
    if repeats < 1 or warmup < 0:
        raise ValueError(f"repeats is {repeats} and warmup {warmup}, expected at least 1 and 0")
    for _ in range(warmup):
        call()
    seconds = []
    for _ in range(repeats):
        gc.collect()
        collecting = gc.isenabled()
        gc.disable()
        try:
            start = clock()
            call()
            seconds.append(clock() - start)
        finally:
            if collecting:
                gc.enable()
    return statistics.median(seconds)


def print_result(result: Mapping[str, object], as_json: bool) -> None:
    """Print ``result`` as one JSON object, or as a table with one line per key."""
    plain = {key: _plain(value) for key, value in result.items()}
    if as_json:
        print(json.dumps(plain, allow_nan=False))
        return
    width = max((len(key) for key in plain), default=0)
    for key, value in plain.items():
        print(f"{key:<{width}}  {f'{value:.5g}' if isinstance(value, float) else value}")


def _plain(value: object) -> object:
    """NumPy scalars and arrays as Python numbers and lists; NaN and infinity, which JSON lacks, as None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
