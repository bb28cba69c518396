"""A body that becomes known while data come in."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cli_program import dynid
from dynid.errors import InputError
from dynid.estimation.body import estimate_body
from dynid.estimation.online import SENSOR_NOISE, online_body, online_sensor_body
from dynid.regression.factor import factorise
from dynid.regression.wrench_rows import WrenchRows
from dynid.signals.samples import WrenchSamples
from sensor_logs import BODY, COM, OFFSETS, Path3, moves, sensor_log, sensor_motion, true_wrench, write_log, write_shoulder


def samples_of(path: Path3, seed: int = 0) -> WrenchSamples:
    motion = sensor_motion(path)
    t = np.arange(len(path.q)) / 100.0
    noise = np.array(SENSOR_NOISE) * np.random.default_rng(seed).normal(size=(len(t), 6))
    return WrenchSamples(t, true_wrench(motion) + OFFSETS + noise, None, motion.omega, motion.proper, motion.alpha)


@pytest.fixture(scope="module")
def samples() -> WrenchSamples:
    """Five seconds at rest in one pose, then moves."""
    fast = moves(1.0, np.random.default_rng(2), 20.0)
    still = np.repeat(fast.q[:1], 500, axis=0)
    zero = np.zeros_like(still)
    return samples_of(Path3(np.vstack([still, fast.q]), np.vstack([zero, fast.v]), np.vstack([zero, fast.a])))


def test_flags_say_what_is_known_yet(samples):
    states = list(online_sensor_body(samples))
    assert "m1" not in states[3].known  # one pose: weight and offset cannot be told apart
    assert states[-1].known == tuple(states[-1].names[:10])
    assert states[-1].values[0] == pytest.approx(1.85, rel=0.02)
    np.testing.assert_allclose(states[-1].values[1:4] / states[-1].values[0], COM, atol=3e-3)
    assert (np.abs(states[-1].values[:10] - BODY) < 5.0 * states[-1].sigma[:10]).all()


def test_equals_the_batch(samples):
    """Recursive least squares on all blocks is least squares on all rows, each axis over its noise."""
    last = list(online_sensor_body(samples))[-1]
    rows = WrenchRows(samples)
    scaled = np.array(SENSOR_NOISE)
    A = np.vstack([block / s for chunk in rows.passes() for block, s in zip(chunk.blocks, scaled, strict=True)])
    batch = np.linalg.lstsq(A[:, :-1], A[:, -1], rcond=None)[0]
    np.testing.assert_allclose(last.values, batch, rtol=1e-7, atol=1e-9)
    weighted = estimate_body(factorise(rows), ("wls",))[0]
    assert abs(last.values[0] - weighted.mass) < 3.0 * weighted.sigma[0]


def test_by_command(tmp_path):
    log = write_log(sensor_log(1.0, 0, duration_s=10.0), tmp_path / "log.csv")
    urdf = write_shoulder(tmp_path)
    done = dynid(
        "payload", "--sensor", log, "--robot", urdf, "--frame", "ft_sensor", "--filter", "savgol:9,2", "--online", "--json"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) >= 9
    assert set(lines[-1]) == {"t", "values", "sigma", "flags", "known", "residual"}
    assert lines[-1]["values"]["m1"] == pytest.approx(1.85, rel=0.03)
    assert len(lines[-1]["known"]) >= len(lines[0]["known"])


def test_bad_input_is_refused(samples):
    with pytest.raises(InputError, match="positive"):
        online_body(WrenchRows(samples).parameters, np.full(6, -1.0))
    with pytest.raises(InputError, match="-1 s"):
        next(online_sensor_body(samples, -1.0))
