// Play an exciting motion on a KUKA LBR iiwa (FRI) and log it for `dynid identify --preset fri`.
//
//   dynid excite iiwa.urdf -o traj.csv --rate 200
//   ./kuka_fri_record traj.csv run.csv [HOST] [PORT]
//
// On the controller a Sunrise application must hold the robot near the start of the motion in position control, with a joint-position
// overlay (FRIJointOverlay, ClientCommandMode.POSITION) and a send period of 5 ms or less. This client then takes the robot slowly to
// the start, plays the motion, holds its end, and leaves. The log is written after that.
//
// Columns: time_stamp_sec, time_stamp_nano_sec (the controller's clock), measured_joint_position_0.. (rad), measured_torque_0.. (N m,
// sensors at the link side), external_torque_0.., commanded_joint_position_0... FRI gives no velocity.
//
// Tried: compiled and run against stand-ins for the documented headers (tests/examples/test_record_scripts.py). Not tried: on a robot.
#include "motion.hpp"

#include <cstdlib>
#include <iomanip>
#include <limits>

#if __has_include(<fri/friLBRClient.h>)
#include <fri/friClientApplication.h>
#include <fri/friLBRClient.h>
#include <fri/friUdpConnection.h>
#else
#include <friClientApplication.h>
#include <friLBRClient.h>
#include <friUdpConnection.h>
#endif

namespace {

constexpr std::size_t N = 7;
constexpr double NEAR_RAD = 0.0087;     // how far from the start the robot may stand: the way there is not checked for collisions
constexpr double APPROACH_SPEED = 0.2;  // rad/s
constexpr double HOLD_S = 0.5;          // at the start and at the end
constexpr double DEGREE = 3.14159265358979323846 / 180.0;
using Joints = motion::Joints<N>;

// Joint ranges of the iiwa 7 and 14 from their data sheet, less a degree.
const Joints HIGH{{169 * DEGREE, 119 * DEGREE, 169 * DEGREE, 119 * DEGREE, 169 * DEGREE, 119 * DEGREE, 174 * DEGREE}};
const Joints LOW{{-169 * DEGREE, -119 * DEGREE, -169 * DEGREE, -119 * DEGREE, -169 * DEGREE, -119 * DEGREE, -174 * DEGREE}};

struct Row {
  unsigned int seconds, nanoseconds;
  Joints position, torque, external, commanded;
};

Joints copied(const double* values) {
  Joints result;
  std::copy(values, values + N, result.begin());
  return result;
}

class Recorder : public KUKA::FRI::LBRClient {
 public:
  explicit Recorder(const motion::Motion<N>& trajectory) : trajectory_(trajectory) {
    rows_.reserve(static_cast<std::size_t>(1100.0 * trajectory.duration_s()) + 1000);  // no allocation in the loop
  }

  // Called in every cycle while the robot takes commands; each call must set a position.
  void command() override {
    const Joints& start = trajectory_.position.front();
    if (!begun_) {
      held_ = copied(robotState().getIpoJointPosition());
      refused_ = motion::largest_distance(held_, start) > NEAR_RAD;
      approach_ = motion::Approach<N>(held_, start, APPROACH_SPEED);
      begun_ = true;
    }
    if (refused_) {
      robotCommand().setJointPosition(held_.data());
      return;
    }
    elapsed_ += robotState().getSampleTime();
    const double play = elapsed_ - approach_.duration_s - HOLD_S;
    const Joints next = play < 0.0 ? approach_.at(elapsed_) : trajectory_.at(play);
    robotCommand().setJointPosition(next.data());
    if (play >= 0.0 && play <= trajectory_.duration_s()) {
      rows_.push_back({robotState().getTimestampSec(), robotState().getTimestampNanoSec(), copied(robotState().getMeasuredJointPosition()),
                       copied(robotState().getMeasuredTorque()), copied(robotState().getExternalTorque()), next});
    }
    finished_ = play > trajectory_.duration_s() + HOLD_S;
  }

  bool refused() const { return refused_; }
  bool finished() const { return finished_; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  const motion::Motion<N>& trajectory_;
  motion::Approach<N> approach_;
  Joints held_{};
  std::vector<Row> rows_;
  double elapsed_ = 0.0;
  bool begun_ = false, refused_ = false, finished_ = false;
};

void write_log(const std::string& path, const std::vector<Row>& rows) {
  std::ofstream file(path);
  file << "time_stamp_sec,time_stamp_nano_sec" << motion::header<N>("measured_joint_position", "_", "")
       << motion::header<N>("measured_torque", "_", "") << motion::header<N>("external_torque", "_", "")
       << motion::header<N>("commanded_joint_position", "_", "") << '\n';
  file << std::setprecision(std::numeric_limits<double>::max_digits10);
  for (const Row& row : rows) {
    file << row.seconds << ',' << row.nanoseconds;
    for (const Joints* values : {&row.position, &row.torque, &row.external, &row.commanded}) motion::write(file, *values);
    file << '\n';
  }
  if (!file) throw std::runtime_error(path + ": cannot be written");
}

void record(const std::string& motion_file, const std::string& log_file, const char* host, int port, double max_speed) {
  motion::check_new(log_file);
  const auto trajectory = motion::read<N>(motion_file);
  trajectory.check(max_speed, LOW, HIGH);
  motion::confirm(std::to_string(trajectory.duration_s()) + " s of motion, after a slow approach as soon as the controller hands over");
  Recorder client(trajectory);
  KUKA::FRI::UdpConnection connection;
  KUKA::FRI::ClientApplication application(connection, client);
  if (!application.connect(port, host)) throw std::runtime_error("no connection to the controller");
  while (application.step() && !client.finished() && !client.refused()) {
    if (client.robotState().getSessionState() == KUKA::FRI::IDLE) break;  // the session was closed on the controller
  }
  application.disconnect();
  if (client.refused()) throw motion::Refused("the robot is more than 0.0087 rad from the start of the motion: take it there, or design the motion with --home where it stands");
  write_log(log_file, client.rows());
  std::cout << client.rows().size() << " rows in " << log_file << "; next: dynid data " << log_file << " --robot iiwa.urdf --preset fri\n";
  if (!client.finished()) throw std::runtime_error("the session ended before the motion did; the log holds its beginning");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 6) {
    std::cerr << "usage: " << argv[0] << " MOTION.csv LOG.csv [HOST, default any] [PORT, default 30200] [MAX_SPEED rad/s, default 1.0]\n";
    return 2;
  }
  try {
    const char* host = argc > 3 && std::string(argv[3]) != "any" ? argv[3] : nullptr;
    record(argv[1], argv[2], host, argc > 4 ? std::atoi(argv[4]) : 30200, argc > 5 ? std::stod(argv[5]) : 1.0);
  } catch (const motion::Refused& refusal) {
    std::cerr << "refused: " << refusal.what() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "stopped: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
