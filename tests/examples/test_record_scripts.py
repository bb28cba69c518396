"""The recording scripts of ``examples/record``, played on stand-ins for the vendors' packages; their logs are read by dynid."""

from __future__ import annotations

import importlib
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.arrays import Array
from dynid.excitation.motion_files import write_motion
from dynid.excitation.shapes import random_fourier
from dynid.excitation.trajectories import FourierTrajectory
from dynid.io.logs.layout import PRESETS
from dynid.model.robot import Robot
from messages import facts

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "record"
CENTRE = np.array([0.1, -0.3, 0.2, -1.2, 0.1, 1.0, -0.2])  # inside the ranges of all robots here
#: Findings that tell of a wrong unit, side, sign, channel or clock.
UNITS = {
    "current_only", "degrees", "drive_gains", "external_torque", "gravity_free", "joint_names", "joint_order", "time_unit",
    "torque_lag", "torque_scale", "torque_sign", "velocity_lag", "velocity_mismatch", "velocity_scale", "velocity_unrelated",
    "jitter", "gaps", "repeated_rows", "dropped_rows", "no_torque", "wrapped_angle", "position_limit",
}  # fmt: skip


@dataclass(frozen=True)
class Stage:
    """A robot, a motion for it, and what an ideal robot measures while it plays."""

    robot: Robot
    trajectory: FourierTrajectory

    def measured(self, seconds: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and torque at times from the start; at rest outside the motion."""
        inside = np.clip(seconds, 0.0, self.trajectory.duration_s)
        moving = ((seconds > 0.0) & (seconds < self.trajectory.duration_s))[:, None]
        q = self.trajectory.derivative(inside, 0)
        v, a = (np.where(moving, self.trajectory.derivative(inside, order), 0.0) for order in (1, 2))
        return q, v, dynid.inverse_dynamics(self.robot, q, v, a)


def stage_of(robot: Robot) -> Stage:
    motion = random_fourier(robot, period_s=6.0, harmonics=4, seed=3, at_rest=True)
    t = np.linspace(0.0, 6.0, 601)
    size = np.abs(motion.derivative(t, 1)).max(axis=0)
    small = motion.scaled(0.9 / size)
    offset = CENTRE[: robot.n_joints] - (small.derivative(t, 0).mean(axis=0) - small.offset)
    return Stage(robot, replace(small, offset=offset))


def arm() -> Robot:
    """Without rotor inertia, which the nominal torque of the data check leaves out."""
    return dynid.demo_robot(effects=["viscous", "coulomb", "offset"])


@pytest.fixture(scope="module")
def seven() -> Stage:
    return stage_of(arm())


@pytest.fixture(scope="module")
def six() -> Stage:
    robot = arm()
    return stage_of(robot.only(robot.joint_names[:6]))


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a script as it is run: with its folder first on the path."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in ("playback", "ur_record", "ros2_record"):
        sys.modules.pop(name, None)


def say(monkeypatch: pytest.MonkeyPatch, answer: str = "yes\n") -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))


def assert_units_are_right(recording: dynid.Recording, robot: Robot) -> None:
    check = dynid.check_recording(recording, robot)
    assert not UNITS & set(check.codes), [finding.what for finding in check if finding.code in UNITS]


# -- playback ----


def test_the_motion_of_excite_is_read_and_interpolated(scripts: Any, seven: Stage, tmp_path: Path) -> None:
    playback = scripts("playback")
    path = write_motion(seven.trajectory, tmp_path / "traj.csv", seven.robot.joint_names, rate_hz=250.0)
    motion = playback.read_motion(path)
    assert motion.n_joints == 7
    assert motion.duration_s == pytest.approx(6.0)
    t = np.linspace(0.0, 6.0, 4001)
    position, velocity = motion.at(t)
    np.testing.assert_allclose(position, seven.trajectory.derivative(t, 0), atol=1e-8)
    np.testing.assert_allclose(velocity, seven.trajectory.derivative(t, 1), atol=1e-5)
    before, after = motion.at([-1.0, 99.0])[0]
    np.testing.assert_allclose([before, after], motion.position[[0, -1]], atol=1e-12)


def test_what_must_not_be_played_is_refused(scripts: Any, seven: Stage, tmp_path: Path) -> None:
    playback = scripts("playback")
    motion = playback.read_motion(write_motion(seven.trajectory, tmp_path / "traj.csv", seven.robot.joint_names))
    motion.check(7, 1.5)
    with pytest.raises(playback.RefusedError, match="motion has 7 joints, the robot has 6"):
        motion.check(6, 1.5)
    with pytest.raises(playback.RefusedError, match=facts("0.9", "rad/s", "0.5", "joint")):
        motion.check(7, 0.5)
    with pytest.raises(playback.RefusedError, match=facts("4", "joint")):
        motion.check(7, 1.5, q_min=[-9, -9, -9, -0.5, -9, -9, -9])
    cut = playback.Motion(motion.time[:3000], motion.position[:3000], motion.velocity[:3000])
    with pytest.raises(playback.RefusedError, match="at its ends, expected rest"):
        cut.check(7, 1.5)
    torn = motion.position.copy()
    torn[4000:] += 0.1
    with pytest.raises(playback.RefusedError, match=r"jumps by 0\.\d+ rad at 3\.999 s"):
        playback.Motion(motion.time, torn, motion.velocity).check(7, 1.5)
    (tmp_path / "other.csv").write_text("t,x1\n0,1\n1,2\n")
    with pytest.raises(playback.RefusedError, match=facts("q1", "dq1", "x1", "column")):
        playback.read_motion(tmp_path / "other.csv")
    with pytest.raises(playback.RefusedError, match=r"joint 2 is 0\.6 rad from the start"):
        playback.check_start([0.0, 0.6], [0.0, 0.0], near=0.5)
    with pytest.raises(playback.RefusedError, match="is there already"):
        playback.check_new(tmp_path / "other.csv")


def test_the_approach_is_slow_and_ends_at_the_start(scripts: Any) -> None:
    playback = scripts("playback")
    way = playback.approach([0.0, 0.4], [0.1, -0.4], speed=0.2)
    np.testing.assert_allclose(way.position[[0, -1]], [[0.0, 0.4], [0.1, -0.4]], atol=1e-12)
    assert np.abs(way.velocity).max() == pytest.approx(0.2, rel=1e-3)
    way.check(2, max_speed=0.2001)
    np.testing.assert_allclose(np.gradient(way.position, way.time, axis=0)[1:-1], way.velocity[1:-1], atol=1e-3)


def test_only_yes_moves_a_robot(scripts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    playback = scripts("playback")
    for answer in ("", "y\n", "no\n"):
        say(monkeypatch, answer)
        with pytest.raises(playback.RefusedError, match="not confirmed"):
            playback.confirm("?")


# -- Universal Robots ----


class Controller:
    """A UR controller: packages on the exchange, and a port that takes programs."""

    def __init__(self, stage: Stage, rate_hz: float, gains: Array, at: Array) -> None:
        t = np.arange(0.0, stage.trajectory.duration_s, 1.0 / rate_hz)
        q, v, tau = stage.measured(t)
        self.rate_hz, self.gains = rate_hz, gains
        self.rows = list(zip(q, v, tau, strict=True))
        self.at, self.clock, self.programs = at, 1000.0, list[str]()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.started = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()
        self.played = 0
        self.asked: list[str] = []

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as sent:
                self.programs.append(sent.read().decode())
            self.started.set()

    def package(self) -> SimpleNamespace:
        self.clock += 1.0 / self.rate_hz
        running = self.started.is_set() and self.played < len(self.rows)
        rest = (self.at, np.zeros(6), np.zeros(6))
        q, v, tau = self.rows[self.played] if running else rest
        self.played += running
        values = {
            "timestamp": self.clock, "actual_q": q, "actual_qd": v, "actual_current": tau / self.gains, "target_q": q, "target_qd": v,
            "target_moment": tau, "joint_temperatures": np.full(6, 30.0), "actual_current_as_torque": tau, "speed_scaling": 1.0,
            "payload": 0.0,
            "runtime_state": 2 if running else 1,
        }  # fmt: skip
        return SimpleNamespace(**{name: values[name] for name in self.asked})


def install_rtde(monkeypatch: pytest.MonkeyPatch, controller: Controller) -> None:
    class RTDE:
        def __init__(self, hostname: str, port: int = 30004) -> None:
            self.calls, self.started = 0, False

        def connect(self) -> None: ...

        def disconnect(self) -> None:
            self.started = False

        def send_output_setup(self, variables: list[str], types: tuple[()] = (), frequency: float = 125) -> bool:
            controller.asked = list(variables)
            return frequency == controller.rate_hz

        def send_start(self) -> bool:
            self.started = True
            return True

        def receive_buffered(self, binary: bool = False, buffer_limit: int | None = None) -> Any:
            assert self.started
            self.calls += 1
            return None if self.calls % 5 == 0 else controller.package()

    package, module = ModuleType("rtde"), ModuleType("rtde.rtde")
    module.RTDE = RTDE  # type: ignore[attr-defined]
    package.rtde = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rtde", package)
    monkeypatch.setitem(sys.modules, "rtde.rtde", module)


GAINS = np.array([12.0, 11.0, 9.0, 7.0, 6.5, 6.0])


def ur_files(stage: Stage, folder: Path) -> tuple[str, str]:
    files = [
        write_motion(stage.trajectory, folder / f"traj{suffix}", stage.robot.joint_names, 500.0)
        for suffix in (".csv", ".script")
    ]
    return str(files[0]), str(files[1])


def test_ur_log_is_what_the_preset_reads(
    scripts: Any, six: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ur_record = scripts("ur_record")
    controller = Controller(six, 500.0, GAINS, six.trajectory.derivative(0.0, 0)[0] + 0.008)
    install_rtde(monkeypatch, controller)
    monkeypatch.setattr(ur_record, "packages", _impatient(ur_record.packages))
    files, log = ur_files(six, tmp_path), tmp_path / "run.csv"
    say(monkeypatch)
    ur_record.main(["127.0.0.1", *files, "-o", str(log), "--torque", "--port", str(controller.port)])
    controller.server.close()
    assert controller.programs == [Path(files[1]).read_text()]
    assert f"{len(controller.rows)} rows" in capsys.readouterr().out
    header = log.read_text().split("\n", 1)[0].split(",")
    assert {f"{name}_{j}" for name in ("actual_q", "actual_qd", "actual_current", "target_q") for j in range(6)} <= set(
        header
    )

    current = dynid.read_recording(log, six.robot, preset="rtde")
    assert isinstance(current, dynid.Recording)
    assert set(current.quantities) == {"position", "velocity", "current", "reference_position"}
    assert current.rate_hz == pytest.approx(500.0, rel=1e-6)
    q, _, tau = six.measured(current.time - current.time[0])
    np.testing.assert_allclose(current.position, q, atol=1e-9)
    np.testing.assert_allclose(current.current * GAINS, tau, atol=1e-6)
    assert "current_only" in dynid.check_recording(current, six.robot).codes  # amperes alone are named as such
    assert_units_are_right(dynid.read_recording(log, six.robot, preset="rtde", drive_gains=GAINS), six.robot)

    page = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
    (tmp_path / "torque.toml").write_text(re.findall(r"```toml\n(.*?)```", page, flags=re.S)[0])
    torque = dynid.read_recording(log, six.robot, mapping=tmp_path / "torque.toml")
    np.testing.assert_allclose(torque.torque, tau, atol=1e-6)
    assert_units_are_right(torque, six.robot)


def _impatient(packages: Any) -> Any:
    return lambda connection: packages(connection, 0.5)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"far": 0.02}, r"is 0\.02 rad from the start.*--home"),
        ({"options": ["--max-speed", "0.3"]}, "allowed are 0.3"),
        ({"answer": "no\n"}, "not confirmed"),
        ({"options": ["--rate", "125"]}, "does not send"),
        ({"program": "def other():\n  movej([0, 0, 0, 0, 0, 0])\nend\n"}, "start elsewhere"),
    ],
)
def test_ur_refuses_before_it_sends(
    scripts: Any, six: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], sentence: str
) -> None:
    ur_record = scripts("ur_record")
    controller = Controller(six, 500.0, GAINS, six.trajectory.derivative(0.0, 0)[0] + change.get("far", 0.0))
    install_rtde(monkeypatch, controller)
    motion, program = ur_files(six, tmp_path)
    if "program" in change:
        Path(program).write_text(change["program"])
    say(monkeypatch, change.get("answer", "yes\n"))
    arguments = ["127.0.0.1", motion, program, "-o", str(tmp_path / "run.csv"), "--port", str(controller.port)]
    with pytest.raises(SystemExit, match=sentence):
        ur_record.main(arguments + change.get("options", []))
    controller.server.close()
    assert controller.programs == []
    assert not (tmp_path / "run.csv").exists()


def test_ur_stops_the_program_when_the_robot_falls_silent(
    scripts: Any, six: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ur_record = scripts("ur_record")
    controller = Controller(six, 500.0, GAINS, six.trajectory.derivative(0.0, 0)[0])
    install_rtde(monkeypatch, controller)
    whole = controller.package
    monkeypatch.setattr(controller, "package", lambda: None if controller.played > 500 else whole())
    monkeypatch.setattr(ur_record, "packages", _impatient(ur_record.packages))
    say(monkeypatch)
    with pytest.raises(SystemExit, match=r"no package for 0\.5 s"):
        ur_record.main(
            ["127.0.0.1", *ur_files(six, tmp_path), "-o", str(tmp_path / "run.csv"), "--port", str(controller.port)]
        )
    for _ in range(100):
        if len(controller.programs) == 2:
            break
        threading.Event().wait(0.02)
    controller.server.close()
    assert "stopj" in controller.programs[1]


# -- ROS 2 ----


@dataclass
class Ros:
    """What stands in for a running ros2_control."""

    names: list[str]
    position: Array
    goals: list[Any]
    error_code: int = 0


def install_ros(monkeypatch: pytest.MonkeyPatch, ros: Ros) -> None:
    class Message:
        def __init__(self, **fields: Any) -> None:
            self.__dict__.update(fields)

    class Action:
        class Goal(Message): ...

        class Result:
            SUCCESSFUL = 0

    class Handle:
        accepted = True

        def get_result_async(self) -> SimpleNamespace:
            result = SimpleNamespace(error_code=ros.error_code, error_string="path tolerance violated")
            return SimpleNamespace(result=lambda: SimpleNamespace(result=result))

    class ActionClient:
        def __init__(self, node: Any, kind: Any, name: str) -> None:
            assert name == "/joint_trajectory_controller/follow_joint_trajectory"

        def wait_for_server(self, timeout_sec: float) -> bool:
            return True

        def send_goal_async(self, goal: Any) -> SimpleNamespace:
            ros.goals.append(goal)
            ros.position = np.array(goal.trajectory.points[-1].positions)
            return SimpleNamespace(result=Handle)

    class Node:
        def create_subscription(self, kind: Any, topic: str, callback: Any, qos: Any) -> None:
            self.heard = callback

        def destroy_node(self) -> None: ...

    def spin_once(node: Node, timeout_sec: float) -> None:
        node.heard(SimpleNamespace(name=ros.names[::-1], position=ros.position[::-1]))  # the broadcaster's own order

    modules = {
        "rclpy": {"init": lambda: None, "shutdown": lambda: None, "create_node": lambda name: Node(), "spin_once": spin_once,
                      "spin_until_future_complete": lambda node, future: None},
        "rclpy.action": {"ActionClient": ActionClient},
        "rclpy.qos": {"qos_profile_sensor_data": object()},
        "control_msgs": {}, "control_msgs.action": {"FollowJointTrajectory": Action},
        "control_msgs.msg": {"JointTolerance": Message},
        "trajectory_msgs": {}, "trajectory_msgs.msg": {"JointTrajectory": Message, "JointTrajectoryPoint": Message},
        "builtin_interfaces": {}, "builtin_interfaces.msg": {"Duration": Message},
        "sensor_msgs": {}, "sensor_msgs.msg": {"JointState": Message},
    }  # fmt: skip
    for name, members in modules.items():
        module = ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)


#: `ros2 bag record -s mcap -o FOLDER TOPIC`: writes the bag when it is interrupted, as the recorder closes it.
FAKE_ROS2 = """#!{python}
import signal, sys, time
stop = []
signal.signal(signal.SIGINT, lambda *_: stop.append(1))
assert sys.argv[1:6] == ["bag", "record", "-s", "mcap", "-o"] and sys.argv[7:] == ["/joint_states"], sys.argv
import numpy as np
from pathlib import Path
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
states = np.load("{states}")
while not stop:
    time.sleep(0.01)
store, kind = get_typestore(Stores.ROS2_HUMBLE), "sensor_msgs/msg/JointState"
header, stamp_of = store.types["std_msgs/msg/Header"], store.types["builtin_interfaces/msg/Time"]
with Writer(Path(sys.argv[6]), version=9, storage_plugin=StoragePlugin.MCAP) as writer:
    connection = writer.add_connection("/joint_states", kind, typestore=store)
    for t, q, v, tau in zip(states["t"], states["q"], states["v"], states["tau"]):
        stamp = 1_700_000_000_000_000_000 + round(t * 1e9)
        message = store.types[kind](
            header=header(stamp=stamp_of(sec=stamp // 10**9, nanosec=stamp % 10**9), frame_id=""),
            name=list(states["names"][::-1]), position=q[::-1].copy(), velocity=v[::-1].copy(), effort=tau[::-1].copy(),
        )
        writer.write(connection, stamp, store.serialize_cdr(message, kind))
"""


@pytest.mark.slow
def test_ros_bag_is_what_dynid_reads(scripts: Any, seven: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rosbags")
    ros2_record = scripts("ros2_record")
    names = list(seven.robot.joint_names)
    start = seven.trajectory.derivative(0.0, 0)[0]
    ros = Ros(names, start + 0.008, [])
    install_ros(monkeypatch, ros)
    t = np.arange(0.0, 6.0, 0.004)
    q, v, tau = seven.measured(t)
    np.savez(tmp_path / "states.npz", t=t, q=q, v=v, tau=tau, names=np.array(names))
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "ros2"
    tool.write_text(FAKE_ROS2.format(python=sys.executable, states=tmp_path / "states.npz"))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    path = write_motion(seven.trajectory, tmp_path / "traj.yaml", names)
    say(monkeypatch)
    ros2_record.main([str(path), "-o", str(tmp_path / "run")])

    approach, motion = ros.goals
    np.testing.assert_allclose(approach.trajectory.points[0].positions, start + 0.008)
    np.testing.assert_allclose(approach.trajectory.points[-1].positions, start, atol=1e-9)
    speeds = np.array([point.velocities for point in approach.trajectory.points])
    assert np.abs(speeds).max() <= 0.2
    assert motion.trajectory.joint_names == names
    assert [tolerance.name for tolerance in motion.path_tolerance] == names
    stamps = [point.time_from_start for point in motion.trajectory.points]
    since = np.array([stamp.sec + 1e-9 * stamp.nanosec for stamp in stamps])
    np.testing.assert_allclose(
        [p.positions for p in motion.trajectory.points], seven.trajectory.derivative(since, 0), atol=1e-9
    )

    for log in (tmp_path / "run", tmp_path / "run" / "run.mcap"):
        recording = dynid.read_recording(log, seven.robot, preset="joint_states")
        np.testing.assert_allclose(recording.torque, tau, atol=1e-9)
        np.testing.assert_allclose(recording.position, q, atol=1e-9)
    assert_units_are_right(recording, seven.robot)


@pytest.mark.slow
def test_ros_refuses_a_robot_that_is_elsewhere_and_an_aborted_motion(
    scripts: Any, seven: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ros2_record = scripts("ros2_record")
    path = str(write_motion(seven.trajectory, tmp_path / "traj.yaml", seven.robot.joint_names))
    ros = Ros(list(seven.robot.joint_names), seven.trajectory.derivative(0.0, 0)[0] - 1.0, [])
    install_ros(monkeypatch, ros)
    with pytest.raises(SystemExit, match="1 rad from the start of the motion"):
        ros2_record.main([path, "-o", str(tmp_path / "run")])
    assert ros.goals == []
    ros.position, ros.error_code = ros.position + 1.0, -4
    say(monkeypatch)
    with pytest.raises(SystemExit, match=facts("-4", "motion")):
        ros2_record.main([path, "-o", str(tmp_path / "run")])
    ros.names[2] = "other"
    with pytest.raises(SystemExit, match="joint states lack upper_arm_roll"):
        ros2_record.main([path, "-o", str(tmp_path / "run")])


# -- C++ ----

#: Rows `q, dq, tau` that the stand-ins measure, one per cycle that plays.
MEASURED_HPP = """
#pragma once
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>
inline std::vector<std::vector<double>> measured(const char* variable) {
  std::vector<std::vector<double>> rows;
  std::ifstream file(std::getenv(variable));
  for (std::string line, cell; std::getline(file, line);) {
    std::vector<double> row;
    for (std::istringstream cells(line); std::getline(cells, cell, ',');) row.push_back(std::stod(cell));
    rows.push_back(row);
  }
  return rows;
}
"""

#: The part of libfranka's interface that the program uses, with the names and types of its headers; the robot tracks perfectly.
FRANKA_EXCEPTION = """
#pragma once
#include <stdexcept>
namespace franka { struct Exception : std::runtime_error { using std::runtime_error::runtime_error; }; }
"""
FRANKA_ROBOT = """
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <franka/exception.h>
#include "measured.hpp"
namespace franka {
class Duration {
 public:
  explicit Duration(uint64_t ms = 0) : ms_(ms) {}
  double toSec() const noexcept { return 1e-3 * ms_; }
  uint64_t toMSec() const noexcept { return ms_; }
 private:
  uint64_t ms_;
};
struct Finishable { bool motion_finished = false; };
struct JointPositions : Finishable {
  JointPositions(const std::array<double, 7>& values) noexcept : q(values) {}
  std::array<double, 7> q{};
};
inline JointPositions MotionFinished(JointPositions command) { command.motion_finished = true; return command; }
enum class ControllerMode { kJointImpedance, kCartesianImpedance };
enum class RealtimeConfig { kEnforce, kIgnore };
constexpr double kDefaultCutoffFrequency = 100.0;
struct RobotState {
  std::array<double, 7> q{}, q_d{}, dq{}, tau_J{}, tau_J_d{}, tau_ext_hat_filtered{};
  double m_total = 0.0, control_command_success_rate = 1.0;
  Duration time{};
};
class Robot {
 public:
  explicit Robot(const std::string&, RealtimeConfig = RealtimeConfig::kEnforce, size_t = 50) : rows_(measured("MEASURED")) {
    const auto start = measured("START");
    for (int j = 0; j < 7; ++j) state_.q[j] = state_.q_d[j] = start[0][j];
  }
  void setCollisionBehavior(const std::array<double, 7>&, const std::array<double, 7>&, const std::array<double, 7>&,
                            const std::array<double, 7>&, const std::array<double, 6>&, const std::array<double, 6>&,
                            const std::array<double, 6>&, const std::array<double, 6>&) {}
  RobotState readOnce() { return state_; }
  void control(std::function<JointPositions(const RobotState&, Duration)> callback, ControllerMode = ControllerMode::kJointImpedance,
               bool = true, double = kDefaultCutoffFrequency) {
    const bool playing = ++calls_ == 2;  // the first loop is the approach
    for (size_t k = 0;; ++k) {
      state_.time = Duration(500000 + clock_++);
      if (playing) {
        const auto& row = rows_.at(k < rows_.size() ? k : rows_.size() - 1);
        for (int j = 0; j < 7; ++j) state_.dq[j] = row[7 + j], state_.tau_J[j] = row[14 + j];
      }
      const JointPositions command = callback(state_, Duration(k == 0 ? 0 : 1));
      for (int j = 0; j < 7; ++j) {
        if (std::abs(command.q[j] - state_.q[j]) > 2.2e-3) throw Exception("joint velocity limits violated");
        state_.q[j] = state_.q_d[j] = command.q[j];
      }
      if (command.motion_finished) return;
    }
  }
 private:
  std::vector<std::vector<double>> rows_;
  RobotState state_{};
  int calls_ = 0;
  uint64_t clock_ = 0;
};
}  // namespace franka
"""

#: The part of KUKA's FRI client SDK that the program uses.
FRI_CLIENT = """
#pragma once
#include <array>
#include "measured.hpp"
namespace KUKA { namespace FRI {
enum ESessionState { IDLE = 0, MONITORING_WAIT = 1, MONITORING_READY = 2, COMMANDING_WAIT = 3, COMMANDING_ACTIVE = 4 };
class LBRState {
 public:
  enum { NUMBER_OF_JOINTS = 7 };
  double getSampleTime() const { return 0.005; }
  ESessionState getSessionState() const { return COMMANDING_ACTIVE; }
  unsigned int getTimestampSec() const { return 1700000000u + cycle / 200; }
  unsigned int getTimestampNanoSec() const { return (cycle % 200) * 5000000u; }
  const double* getMeasuredJointPosition() const { return position.data(); }
  const double* getMeasuredTorque() const { return torque.data(); }
  const double* getExternalTorque() const { return external.data(); }
  const double* getIpoJointPosition() const { return ipo.data(); }
  unsigned int cycle = 0;
  std::array<double, 7> position{}, torque{}, external{}, ipo{};
};
class LBRCommand {
 public:
  void setJointPosition(const double* values) { for (int j = 0; j < 7; ++j) position[j] = values[j]; }
  std::array<double, 7> position{};
};
class IClient { public: virtual ~IClient() {} };
class LBRClient : public IClient {
 public:
  virtual void onStateChange(ESessionState, ESessionState) {}
  virtual void monitor() {}
  virtual void waitForCommand() {}
  virtual void command() {}
  const LBRState& robotState() const { return state; }
  LBRCommand& robotCommand() { return command_message; }
  LBRState state;
  LBRCommand command_message;
};
} }
"""
FRI_CONNECTION = (
    "#pragma once\nnamespace KUKA { namespace FRI { class IConnection {}; class UdpConnection : public IConnection {}; } }\n"
)
FRI_APPLICATION = """
#pragma once
#include <cmath>
#include <stdexcept>
#include "friLBRClient.h"
#include "friUdpConnection.h"
namespace KUKA { namespace FRI {
class ClientApplication {
 public:
  ClientApplication(IConnection&, IClient& client) : client_(dynamic_cast<LBRClient&>(client)), rows_(measured("MEASURED")) {}
  bool connect(int port, const char* = nullptr) {
    const auto start = measured("START");
    for (int j = 0; j < 7; ++j) client_.state.position[j] = client_.state.ipo[j] = start[0][j];
    return port == 30200;
  }
  void disconnect() {}
  bool step() {
    auto& state = client_.state;
    for (int j = 0; j < 7; ++j) state.torque[j] = rows_.at(state.cycle < rows_.size() ? state.cycle : rows_.size() - 1)[14 + j];
    client_.command();
    for (int j = 0; j < 7; ++j) {
      if (std::abs(client_.command_message.position[j] - state.position[j]) > 5e-3 * 1.2) throw std::runtime_error("too fast");
      state.position[j] = client_.command_message.position[j];
    }
    ++state.cycle;
    return true;
  }
 private:
  LBRClient& client_;
  std::vector<std::vector<double>> rows_;
};
} }
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the compiled programs, built with every warning an error."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler on this machine")
    folder = tmp_path_factory.mktemp("programs")
    (folder / "franka").mkdir()
    stubs = {
        "measured.hpp": MEASURED_HPP, "franka/exception.h": FRANKA_EXCEPTION, "franka/robot.h": FRANKA_ROBOT,
        "friLBRClient.h": FRI_CLIENT, "friUdpConnection.h": FRI_CONNECTION, "friClientApplication.h": FRI_APPLICATION,
    }  # fmt: skip
    for name, text in stubs.items():
        (folder / name).write_text(text)
    for name in ("franka_record", "kuka_fri_record"):
        command = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-isystem", str(folder)]
        done = subprocess.run(
            [*command, "-o", str(folder / name), str(FOLDER / f"{name}.cpp")], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    return folder


def run(
    program: Path, arguments: list[str], stage: Stage, folder: Path, at: Array, rows: Array, answer: str = "yes\n"
) -> Any:
    """A program on a stand-in that stands at ``at`` and measures at times ``rows`` of the motion, cycle by cycle."""
    np.savetxt(folder / "measured.csv", np.hstack(stage.measured(rows)), delimiter=",", fmt="%.17g")
    np.savetxt(folder / "start.csv", at[None], delimiter=",", fmt="%.17g")
    environment = os.environ | {"MEASURED": str(folder / "measured.csv"), "START": str(folder / "start.csv")}
    return subprocess.run(
        [str(program), *arguments], input=answer, capture_output=True, text=True, env=environment, check=False, timeout=60
    )


def header_of(preset: str, quantities: dict[str, str]) -> list[str]:
    """Columns of seven joints, each spelled as the preset spells it."""
    names = []
    for quantity, pattern in quantities.items():
        if quantity in PRESETS[preset].patterns:
            assert pattern in PRESETS[preset].patterns[quantity]
        names += [pattern.format(index=j) for j in range(7)]
    return names


def test_franka_log_is_what_the_preset_reads(programs: Path, seven: Stage, tmp_path: Path) -> None:
    motion, log = write_motion(seven.trajectory, tmp_path / "traj.csv", seven.robot.joint_names), tmp_path / "run.csv"
    start = seven.trajectory.derivative(0.0, 0)[0]
    # The robot is where it was told in the cycle before; the first cycle has no step.
    played = np.maximum(np.arange(6002) - 1, 0) * 1e-3
    done = run(programs / "franka_record", ["h", "panda", str(motion), str(log)], seven, tmp_path, start + 0.008, played)
    assert done.returncode == 0, done.stderr
    quantities = {
        "position": "state.q[{index}]", "reference_position": "state.q_d[{index}]", "velocity": "state.dq[{index}]",
        "torque": "state.tau_J[{index}]", "external_torque": "state.tau_ext_hat_filtered[{index}]", "": "state.tau_J_d[{index}]",
    }  # fmt: skip
    assert log.read_text().split("\n", 1)[0].split(",") == ["time", "success_rate", *header_of("libfranka", quantities)]
    recording = dynid.read_recording(log, seven.robot, preset="libfranka")
    assert recording.rate_hz == pytest.approx(1000.0)
    q, v, tau = seven.measured(np.maximum(recording.time - recording.time[0] - 1e-3, 0.0))
    np.testing.assert_allclose(recording.position, q, atol=1e-8)
    np.testing.assert_allclose(recording.velocity, v, atol=1e-9)
    np.testing.assert_allclose(recording.torque, tau, atol=1e-9)
    assert_units_are_right(recording, seven.robot)


def test_kuka_log_is_what_the_preset_reads(programs: Path, seven: Stage, tmp_path: Path) -> None:
    motion, log = write_motion(seven.trajectory, tmp_path / "traj.csv", seven.robot.joint_names, 200.0), tmp_path / "run.csv"
    start = seven.trajectory.derivative(0.0, 0)[0]
    # The approach takes 2 s, then half a second passes; each cycle sees what was told in the last.
    played = np.arange(2200) * 5e-3 - 2.0 - 0.5
    done = run(programs / "kuka_fri_record", [str(motion), str(log)], seven, tmp_path, start - 0.008, played)
    assert done.returncode == 0, done.stderr
    quantities = {
        "position": "measured_joint_position_{index}", "torque": "measured_torque_{index}", "external_torque": "external_torque_{index}",
        "reference_position": "commanded_joint_position_{index}",
    }  # fmt: skip
    assert log.read_text().split("\n", 1)[0].split(",") == [
        "time_stamp_sec",
        "time_stamp_nano_sec",
        *header_of("fri", quantities),
    ]
    recording = dynid.read_recording(log, seven.robot, preset="fri")
    assert recording.rate_hz == pytest.approx(200.0)
    assert recording.duration_s == pytest.approx(6.0, abs=0.02)
    residual = recording.torque - np.array([np.interp(recording.time, played - played[0] + _shift(recording, seven), column)
                                            for column in seven.measured(played)[2].T]).T  # fmt: skip
    assert np.abs(residual).max() < 1e-6
    assert_units_are_right(recording, seven.robot)


def _shift(recording: dynid.Recording, stage: Stage) -> float:
    """Time of the log at which the stand-in's first cycle lies: the log starts with the first cycle that plays."""
    first = int(np.searchsorted(np.cumsum(np.full(1000, 5e-3)), 2.0 + 0.5))  # cycles add up with their rounding
    return float(recording.time[0]) - first * 5e-3


@pytest.mark.parametrize(
    ("program", "before", "after", "speed"),
    [("franka_record", ["h", "panda"], [], []), ("kuka_fri_record", [], [], ["any", "30200"])],
)
def test_programs_refuse(
    programs: Path, seven: Stage, tmp_path: Path, program: str, before: list[str], after: list[str], speed: list[str]
) -> None:
    motion = str(write_motion(seven.trajectory, tmp_path / "traj.csv", seven.robot.joint_names, 250.0))
    start, log, rows = seven.trajectory.derivative(0.0, 0)[0], tmp_path / "run.csv", np.zeros(1)

    def refusal(at: Array, file: str = motion, more: list[str] = after, answer: str = "yes\n") -> str:
        done = run(programs / program, [*before, file, str(log), *more], seven, tmp_path, at, rows, answer)
        assert done.returncode == 1
        assert not log.exists() or log.read_text() == "old"
        return str(done.stderr)

    assert "from the start" in refusal(start + 0.02)
    assert "not confirmed" in refusal(start, answer="no\n")
    assert "faster than the speed that is allowed" in refusal(start, more=[*speed, "0.4"])
    wide = replace(seven.trajectory, offset=seven.trajectory.offset + 2.0)
    assert "leaves the robot's range" in refusal(
        start, str(write_motion(wide, tmp_path / "wide.csv", seven.robot.joint_names))
    )
    lines = Path(motion).read_text().splitlines(keepends=True)
    (tmp_path / "torn.csv").write_text("".join(lines[:400] + lines[500:]))
    assert "jumps" in refusal(start, str(tmp_path / "torn.csv"))
    (tmp_path / "short.csv").write_text("t,q1,dq1\n0,0,0\n1,0,0\n")
    assert "no column q2" in refusal(start, str(tmp_path / "short.csv"))
    log.write_text("old")
    assert "is there already" in refusal(start)


# -- the page ----


def test_commands_of_the_page_exist() -> None:
    from typer.main import get_command

    from cli_program import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    page = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"```sh\n(.*?)```", page, flags=re.S)).replace("\\\n", " ")
    lines = re.findall(r"^dynid (.*)$", blocks, flags=re.M)
    assert len(lines) >= 12
    for line in lines:
        words = line.split("#")[0].split()
        options = {option for parameter in commands[words[0]].params for option in parameter.opts}
        assert {word for word in words if word.startswith("-") and not word[1:2].isdigit()} <= options, line
    for name in re.findall(r"examples/record/(\w+\.\w+)", page):
        assert (FOLDER / name).is_file(), name


def test_presets_of_the_page_are_those_of_the_readers() -> None:
    page = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
    assert set(re.findall(r"--preset (\w+)", page)) == set(PRESETS)


def test_mapping_files_of_the_page_read_what_they_describe(six: Stage, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
    _, anything = re.findall(r"```toml\n(.*?)```", page, flags=re.S)  # the first one is read with the UR log
    (tmp_path / "log.toml").write_text(anything)
    t = np.arange(0.0, 6.0, 0.005)
    q, _, tau = six.measured(t)
    gains = np.array([float(value) for value in re.search(r"drive_gains = \[(.*)\]", anything)[1].split(",")])  # type: ignore[index]
    columns = {"stamp": 1e3 * t} | {f"axis_{j + 1}_angle": np.degrees(q[:, j]) for j in range(6)}
    columns |= {f"axis_{j + 1}_current": 1e3 * tau[:, j] / gains[j] for j in range(6)}
    table = np.column_stack(list(columns.values()))
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
    recording = dynid.read_recording(tmp_path / "log.csv", six.robot, mapping=tmp_path / "log.toml")
    np.testing.assert_allclose(recording.position, q, atol=1e-9)
    np.testing.assert_allclose(recording.torque, tau, atol=1e-9)


def test_efforts_in_amperes_become_torque(six: Stage, tmp_path: Path) -> None:
    t = np.arange(0.0, 6.0, 0.005)
    q, _, tau = six.measured(t)
    columns = {"time": t} | {f"position.{name}": q[:, j] for j, name in enumerate(six.robot.joint_names)}
    columns |= {f"effort.{name}": tau[:, j] / GAINS[j] for j, name in enumerate(six.robot.joint_names)}
    table = np.column_stack(list(columns.values()))
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
    mapping = {"preset": "joint_states", "units": {"torque": "A"}}
    recording = dynid.read_recording(tmp_path / "log.csv", six.robot, mapping=mapping, drive_gains=GAINS)
    np.testing.assert_allclose(recording.torque, tau, atol=1e-9)
