// Ask a Franka robot (Panda, FR3) for its mass matrix and gravity torque at a list of poses: the table that `dynid identify` takes as a
// static recording (reverse engineering of Gaz and others 2019, IV-A). The robot does not move: libfranka's model takes any pose.
//
//   dynid excite panda.urdf -o poses.csv --rate 20     # or any CSV with columns q1..q7 in rad; about a thousand rows
//   ./franka_poses 172.16.0.2 panda poses.csv table.csv
//   dynid identify panda.urdf table.csv --gravity 0,0,-9.81 -o run
//
// Columns: q1..q7 in rad, the lower triangle of the mass matrix row by row, M11, M21, M22 .. M77, in kg m^2, and the gravity torque
// g1..g7 in N m. Both are those of the arm alone: the end effector and load of Desk are left out. Gravity is 9.81 m/s^2 along -z of
// the base frame unless three other numbers are given.
//
// Tried: compiled and run against stand-ins for the documented headers (tests/examples/test_record_poses.py). Not tried: on a robot.
#include "franka_ranges.hpp"

#include <iomanip>
#include <limits>

#include <franka/exception.h>
#include <franka/model.h>
#include <franka/robot.h>

namespace {

using franka_ranges::N;
using franka_ranges::Range;
using Joints = motion::Joints<N>;
using Vector = std::array<double, 3>;

void check(const std::vector<Joints>& poses, const Range& range) {
  for (std::size_t k = 0; k < poses.size(); ++k)
    for (std::size_t j = 0; j < N; ++j)
      if (poses[k][j] < range.low[j] || poses[k][j] > range.high[j])
        throw motion::Refused("pose " + std::to_string(k + 1) + " has joint " + std::to_string(j + 1) + " at " +
                              std::to_string(poses[k][j]) + " rad, outside the robot's range");
}

void write_header(std::ostream& file) {
  for (std::size_t j = 0; j < N; ++j) file << (j == 0 ? "" : ",") << "q" << j + 1;
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = 0; j <= i; ++j) file << ",M" << i + 1 << j + 1;
  for (std::size_t j = 0; j < N; ++j) file << ",g" << j + 1;
  file << '\n' << std::setprecision(std::numeric_limits<double>::max_digits10);
}

void record(const std::string& host, const Range& range, const std::string& pose_file, const std::string& table_file, const Vector& gravity) {
  motion::check_new(table_file);
  const std::vector<Joints> poses = motion::read_poses<N>(pose_file);
  check(poses, range);

  franka::Robot robot(host, franka::RealtimeConfig::kIgnore);  // no control loop, so any kernel will do
  const franka::Model model = robot.loadModel();
  const std::array<double, 9> no_inertia{};
  const Vector origin{};
  std::ofstream file(table_file);
  write_header(file);
  for (const Joints& q : poses) {
    const std::array<double, 49> mass = model.mass(q, no_inertia, 0.0, origin);
    const Joints torque = model.gravity(q, 0.0, origin, gravity);
    for (std::size_t j = 0; j < N; ++j) file << (j == 0 ? "" : ",") << q[j];
    for (std::size_t i = 0; i < N; ++i)
      for (std::size_t j = 0; j <= i; ++j) file << ',' << mass[j * N + i];  // columns one after another
    motion::write(file, torque);
    file << '\n';
  }
  if (!file) throw std::runtime_error(table_file + ": cannot be written");
  std::cout << poses.size() << " poses in " << table_file << "; next: dynid identify panda.urdf " << table_file << " --gravity "
            << gravity[0] << ',' << gravity[1] << ',' << gravity[2] << " -o run\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 8) {
    std::cerr << "usage: " << argv[0] << " HOST panda|fr3 POSES.csv TABLE.csv [GRAVITY_X GRAVITY_Y GRAVITY_Z m/s^2, default 0 0 -9.81]\n";
    return 2;
  }
  try {
    Vector gravity{{0.0, 0.0, -9.81}};
    for (int k = 5; k < argc; ++k) gravity[k - 5] = motion::number("gravity", argv[k]);
    record(argv[1], franka_ranges::of(argv[2]), argv[3], argv[4], gravity);
  } catch (const motion::Refused& refusal) {
    std::cerr << "refused: " << refusal.what() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "stopped: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
