"""What the description of a robot says about its links, as the centre of a prior; links that say little get a careful one.

A divergence of bodies needs a consistent body for every link. Of a link whose inertials no body can have, it is the nearest one
whose pseudo-inertia is clearly positive; a link without inertials is taken to be small, so that it stays as light as the data let.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.estimation.convex.layout import Layout
from dynid.inertia import consistency, is_consistent, phi_from_pseudo_inertia, pseudo_inertia

USABLE = 1e-4
"""How far inside the consistent set, relative to its size, a link of the description must be to be taken as it is."""
LEAST = 0.02
"""Smallest eigenvalue of the scaled pseudo-inertia of a link that is not."""


def described_bodies(layout: Layout, x: Array) -> Array | None:
    """Scaled parameters ``x`` of a description with a consistent body in every link; None where no link has inertials."""
    bodies = x[layout.slots]
    if consistency(bodies).empty.all():
        return None
    found = np.array(x)
    for slots, body in zip(layout.slots, bodies, strict=True):
        if not is_consistent(body, margin=USABLE):
            values, vectors = np.linalg.eigh(pseudo_inertia(body))
            found[slots] = phi_from_pseudo_inertia((vectors * np.maximum(values, LEAST)) @ vectors.T)
    return found
