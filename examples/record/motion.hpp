// Motions and poses read, checked and interpolated; shared by the C++ recording programs. Standard library alone.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace motion {

template <std::size_t N>
using Joints = std::array<double, N>;

// Something is not as it must be before a robot moves.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <std::size_t N>
double largest_distance(const Joints<N>& a, const Joints<N>& b) {
  double most = 0.0;
  for (std::size_t j = 0; j < N; ++j) most = std::max(most, std::abs(a[j] - b[j]));
  return most;
}

// Positions and velocities over time. `at` is the cubic that has both at the samples around; it is held at the ends.
template <std::size_t N>
struct Motion {
  std::vector<double> time;
  std::vector<Joints<N>> position, velocity;

  double duration_s() const { return time.back() - time.front(); }

  Joints<N> at(double seconds) const {
    const double t = time.front() + std::min(std::max(seconds, 0.0), duration_s());
    const auto after = std::upper_bound(time.begin(), time.end(), t);
    const std::size_t last = time.size() - 2;
    const std::size_t k = std::min(last, static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - time.begin() - 1, 0)));
    const double h = time[k + 1] - time[k], s = (t - time[k]) / h;
    Joints<N> q;
    for (std::size_t j = 0; j < N; ++j) {
      q[j] = (1 + 2 * s) * (1 - s) * (1 - s) * position[k][j] + s * (1 - s) * (1 - s) * h * velocity[k][j] +
             s * s * (3 - 2 * s) * position[k + 1][j] + s * s * (s - 1) * h * velocity[k + 1][j];
    }
    return q;
  }

  // Refuse a motion that does not rest at its ends, is too fast, jumps, or leaves the range of a joint.
  void check(double max_speed, const Joints<N>& q_min, const Joints<N>& q_max) const {
    for (std::size_t k = 0; k < time.size(); ++k) {
      for (std::size_t j = 0; j < N; ++j) {
        const std::string joint = "joint " + std::to_string(j + 1);
        if ((k == 0 || k + 1 == time.size()) && std::abs(velocity[k][j]) > 0.01)
          throw Refused(joint + " moves at an end of the motion, expected rest: design it without --no-rest");
        if (std::abs(velocity[k][j]) > max_speed) throw Refused(joint + " is faster than the speed that is allowed");
        if (position[k][j] < q_min[j] || position[k][j] > q_max[j]) throw Refused(joint + " leaves the robot's range");
        if (k > 0 && std::abs(position[k][j] - position[k - 1][j] -
                              0.5 * (time[k] - time[k - 1]) * (velocity[k][j] + velocity[k - 1][j])) > 1e-2)
          throw Refused(joint + " jumps in the motion file");
      }
    }
  }
};

// Columns of a CSV file by their names, row by row; other columns are left out. `expected` ends the refusal where one is missing.
struct Columns {
  std::vector<std::string> header;
  std::vector<std::vector<double>> rows;
};

inline double number(const std::string& path, const std::string& cell) {
  std::size_t used = 0;
  double value = 0.0;
  try {
    value = std::stod(cell, &used);
  } catch (const std::logic_error&) {
    used = 0;
  }
  if (used == 0 || cell.find_first_not_of(" \r", used) != std::string::npos || !std::isfinite(value))
    throw Refused(path + ": '" + cell + "' is no finite number");
  return value;
}

inline Columns read_columns(const std::string& path, const std::vector<std::string>& names, const std::string& expected) {
  std::ifstream file(path);
  std::string line, cell;
  if (!std::getline(file, line)) throw Refused(path + ": cannot be read");
  Columns table;
  for (std::istringstream cells(line); std::getline(cells, cell, ',');) {
    cell.erase(std::remove_if(cell.begin(), cell.end(), [](char c) { return c == ' ' || c == '\r' || c == '"'; }), cell.end());
    table.header.push_back(cell);
  }
  std::vector<std::size_t> places;
  for (const std::string& name : names) {
    const auto found = std::find(table.header.begin(), table.header.end(), name);
    if (found == table.header.end()) throw Refused(path + ": has no column " + name + ", expected " + expected);
    places.push_back(static_cast<std::size_t>(found - table.header.begin()));
  }
  while (std::getline(file, line)) {
    std::vector<double> all, row;
    for (std::istringstream cells(line); std::getline(cells, cell, ',');) all.push_back(number(path, cell));
    if (all.size() != table.header.size()) throw Refused(path + ": a line has a wrong number of fields");
    for (std::size_t place : places) row.push_back(all[place]);
    table.rows.push_back(row);
  }
  return table;
}

