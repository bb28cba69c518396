from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid as front
from bench import Bench
from dynid.apps.payload.load import _warnings, identify_payload
from dynid.apps.payload.options import PayloadSettings
from dynid.apps.payload.sources import loads_of, online_loads_of
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.simulate import simulate
from dynid.errors import InputError
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.io.logs.read import write_recording
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.frames import Frame, frame_named
from dynid.model.inertia import change_of_frame
from dynid.model.poses import pose_from_numbers
from dynid.model.robot import make_robot
from dynid.pipeline.identify import identify
from dynid.pipeline.known_load import known_load
from dynid.pipeline.options import Settings
from dynid.signals.recording import Recording
from messages import facts
from uniform_bodies import LOAD, phi_of_cuboid

CENTRE = [0.02, -0.03, 0.12]


def test_finds_the_load(run, loaded_log: Path) -> None:
    load = identify_payload(run, [loaded_log])
    assert load.mass == pytest.approx(2.0, rel=0.05)
    np.testing.assert_allclose(load.com, CENTRE, atol=0.01)
    assert load.feasible
    assert load.relative_error_with < 0.3 * load.relative_error_without
    # what noise neighbouring rows share is counted
    assert load.estimate.details["covariance"] == "corrected"
    assert load.sigma[0] > load.estimate.details["classical_sigma"][0]
    assert abs(load.mass - 2.0) < 5.0 * load.sigma[0]
    assert load.warnings == ()


def test_on_any_frame(run, loaded_log: Path) -> None:
    """The same load in a frame that is turned and shifted on the same link."""
    pose = pose_from_numbers([0.05, -0.02, 0.1, 0.3, -0.4, 1.0])
    flange = Frame("flange", run.robot.n_joints - 1, pose)
    there, here = identify_payload(run, [loaded_log], flange), identify_payload(run, [loaded_log])
    back = change_of_frame(pose[:3, :3], pose[:3, 3]) @ there.phi
    np.testing.assert_allclose(back[:4], here.phi[:4], atol=2e-3)
    assert there.link == "flange"


def test_a_known_mass_makes_the_centre_surer(run, loaded_log: Path) -> None:
    free = identify_payload(run, [loaded_log])
    known = identify_payload(run, [loaded_log], constraints=known_load(2.0))
    assert known.mass == pytest.approx(2.0, rel=1e-6)
    assert np.linalg.norm(known.com_sigma) < np.linalg.norm(free.com_sigma)
    assert np.linalg.norm(known.com - CENTRE) < np.linalg.norm(free.com - CENTRE) + 1e-3


def test_a_known_shape_holds(run, loaded_log: Path) -> None:
    corners = "box:-0.04,-0.08,0.04,0.08,0.02,0.2"
    inside = identify_payload(run, [loaded_log], constraints=known_load(2.0, corners))
    assert front.is_consistent(inside.phi)
    low, high = np.array([-0.04, -0.08, 0.04]), np.array([0.08, 0.02, 0.2])
    assert (inside.com >= low - 1e-6).all()
    assert (inside.com <= high + 1e-6).all()
    with pytest.raises(InputError, match=facts("--shape", "ball:1", "cylinder")):
        known_load(2.0, "ball:1")


def test_a_tool_that_is_known_is_taken_off(run, loaded_log: Path) -> None:
    tool = phi_of_cuboid(0.5, [0.03, 0.03, 0.03], [0.0, 0.0, 0.05], np.eye(3))
    whole, rest = identify_payload(run, [loaded_log]), identify_payload(run, [loaded_log], tool=tool)
    assert rest.mass == pytest.approx(whole.mass - 0.5, abs=0.02)


def test_logs_are_read_as_was_asked(run, loaded_log: Path) -> None:
    """``--from`` and ``--to`` cut the loaded log, not that of the run."""
    (_, cut), (_, whole) = (
        *loads_of(run, [str(loaded_log)], PayloadSettings(from_s=1.0, to_s=5.0)),
        *loads_of(run, [str(loaded_log)], PayloadSettings()),
    )
    for load, length in ((cut, 4.0), (whole, 6.0)):
        time = load.residuals[0][0]
        assert length - 1.0 < time[-1] - time[0] <= length  # the filter drops rows at both ends
    assert cut.mass == pytest.approx(2.0, rel=0.1)
    *_, last = online_loads_of(run, [str(loaded_log)], PayloadSettings(to_s=3.0))
    assert last.time_s < 3.0


def test_gains_widen_the_interval(run, loaded_log: Path) -> None:
    sure = identify_payload(run, [loaded_log])
    unsure = identify_payload(run, [loaded_log], gain_sigma=0.1)
    assert sure.gain_sigma == 0.0
    assert unsure.sigma[0] == pytest.approx(np.hypot(sure.sigma[0], 0.1 * sure.mass), rel=1e-6)


