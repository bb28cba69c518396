"""Play an exciting motion through ros2_control and record ``/joint_states`` in an MCAP bag.

    dynid excite arm.urdf -o traj.yaml
    python3 ros2_record.py traj.yaml -o run --controller /joint_trajectory_controller
    dynid identify arm.urdf run/run_0.mcap --split 0.65

``traj.yaml`` is a ``trajectory_msgs/JointTrajectory``. It goes as a goal of the action ``FollowJointTrajectory`` to a
joint_trajectory_controller, after a slow goal that leads to its start; meanwhile ``ros2 bag record -s mcap`` runs. Needs a sourced
ROS 2 (rclpy, control_msgs, ros2bag, rosbag2_storage_mcap). What ``effort`` holds is up to the driver: measured joint torque is
wanted, many drivers give motor current or the commanded effort.

Tried: against the documented interfaces, with stand-ins for the ROS packages (tests/examples/test_record_scripts.py). Not tried:
on a robot, or on a running ros2_control. Run it on fake hardware (mock_components/GenericSystem) first.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import playback

AT_START = 0.05  # rad: how near the approach must come
SETTLE_S = 1.0  # bag recorders need a moment before the first message and after the last


def read_trajectory(path: str | Path) -> tuple[tuple[str, ...], playback.Motion]:
    """Joint names and motion of the YAML that ``dynid excite`` writes."""
    import yaml

    message = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    if not isinstance(message, Mapping) or not message.get("joint_names") or len(message.get("points", ())) < 2:
        raise playback.RefusedError(f"{path}: expected a trajectory_msgs/JointTrajectory of dynid excite")
    points = message["points"]
    since = [point["time_from_start"] for point in points]
    motion = playback.Motion(
        np.array([stamp["sec"] + 1e-9 * stamp["nanosec"] for stamp in since]),
        np.array([point["positions"] for point in points], dtype=np.float64),
        np.array([point["velocities"] for point in points], dtype=np.float64),
    )
    return tuple(message["joint_names"]), motion


def position_of(names: Sequence[str], message: Any) -> np.ndarray:
    """Positions of the named joints in a ``sensor_msgs/JointState``, whose order is its own."""
    place = {name: k for k, name in enumerate(message.name)}
    missing = [name for name in names if name not in place]
    if missing:
        raise playback.RefusedError(f"joint states lack {', '.join(missing)}; they name {', '.join(message.name)}")
    return np.array([message.position[place[name]] for name in names])


def goal_of(names: Sequence[str], motion: playback.Motion, tolerance: float) -> Any:
    """The action goal; a joint that strays by more than ``tolerance`` rad from the path aborts it."""
    from builtin_interfaces.msg import Duration
    from control_msgs.action import FollowJointTrajectory
    from control_msgs.msg import JointTolerance
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    nanoseconds = np.round((motion.time - motion.time[0]) * 1e9).astype(np.int64)
    points = []
    for k, stamp in enumerate(nanoseconds.tolist()):
        point = JointTrajectoryPoint()
        point.positions = motion.position[k].tolist()
        point.velocities = motion.velocity[k].tolist()
        point.time_from_start = Duration(sec=stamp // 1_000_000_000, nanosec=stamp % 1_000_000_000)
        points.append(point)
    goal = FollowJointTrajectory.Goal()
    goal.trajectory = JointTrajectory(joint_names=list(names), points=points)
    goal.path_tolerance = [JointTolerance(name=name, position=tolerance) for name in names]
    return goal


class Arm:
    """One joint_trajectory_controller and the joint states beside it."""

    def __init__(self, node: Any, controller: str, topic: str) -> None:
        from control_msgs.action import FollowJointTrajectory
        from rclpy.action import ActionClient
        from rclpy.qos import qos_profile_sensor_data
        from sensor_msgs.msg import JointState

        self.node = node
        self.state: Any = None
        node.create_subscription(JointState, topic, self._heard, qos_profile_sensor_data)
        self.client = ActionClient(node, FollowJointTrajectory, f"{controller.rstrip('/')}/follow_joint_trajectory")

    def _heard(self, message: Any) -> None:
        self.state = message

    def position(self, names: Sequence[str], patience_s: float = 5.0) -> np.ndarray:
        """Where the joints are now."""
        import rclpy

        self.state, began = None, time.monotonic()
        while self.state is None and time.monotonic() - began < patience_s:
            rclpy.spin_once(self.node, timeout_sec=0.1)
        if self.state is None:
            raise playback.RefusedError(f"no joint states for {patience_s:g} s")
        return position_of(names, self.state)

    def follow(self, names: Sequence[str], motion: playback.Motion, tolerance: float) -> None:
        """Play a motion and wait for its end; cancelled on Ctrl-C."""
        import rclpy
        from control_msgs.action import FollowJointTrajectory

        if not self.client.wait_for_server(timeout_sec=5.0):
            raise playback.RefusedError("the controller offers no follow_joint_trajectory action; is it active?")
        sent = self.client.send_goal_async(goal_of(names, motion, tolerance))
        rclpy.spin_until_future_complete(self.node, sent)
        handle = sent.result()
        if not handle.accepted:
            raise playback.RefusedError("the controller refused the motion; its own log says why")
        done = handle.get_result_async()
        try:
            rclpy.spin_until_future_complete(self.node, done)
        except BaseException:
            handle.cancel_goal_async()
            rclpy.spin_once(self.node, timeout_sec=0.5)
            raise
        result = done.result().result
        if result.error_code != FollowJointTrajectory.Result.SUCCESSFUL:
            raise playback.RefusedError(f"the controller ended the motion with {result.error_code}: {result.error_string}")


def bag_command(output: str | Path, topic: str) -> list[str]:
    """The recorder."""
    return ["ros2", "bag", "record", "-s", "mcap", "-o", str(output), topic]


def record(arm: Arm, options: argparse.Namespace) -> None:
    """Check, ask, approach, play and record."""
    output = playback.check_new(options.output)
    names, motion = read_trajectory(options.motion)
    motion.check(len(names), options.max_speed)
    distance = playback.check_start(arm.position(names), motion.position[0], options.near)
    playback.confirm(f"{', '.join(names)}; {motion.summary()}; the start is {distance:.2f} rad away and approached slowly")
    where = arm.position(names)  # once more: the question may have waited long
    playback.check_start(where, motion.position[0], options.near)
    arm.follow(names, playback.approach(where, motion.position[0], options.approach_speed), options.tolerance)
    playback.check_start(arm.position(names), motion.position[0], AT_START)
    recorder = subprocess.Popen(bag_command(output, options.topic))
    try:
        time.sleep(SETTLE_S)
        if recorder.poll() is not None:
            raise playback.RefusedError("ros2 bag record ended at once; is rosbag2_storage_mcap installed?")
        arm.follow(names, motion, options.tolerance)
        time.sleep(SETTLE_S)
    finally:
        recorder.send_signal(signal.SIGINT)  # a bag is complete only after the recorder has closed it
        recorder.wait(timeout=30.0)


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("motion", help="motion as YAML, of dynid excite")
    parser.add_argument("-o", "--output", default="run", help="bag folder to write")
    parser.add_argument("--controller", default="/joint_trajectory_controller", help="name of the controller")
    parser.add_argument("--topic", default="/joint_states", help="topic to record")
    parser.add_argument("--max-speed", type=float, default=1.5, help="fastest joint allowed, rad/s")
    parser.add_argument("--near", type=float, default=playback.NEAR, help="how far from the start the robot may stand, rad")
    parser.add_argument("--approach-speed", type=float, default=0.2, help="speed of the way to the start, rad/s")
    parser.add_argument("--tolerance", type=float, default=0.2, help="largest deviation from the path, rad")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Record; a refusal is one sentence."""
    import rclpy

    options = parsed(arguments)
    rclpy.init()
    node = rclpy.create_node("dynid_record")
    try:
        record(Arm(node, options.controller, options.topic), options)
    except (playback.RefusedError, OSError) as refusal:
        raise SystemExit(f"refused: {refusal}") from None
    finally:
        node.destroy_node()
        rclpy.shutdown()
    print(f"recorded in {options.output}; next: dynid data {options.output} --robot arm.urdf --preset joint_states")


if __name__ == "__main__":
    main()
