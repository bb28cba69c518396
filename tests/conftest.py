"""What every test shares: one BLAS thread per worker and repeatable hypothesis examples."""

from __future__ import annotations

import os

from hypothesis import settings

# Workers already fill the cores; BLAS reads these once, when NumPy is first loaded.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# No deadline: the first example of a kernel pays for its compilation.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
