// Play an exciting motion on a Franka robot (Panda, FR3) and log it for `dynid identify --preset libfranka`.
//
//   dynid excite panda.urdf -o traj.csv --rate 1000
//   ./franka_record 172.16.0.2 panda traj.csv run.csv
//
// libfranka's control loop calls back every millisecond: each call returns the next joint position and keeps the robot's state. C++
// because that loop is hard real time; Franka's Python binding runs it under the interpreter. Nothing is written while the robot moves.
//
// Columns: those of franka::logToCSV (time in ms, state.q[0].., state.dq[0].., state.tau_J[0].. in N m, measured at the link side) and
// state.tau_J_d. Set the end effector in Desk to what is mounted, best nothing, and the load to none.
//
// Tried: compiled and run against stand-ins for the documented headers (tests/examples/test_record_scripts.py). Not tried: on a robot.
#include "franka_ranges.hpp"

#include <iomanip>
#include <limits>

#include <franka/exception.h>
#include <franka/robot.h>

namespace {

using franka_ranges::N;
using franka_ranges::Range;
constexpr double NEAR_RAD = 0.0087;     // how far from the start the robot may stand: the way there is not checked for collisions
constexpr double APPROACH_SPEED = 0.2;  // rad/s
using Joints = motion::Joints<N>;

struct Row {
  double time_ms, success_rate;
  Joints q, q_d, dq, tau_J, tau_ext, tau_J_d;
};

void write_log(const std::string& path, const std::vector<Row>& rows) {
  std::ofstream file(path);
  file << "time,success_rate" << motion::header<N>("state.q", "[", "]") << motion::header<N>("state.q_d", "[", "]")
       << motion::header<N>("state.dq", "[", "]") << motion::header<N>("state.tau_J", "[", "]")
       << motion::header<N>("state.tau_ext_hat_filtered", "[", "]") << motion::header<N>("state.tau_J_d", "[", "]") << '\n';
  file << std::setprecision(std::numeric_limits<double>::max_digits10);
  for (const Row& row : rows) {
    file << row.time_ms << ',' << row.success_rate;
    for (const Joints* values : {&row.q, &row.q_d, &row.dq, &row.tau_J, &row.tau_ext, &row.tau_J_d}) motion::write(file, *values);
    file << '\n';
  }
  if (!file) throw std::runtime_error(path + ": cannot be written");
}

void record(const std::string& host, const Range& range, const std::string& motion_file, const std::string& log_file, double max_speed) {
  motion::check_new(log_file);
  const auto trajectory = motion::read<N>(motion_file);
  trajectory.check(max_speed, range.low, range.high);
  const Joints& start = trajectory.position.front();

  franka::Robot robot(host);
  // Torque thresholds of contact and collision: a fast free motion with an imperfect model stays below, a person does not.
  const Joints torque{{40.0, 40.0, 36.0, 36.0, 32.0, 28.0, 24.0}};
  const std::array<double, 6> force{{40.0, 40.0, 40.0, 50.0, 50.0, 50.0}};
  robot.setCollisionBehavior(torque, torque, torque, torque, force, force, force, force);
  const franka::RobotState before = robot.readOnce();
  const double distance = motion::largest_distance(before.q, start);
  if (distance > NEAR_RAD) throw motion::Refused("the robot is " + std::to_string(distance) + " rad from the start: take it there, or design the motion with --home where it stands");
  if (before.m_total > 0.0) std::cout << "note: a load of " << before.m_total << " kg is configured; is it mounted?\n";
  motion::confirm(std::to_string(trajectory.duration_s()) + " s of motion, start " + std::to_string(distance) + " rad away");

  double elapsed = 0.0;
  motion::Approach<N> approach;
  bool begun = false;
  robot.control(
      [&](const franka::RobotState& state, franka::Duration step) -> franka::JointPositions {
        if (!begun) {
          // The first command must be the last desired position, not the measured one.
          if (motion::largest_distance(state.q_d, start) > NEAR_RAD) throw motion::Refused("the robot was moved away from the start");
          approach = motion::Approach<N>(state.q_d, start, APPROACH_SPEED);
          begun = true;
        }
        elapsed += step.toSec();
        franka::JointPositions command(approach.at(elapsed));
        return elapsed >= approach.duration_s ? franka::MotionFinished(command) : command;
      },
      franka::ControllerMode::kJointImpedance, true);

  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(1000.0 * trajectory.duration_s()) + 1000);  // no allocation in the loop
  elapsed = 0.0;
  try {
    robot.control(
        [&](const franka::RobotState& state, franka::Duration step) -> franka::JointPositions {
          elapsed += step.toSec();
          rows.push_back({static_cast<double>(state.time.toMSec()), state.control_command_success_rate, state.q, state.q_d, state.dq,
                          state.tau_J, state.tau_ext_hat_filtered, state.tau_J_d});
          franka::JointPositions command(trajectory.at(elapsed));
          return elapsed >= trajectory.duration_s() ? franka::MotionFinished(command) : command;
        },
        franka::ControllerMode::kJointImpedance, true);
  } catch (const franka::Exception&) {
    write_log(log_file, rows);  // what was seen until the reflex says why
    throw;
  }
  write_log(log_file, rows);
  std::cout << rows.size() << " rows in " << log_file << "; next: dynid data " << log_file << " --robot panda.urdf --preset libfranka\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5 || argc > 6) {
    std::cerr << "usage: " << argv[0] << " HOST panda|fr3 MOTION.csv LOG.csv [MAX_SPEED rad/s, default 1.5]\n";
    return 2;
  }
  try {
    record(argv[1], franka_ranges::of(argv[2]), argv[3], argv[4], argc > 5 ? std::stod(argv[5]) : 1.5);
  } catch (const motion::Refused& refusal) {
    std::cerr << "refused: " << refusal.what() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "stopped: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
