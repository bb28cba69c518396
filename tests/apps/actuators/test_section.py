"""The page of an actuator identification: values, models, rollouts and what cannot be told apart."""

from __future__ import annotations

from pathlib import Path

from dynid.apps.actuators.identify import identify_actuators
from dynid.apps.actuators.options import ActuatorSettings
from dynid.apps.actuators.section import report_actuators
from dynid.io.logs.read import write_recording
from dynid.io.robots.urdf_write import write_urdf
from dynid.signals.recording import Recording
from position_logs import position_log, small_arm, true_model


def test_the_page_holds_every_value_and_names_what_is_inseparable(tmp_path: Path) -> None:
    robot, log = small_arm(), position_log(true_model(small_arm()), seconds=3.0)
    write_urdf(robot.with_effects(()), tmp_path / "arm.urdf")
    recording = Recording(log.time, log.position, robot.joint_names, reference_position=log.command.values)
    write_recording(recording, tmp_path / "log.csv")
    run = identify_actuators(tmp_path / "arm.urdf", tmp_path / "log.csv", ActuatorSettings(method="linear", limit=(1e6,)))
    page = report_actuators(
        run, tmp_path / "out" / "report.html", command="dynid actuators", files=["robot.xml"]
    ).read_text()
    for joint in range(3):
        found = run.value(joint, "Ia")
        assert found is not None
        assert f"{found[0]:.4g} ± " in page
    assert run.separability.inseparable
    for names in run.separability.inseparable:
        assert f"{', '.join(names)} cannot be told apart" in page
    for one in run.compared:
        assert f"{1e3 * one.judged:.2f}" in page
    assert "robot.xml" in page