// `q1, q2 ..`: the names of one quantity of N joints in the tables of dynid.
inline std::vector<std::string> numbered(const std::string& name, std::size_t n) {
  std::vector<std::string> names;
  for (std::size_t j = 0; j < n; ++j) names.push_back(name + std::to_string(j + 1));
  return names;
}

template <std::size_t N>
void refuse_more_joints(const std::string& path, const Columns& table) {
  if (std::find(table.header.begin(), table.header.end(), "q" + std::to_string(N + 1)) != table.header.end())
    throw Refused(path + ": has more than " + std::to_string(N) + " joints");
}

// The CSV of `dynid excite`: columns t, q1.., dq1.. (and ddq1.., which are not needed).
template <std::size_t N>
Motion<N> read(const std::string& path) {
  std::vector<std::string> names{"t"};
  for (const char* quantity : {"q", "dq"})
    for (const std::string& name : numbered(quantity, N)) names.push_back(name);
  const Columns table = read_columns(path, names, "t, q1.., dq1.. of dynid excite");
  refuse_more_joints<N>(path, table);
  Motion<N> result;
  for (const std::vector<double>& row : table.rows) {
    if (!result.time.empty() && row[0] <= result.time.back()) throw Refused(path + ": time does not increase");
    result.time.push_back(row[0]);
    Joints<N> q, dq;
    for (std::size_t j = 0; j < N; ++j) q[j] = row[1 + j], dq[j] = row[1 + N + j];
    result.position.push_back(q);
    result.velocity.push_back(dq);
  }
  if (result.time.size() < 2) throw Refused(path + ": has fewer than two rows");
  return result;
}

// Poses: columns q1..; others are not needed, so the CSV of `dynid excite` does.
template <std::size_t N>
std::vector<Joints<N>> read_poses(const std::string& path) {
  const Columns table = read_columns(path, numbered("q", N), "q1.. of every joint");
  refuse_more_joints<N>(path, table);
  std::vector<Joints<N>> poses;
  for (const std::vector<double>& row : table.rows) {
    Joints<N> q;
    std::copy(row.begin(), row.end(), q.begin());
    poses.push_back(q);
  }
  if (poses.empty()) throw Refused(path + ": has no row");
  return poses;
}

// A slow straight line in joint space: q0 + (q1 - q0)(10 s^3 - 15 s^4 + 6 s^5), at most `speed` rad/s.
template <std::size_t N>
struct Approach {
  Joints<N> from{}, to{};
  double duration_s = 2.0;

  Approach() = default;
  Approach(const Joints<N>& q0, const Joints<N>& q1, double speed)
      : from(q0), to(q1), duration_s(std::max(2.0, 1.875 * largest_distance(q0, q1) / speed)) {}

  Joints<N> at(double seconds) const {
    const double s = std::min(std::max(seconds / duration_s, 0.0), 1.0);
    const double shape = s * s * s * (10 - 15 * s + 6 * s * s);
    Joints<N> q;
    for (std::size_t j = 0; j < N; ++j) q[j] = from[j] + (to[j] - from[j]) * shape;
    return q;
  }
};

// Go on only after a typed yes.
inline void confirm(const std::string& question) {
  std::cout << question << "\nIs the space around the robot clear and the emergency stop in your hand? Type yes to move: " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "yes") throw Refused("not confirmed, nothing was moved");
}

// Refuse to write over a log, before anything moves.
inline void check_new(const std::string& path) {
  if (std::ifstream(path).good()) throw Refused(path + ": is there already, expected a new file");
}

// `,name<open>0<close>,name<open>1<close>..`: the names of one quantity of N joints.
template <std::size_t N>
std::string header(const std::string& name, const std::string& open, const std::string& close) {
  std::string text;
  for (std::size_t j = 0; j < N; ++j) text += "," + name + open + std::to_string(j) + close;
  return text;
}

template <std::size_t N>
void write(std::ostream& file, const Joints<N>& values) {
  for (double value : values) file << ',' << value;
}

}  // namespace motion