def test_what_the_run_does_not_know_widens_the_interval(run, loaded_log: Path) -> None:
    """As for a load found by least squares on base values that are a little off: by the same factor."""
    load = identify_payload(run, [loaded_log])
    certain = replace(run, estimate=replace(run.estimate, covariance=np.zeros_like(run.estimate.covariance)))
    sure = identify_payload(certain, [loaded_log])
    assert sure.phi == pytest.approx(load.phi, rel=1e-9)
    assert (load.sigma > sure.sigma).all()
    twice = replace(run, estimate=replace(run.estimate, covariance=4.0 * run.estimate.covariance))
    more = identify_payload(twice, [loaded_log]).sigma ** 2 - sure.sigma**2
    np.testing.assert_allclose(more, 4.0 * (load.sigma**2 - sure.sigma**2), rtol=1e-6)


@pytest.mark.slow
def test_intervals_hold_over_runs_and_logs(tmp_path: Path) -> None:
    """Twelve runs, each from its own noise, and twelve loaded logs: nine in ten intervals of mass and first moment hold the truth."""
    arm = demo_robot().only(["shoulder_yaw", "shoulder_pitch", "upper_arm_roll", "elbow"])
    write_urdf(arm, tmp_path / "arm.urdf")
    values = arm.parameters.values.copy()
    values[30:40] += LOAD
    heavy = arm.with_parameters(arm.parameters.with_values(values))
    settings = Settings(method="wls", friction="linear", cutoff_hz=20.0, signal_band_hz=60.0, velocity="logged")
    held = []
    for seed in range(12):
        logs = []
        for k, robot in enumerate((arm, heavy)):
            motion = random_fourier(robot, 8.0, 4, seed=2 * seed + k).samples(250.0)
            tau = inverse_dynamics(robot, motion.position, motion.velocity, motion.acceleration)
            tau = tau + 0.5 * np.random.default_rng(2 * seed + k).normal(size=tau.shape)
            log = Recording(motion.time, motion.position, robot.joint_names, velocity=motion.velocity, torque=tau)
            logs.append(Path(write_recording(log, tmp_path / f"{seed}{k}.parquet")))
        load = identify_payload(identify(tmp_path / "arm.urdf", logs[0], settings), [logs[1]])
        low, high = load.interval()[:4].T
        held.append((low <= LOAD[:4]) & (LOAD[:4] <= high))
    assert np.mean(held) >= 0.85, np.mean(held, axis=0)


def test_no_load_is_said(run, bench: Bench, tmp_path: Path) -> None:
    motion = random_fourier(bench.truth, 6.0, 4, seed=6).samples(250.0)
    log = write_recording(simulate(bench.truth, motion, rate_hz=250.0, seed=6).recording, tmp_path / "free.parquet")
    nothing = identify_payload(run, [log])
    assert nothing.mass < 0.1
    assert any("noise" in warning for warning in nothing.warnings)


def test_a_load_on_the_wrong_frame_is_a_warning(run, loaded_log: Path) -> None:
    """On a link before the one that carries it the load explains much of the torque, but not all, and its mass does not show."""
    wrong = identify_payload(run, [loaded_log], run.robot.links[1])
    own = run.identification.relative_error
    assert wrong.relative_error_with > 2.0 * own
    frame, mass = wrong.warnings
    assert f"{100.0 * wrong.relative_error_with:.1f} % of the torque stay unexplained, {100.0 * own:.1f} %" in frame
    assert "--frame" in frame
    assert "not determined" in mass
    assert "--mass" in mass


def test_a_bad_run_is_named_as_the_cause(run, loaded_log: Path) -> None:
    """Where the run leaves as much as the load does, the load is not blamed."""
    body = identify_payload(run, [loaded_log])
    poor = replace(run, identification=replace(run.identification, relative_error=0.06))
    (text,) = _warnings(poor, body, 0.2, 0.07)
    assert re.search(facts("7.0 %", "6.0 %", "identify it again"), text)
    (text,) = _warnings(run, body, 0.2, 0.07)
    assert "--frame" in text
    assert _warnings(poor, body, 0.2, 0.04) == ()


def test_a_robot_with_fingers_asks_for_the_frame() -> None:
    """Two bodies at the end: a load on one finger is not what is meant."""
    arm = demo_robot()
    last = arm.joints[-1]
    finger = replace(last, name="finger", parent=len(arm.joints) - 2)
    bodies = np.vstack([arm.parameters.inertials, 0.1 * arm.parameters.inertials[-1:]])
    hand = make_robot("hand", [*arm.joints, finger], bodies)
    with pytest.raises(InputError, match=facts("2 links", "--frame", hand.links[-1], hand.links[-2])):
        frame_named(hand)
    assert frame_named(hand, hand.links[-2]).body == len(arm.joints) - 1


def test_bad_input_is_said(run, bench: Bench, loaded_log: Path) -> None:
    with pytest.raises(InputError, match="unknown frame 'palm'"):
        identify_payload(run, [loaded_log], "palm")
    with pytest.raises(InputError, match="same content"):
        identify_payload(run, [bench.log])
