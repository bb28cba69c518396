"""``examples/record/franka_poses.cpp`` on a stand-in for libfranka's model; its table is what dynid identifies from."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.dynamics.regressors import lower_triangle, static_matrix
from dynid.signals.recording import StaticRecording

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "examples" / "record" / "franka_poses.cpp"
LOW = np.array([-2.8, -1.7, -2.8, -3.0, -2.8, 0.0, -2.8])  # inside the Panda's ranges
HIGH = np.array([2.8, 1.7, 2.8, -0.1, 2.8, 3.7, 2.8])

EXCEPTION = """
#pragma once
#include <stdexcept>
namespace franka { struct Exception : std::runtime_error { using std::runtime_error::runtime_error; }; }
"""
#: The part of libfranka's interface that the program uses; the model knows the poses of the file MODEL: q, M column by column, g.
MODEL = """
#pragma once
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>
namespace franka {
class Model {
 public:
  Model() {
    std::ifstream file(std::getenv("MODEL"));
    std::array<double, 63> row;
    for (double value; file >> value; rows_.push_back(row)) {
      row[0] = value;
      for (std::size_t k = 1; k < row.size(); ++k) file >> row[k];
    }
  }
  Model(Model&&) noexcept = default;
  Model(const Model&) = delete;
  std::array<double, 49> mass(const std::array<double, 7>& q, const std::array<double, 9>& I_total, double m_total,
                              const std::array<double, 3>& F_x_Ctotal) const noexcept {
    std::array<double, 49> M;
    for (std::size_t k = 0; k < 49; ++k) M[k] = at(q)[7 + k] + m_total + I_total[0] + F_x_Ctotal[0];
    return M;
  }
  std::array<double, 7> gravity(const std::array<double, 7>& q, double m_total, const std::array<double, 3>& F_x_Ctotal,
                                const std::array<double, 3>& gravity_earth = {{0., 0., -9.81}}) const noexcept {
    std::array<double, 7> g;
    for (std::size_t j = 0; j < 7; ++j) g[j] = at(q)[56 + j] * gravity_earth[2] / -9.81 + m_total + F_x_Ctotal[0];
    return g;
  }
 private:
  const std::array<double, 63>& at(const std::array<double, 7>& q) const {
    for (const auto& row : rows_) {
      double distance = 0.0;
      for (std::size_t j = 0; j < 7; ++j) distance += std::abs(row[j] - q[j]);
      if (distance < 1e-9) return row;
    }
    std::abort();
  }
  std::vector<std::array<double, 63>> rows_;
};
}  // namespace franka
"""
ROBOT = """
#pragma once
#include <string>
#include <franka/model.h>
namespace franka {
enum class RealtimeConfig { kEnforce, kIgnore };
class Robot {
 public:
  explicit Robot(const std::string&, RealtimeConfig = RealtimeConfig::kEnforce, std::size_t = 50) {}
  Model loadModel() { return Model(); }
};
}  // namespace franka
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The compiled program, built with every warning an error."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler on this machine")
    folder = tmp_path_factory.mktemp("program")
    (folder / "franka").mkdir()
    for name, text in {"exception": EXCEPTION, "model": MODEL, "robot": ROBOT}.items():
        (folder / "franka" / f"{name}.h").write_text(text)
    command = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-isystem", str(folder)]
    done = subprocess.run([*command, "-o", str(folder / "poses"), str(PROGRAM)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "poses"


@pytest.fixture(scope="module")
def truth():
    """A robot with the Panda's number of joints, poses, and its mass matrices and gravity torques there."""
    robot = dynid.demo_robot(effects=[])
    q = np.random.default_rng(0).uniform(LOW, HIGH, (60, 7))
    inertia, gravity = dynid.static_regressor(robot, q)
    return robot, q, inertia @ robot.parameters.values, gravity @ robot.parameters.values


def run(program, truth, folder, *words, poses=None):
    _, q, M, g = truth
    np.savetxt(folder / "model.txt", np.hstack([q, M.transpose(0, 2, 1).reshape(len(q), -1), g]), fmt="%.17g")
    if poses is None:
        poses = folder / "poses.csv"
        header = "t," + ",".join(f"q{j + 1}" for j in range(7))
        np.savetxt(poses, np.column_stack([np.arange(len(q)), q]), delimiter=",", header=header, comments="", fmt="%.17g")
    environment = os.environ | {"MODEL": str(folder / "model.txt")}
    arguments = [str(program), "host", "panda", str(poses), str(folder / "table.csv"), *words]
    return subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False, timeout=60)


def test_the_table_identifies_the_model(program, truth, tmp_path):
    robot, q, M, g = truth
    done = run(program, truth, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "60 poses" in done.stdout
    table = tmp_path / "table.csv"
    rows, columns = lower_triangle(7)
    names = [*(f"q{j + 1}" for j in range(7)), *(f"M{i + 1}{j + 1}" for i, j in zip(rows, columns, strict=True))]
    assert table.read_text().split("\n", 1)[0].split(",") == [*names, *(f"g{j + 1}" for j in range(7))]
    recording = dynid.read_recording(table, robot)
    assert isinstance(recording, StaticRecording)
    np.testing.assert_allclose(recording.position, q, atol=1e-14)
    np.testing.assert_allclose(recording.inertia, M, atol=1e-12)
    np.testing.assert_allclose(recording.gravity, g, atol=1e-12)
    matrix = static_matrix(robot, recording.position, recording.inertia, recording.gravity)
    found = np.linalg.lstsq(matrix[:, :-1], matrix[:, -1])[0]
    state = np.random.default_rng(1).uniform(LOW, HIGH, (3, 5, 7))
    Y = dynid.torque_regressor(robot, *state)
    np.testing.assert_allclose(Y @ found, dynid.inverse_dynamics(robot, *state), rtol=1e-6, atol=1e-6)


def test_another_gravity_is_handed_on(program, truth, tmp_path):
    done = run(program, truth, tmp_path, "0", "0", "-4.905")
    assert done.returncode == 0, done.stderr
    assert "--gravity 0,0,-4.905" in done.stdout
    recording = dynid.read_recording(tmp_path / "table.csv", truth[0])
    np.testing.assert_allclose(recording.gravity, 0.5 * truth[3], atol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1,q2\n0,0\n", "has no column q3"),
        ("q1,q2,q3,q4,q5,q6,q7\n", "has no row"),
        ("q1,q2,q3,q4,q5,q6,q7\n0,0,0,-1,0,1\n", "wrong number of fields"),
        ("q1,q2,q3,q4,q5,q6,q7\n0,0,0,-1,0,1,fast\n", "'fast' is no finite number"),
        ("q1,q2,q3,q4,q5,q6,q7\n0,0,0,-1,0,1,nan\n", "'nan' is no finite number"),
        ("q1,q2,q3,q4,q5,q6,q7\n0,0,0,-1,0,1,0\n0,0,0,1,0,1,0\n", "pose 2 has joint 4 at 1.0"),
        ("q1,q2,q3,q4,q5,q6,q7,q8\n0,0,0,-1,0,1,0,0\n", "more than 7 joints"),
    ],
)
def test_poses_that_are_refused(program, truth, tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    done = run(program, truth, tmp_path, poses=tmp_path / "bad.csv")
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "table.csv").exists()


def test_a_table_is_never_written_over(program, truth, tmp_path):
    (tmp_path / "table.csv").write_text("old")
    done = run(program, truth, tmp_path)
    assert done.returncode == 1
    assert "is there already" in done.stderr
    assert (tmp_path / "table.csv").read_text() == "old"
    assert run(program, truth, tmp_path, "0").returncode == 2
