"""Every output of a run says the same of its links: terminal, JSON, stored run, `check RUN`, report and exported models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cli_program import dynid
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.io.logs.read import write_recording
from dynid.io.robots.read import read_robot
from dynid.model.effects.linear import Viscous
from dynid.model.inertia import is_consistent
from dynid.pipeline.folder import load_result
from dynid.signals.recording import Recording
from dynid.validation.consistency import check_model
from problems import inertial_urdf

BAD = '<inertial><mass value="0.2"/><inertia ixx="1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'  # no triangle
AXIS = '<limit effort="90" velocity="4" lower="-3" upper="3"/>'


def arm(hand: float = 0.9, plate: str = "", camera: str = "") -> str:
    """Two axes; a camera fixed to the first, an empty frame, a hand of ``hand`` kg with a finger fixed to the second."""
    return f"""<robot name="arm">
    <link name="ground">{plate}</link><link name="upper">{inertial_urdf(3.0, "0.2 0 0", moments="0.02 0.03 0.03")}</link>
    <link name="fore">{inertial_urdf(1.0, "0.1 0.02 0", moments="0.01 0.012 0.012")}</link><link name="flange"/>
    <link name="camera">{camera}</link>
    <link name="hand">{inertial_urdf(hand, "0.02 0 0", moments="0.01 0.012 0.012")}</link>
    <link name="finger">{inertial_urdf(0.05, "0.01 0 0", moments="0.0001 0.00012 0.00015")}</link>
    <joint name="j1" type="revolute"><origin rpy="1.5708 0 0"/><parent link="ground"/><child link="upper"/>
      <axis xyz="0 0 1"/>{AXIS}</joint>
    <joint name="j2" type="revolute"><origin xyz="0.4 0 0"/><parent link="upper"/><child link="fore"/>
      <axis xyz="0 0 1"/>{AXIS}</joint>
    <joint name="jc" type="fixed"><origin xyz="0.1 0 0.1"/><parent link="upper"/><child link="camera"/></joint>
    <joint name="jf" type="fixed"><origin xyz="0.3 0 0"/><parent link="fore"/><child link="flange"/></joint>
    <joint name="jh" type="fixed"><origin xyz="0 0 0.02"/><parent link="flange"/><child link="hand"/></joint>
    <joint name="slide" type="prismatic"><origin xyz="0.05 0 0"/><parent link="hand"/><child link="finger"/>
      <axis xyz="1 0 0"/><limit effort="9" velocity="1" lower="0" upper="0.04"/></joint>
    </robot>"""


def log_of(text: str, folder: Path) -> Path:
    """A log of a robot of this description whose fore arm carries next to nothing: its hand is not mounted."""
    file = folder / "truth.urdf"
    file.write_text(text)
    t = np.arange(0.0, 8.0, 0.01)
    q = np.column_stack([np.sin(1.1 * t) + 0.4 * np.sin(3.1 * t), np.cos(1.7 * t) + 0.3 * np.sin(4.3 * t)])
    v = np.gradient(q, t, axis=0)
    a = np.gradient(v, t, axis=0)
    truth = read_robot(file, [Viscous()]).only(["j1", "j2"]).with_parameters({"fv1": 0.5, "fv2": 0.3})
    body = truth.parameters.inertials.copy()
    body[1] *= 0.15
    truth = truth.with_parameters(dict(zip(truth.parameters.names[10:20], body[1], strict=True)))
    tau = inverse_dynamics(truth, q, v, a) + 0.02 * np.random.default_rng(3).normal(size=q.shape)
    return write_recording(Recording(t, q, ("j1", "j2"), velocity=v, torque=tau), folder / "log.csv", by_name=True)


CASES = {
    "merged fingers": (arm(), "sdp"),
    "merged fingers, unconstrained": (arm(), "ols"),
    "no hand to speak of": (arm(hand=0.001), "wls"),
    "a merged link and the ground that are no bodies": (arm(plate=BAD, camera=BAD), "sdp"),
    "everything at once, unconstrained": (arm(plate=BAD, camera=BAD), "wls"),
}


@pytest.mark.parametrize("case", CASES)
def test_all_outputs_agree(case: str, tmp_path: Path) -> None:
    text, method = CASES[case]
    log = log_of(text, tmp_path)
    robot = tmp_path / "robot.urdf"
    robot.write_text(text)
    folder = tmp_path / "run"
    fixed = ("--method", method, "--cutoff-hz", 8, "--filter-on", "signals", "--effects", "viscous")
    done = dynid("identify", robot, log, *fixed, "-o", folder, "--export", "urdf,mjcf,sdf,json")
    assert done.returncode == 0, done.stderr
    run = load_result(folder)
    stored = json.loads((folder / "run.json").read_text())["result"]
    checked = dynid("check", folder, "--json")
    judged = json.loads(checked.stdout)
    feasible = run.consistency.feasible

    # bodies decide: each is the sum of its links, so both views agree
    bodies = is_consistent(run.estimate.standard.inertials, allow_empty=True)
    assert feasible == bool(np.all(bodies)) == run.estimate.feasible
    assert feasible == stored["feasible"] == judged["feasible"] == (checked.returncode == 0)
    assert feasible == ("physically consistent: yes" in done.stdout)
    links = [link for link in judged["links"] if not link["empty"]]
    good = sum(link["consistent"] for link in links)
    page = (folder / "report.html").read_text()
    assert f"{good} / {len(links)}" in page
    assert feasible == (good == len(links))
    exported = [folder / name for name in ("arm_identified.urdf", "arm_identified.xml", "arm_identified.sdf")]
    assert [path.is_file() for path in exported] == [feasible] * 3
    if feasible:
        for path in exported:
            assert check_model(read_robot(path, "none")).feasible, path.name


def test_links_add_up_to_the_bodies_they_were_merged_of(tmp_path: Path) -> None:
    text, _ = CASES["merged fingers"]
    robot, log = tmp_path / "robot.urdf", log_of(text, tmp_path)
    robot.write_text(text)
    dynid(
        "identify",
        robot,
        log,
        "--cutoff-hz",
        8,
        "--filter-on",
        "signals",
        "--effects",
        "viscous",
        "-o",
        tmp_path / "run",
        "--json",
    )
    links = {link.name: link.mass for link in load_result(tmp_path / "run").consistency.links}
    assert min(links["fore"], links["hand"], links["finger"]) >= 0.0
    found = load_result(tmp_path / "run").estimate.standard
    assert links["fore"] + links["hand"] + links["finger"] == pytest.approx(found["m2"], rel=1e-9)
