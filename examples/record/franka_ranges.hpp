// Joint ranges of Franka's arms, from the manufacturer's data sheets.
#pragma once

#include "motion.hpp"

namespace franka_ranges {

constexpr std::size_t N = 7;

// rad
struct Range {
  motion::Joints<N> low, high;
};
const Range PANDA{{-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973}, {2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973}};
const Range FR3{{-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159}, {2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159}};

inline const Range& of(const std::string& arm) {
  if (arm != "panda" && arm != "fr3") throw motion::Refused("the robot is '" + arm + "', expected panda or fr3");
  return arm == "panda" ? PANDA : FR3;
}

}  // namespace franka_ranges
