"""Surfaces of plain solids: closed, of the right volume, and smaller on request."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.io.robots.solids import Solid, SolidKind, Surface, joined


def volume(surface: Surface) -> float:
    a, b, c = np.moveaxis(surface.vertices[surface.triangles], 1, 0)
    return abs(float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum())) / 6.0


@pytest.mark.parametrize(
    ("kind", "sizes", "exact"),
    [
        ("box", (0.1, 0.2, 0.3), 0.048),
        ("ellipsoid", (0.1, 0.2, 0.3), 4.0 / 3.0 * np.pi * 0.006),
        ("cylinder", (0.2, 0.5), np.pi * 0.04),
        ("capsule", (0.2, 0.5), np.pi * 0.04 + 4.0 / 3.0 * np.pi * 0.008),
        ("cone", (0.2, 0.5), np.pi * 0.04 / 3.0),
    ],
)
def test_volume(kind: SolidKind, sizes: tuple[float, ...], exact: float) -> None:
    solid = Solid("link", kind, sizes, np.eye(4))
    surface = solid.surface()
    assert volume(solid.wide_surface()) >= exact * (1.0 - 1e-12)
    assert volume(surface) == pytest.approx(exact, rel=0.12)  # sixteen sides lie inside the round solid
    assert volume(surface) <= exact * (1.0 + 1e-12)


def test_fewer_triangles_keep_the_size() -> None:
    rng = np.random.default_rng(0)
    cylinder = Solid("link", "cylinder", (0.1, 0.4), np.eye(4)).surface()
    fine = joined([cylinder.moved(np.eye(3), shift) for shift in rng.uniform(-0.05, 0.05, (40, 3))])
    few = fine.with_fewer(200)
    assert len(few.triangles) <= 200 < len(fine.triangles)
    for bound in (np.min, np.max):
        np.testing.assert_allclose(bound(few.vertices, axis=0), bound(fine.vertices, axis=0), atol=0.08)
    assert few.triangles.max() < len(few.vertices)
