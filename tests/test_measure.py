"""The ground the benchmarks stand on; run apart, because NumPy must not be loaded yet."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], cwd=BENCHMARKS, capture_output=True, text=True)


def test_blas_is_left_one_thread() -> None:
    done = run("import measure, os; print(os.environ['OPENBLAS_NUM_THREADS'], os.environ['OMP_NUM_THREADS'])")
    assert done.stdout.split() == ["1", "1"], done.stderr


def test_loading_it_after_numpy_is_refused() -> None:
    done = run("import numpy, measure")
    assert done.returncode != 0
    assert "import measure before numpy" in done.stderr


def test_median_leaves_out_the_warm_up_and_the_outlier() -> None:
    script = (
        "import measure, time\n"
        "naps = iter([0.5, 0.02, 0.4, 0.03])\n"
        "print(measure.median_time(lambda: time.sleep(next(naps)), repeats=3, warmup=1))\n"
        "print(next(naps, 'all used'))"
    )
    seconds, rest = run(script).stdout.splitlines()
    assert 0.03 <= float(seconds) < 0.3
    assert rest == "all used"


def test_json_is_one_object_with_plain_numbers() -> None:
    script = (
        "import measure, numpy as np\n"
        "measure.print_result({'speedup': np.float64(2.5), 'rows': np.int64(3), 'bad': float('nan'),"
        " 'list': np.array([1.0, 2.0])}, as_json=measure.parser('x').parse_args(['--json']).json)"
    )
    assert json.loads(run(script).stdout) == {"speedup": 2.5, "rows": 3, "bad": None, "list": [1.0, 2.0]}


def test_table_has_one_line_per_key() -> None:
    done = run("import measure; measure.print_result({'speedup': 10.66666, 'n': 7}, as_json=False)")
    assert done.stdout.splitlines() == ["speedup  10.667", "n        7"]
