"""Bodies kept apart: distances and their gradients, and a design that would collide without the limit."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import numpy as np
import pytest

from cli_program import dynid
from dynid.errors import InputError
from dynid.excitation.collision import SCALE_M, clearance_of, usual_clearance
from dynid.excitation.limits import limits_of
from dynid.excitation.search import search_excitation
from dynid.excitation.shapes import FourierShape, random_fourier
from dynid.io.robots.read import read_robot
from messages import facts
from problems import ARM_URDF, arm_with_hand_urdf, demo_arm, inertial_urdf


def example_robot(relative):
    """A description of the package example-robot-data."""
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    found = [Path(str(file.locate())).resolve() for file in files if str(file).endswith(relative)]
    if not found:
        pytest.skip(f"example-robot-data has no {relative}")
    return found[0]


SHAPES_URDF = f"""<?xml version="1.0"?>
<robot name="two_balls">
  <link name="base"><collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
  <joint name="turn" type="revolute">
    <parent link="base"/><child link="upper"/><origin xyz="0 0 0.5"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="100" velocity="3"/>
  </joint>
  <link name="upper">{inertial_urdf(2.0)}</link>
  <joint name="bend" type="revolute">
    <parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="100" velocity="3"/>
  </joint>
  <link name="lower">{inertial_urdf(1.0)}
    <collision><origin xyz="0.4 0 0"/><geometry><sphere radius="0.1"/></geometry></collision>
  </link>
</robot>
"""


@pytest.fixture(scope="module")
def two_links(tmp_path_factory):
    path = tmp_path_factory.mktemp("robots") / "two.urdf"
    path.write_text(SHAPES_URDF)
    return read_robot(path)


def test_distance_of_a_ball_to_ground_and_box(two_links):
    clearance = clearance_of(
        two_links,
        least_m=0.02,
        ground_m=-0.3,
        obstacles=[("post", [0.1, 0.1, 0.1], [[1, 0, 0, 2.0], [0, 1, 0, 0], [0, 0, 1, 0.5], [0, 0, 0, 1]])],
    )
    assert clearance.pairs == (("base", "lower"), ("lower", "ground"), ("lower", "post"))
    q = np.array([[0.0, 0.0], [0.4, 0.3]])
    x = 0.4 * np.cos(q[:, 0]) + 0.4 * np.cos(q.sum(axis=1))
    z = 0.5 - 0.4 * np.sin(q[:, 0]) - 0.4 * np.sin(q.sum(axis=1))
    found = clearance.distances(q)
    np.testing.assert_allclose(found[:, 1], z + 0.3 - 0.1, atol=1e-6)
    np.testing.assert_allclose(found[0, 2], 1.95 - x[0] - 0.1, atol=1e-6)
    closest = clearance.distances(q).min(axis=1)
    names = [clearance.name_of(int(pair)) for pair in clearance.distances(q).argmin(axis=1)]
    np.testing.assert_allclose(closest, found.min(axis=1))
    assert names[0] in {" - ".join(pair) for pair in clearance.pairs}


def test_slacks_and_gradient(two_links):
    clearance = clearance_of(two_links, least_m=0.01, active_m=0.6, ground_m=-0.3)
    rng = np.random.default_rng(0)
    q = rng.uniform(-1.5, 1.5, (200, 2))
    q = q[clearance.distances(q).min(axis=1) > 0.02][:20]
    s, pullback = clearance.slacks(q, q, q)
    np.testing.assert_allclose(s, np.minimum((clearance.distances(q) - 0.01) / 0.59, 1.0), atol=1e-12)
    bar = rng.normal(size=s.shape)
    q_bar, v_bar, _ = pullback(np.where(s < 1.0, bar, 0.0))
    h = 1e-6
    for place in np.ndindex(q.shape):
        step = np.zeros_like(q)
        step[place] = h
        ahead = (clearance.distances(q + step) - clearance.distances(q - step)) / (2.0 * h * 0.59)
        assert q_bar[place] == pytest.approx(float((np.where(s < 1.0, bar, 0.0) * ahead).sum()), rel=1e-4, abs=1e-5)
    assert not v_bar.any()
    blocked = np.array([[1.2, 0.6]])
    assert clearance.distances(blocked).min() < 0.01
    assert (clearance.slacks(blocked, blocked, blocked)[0] <= 0.0).any()
    assert clearance.tightened(0.2).least_m == pytest.approx(0.03)


def test_smallest_distance_along_a_path_is_exact(two_links):
    """Pairs that cannot be closer are left out, so the least of all distances is the oracle."""
    clearance = clearance_of(two_links, least_m=0.0, ground_m=-0.1, obstacles=[("post", [0.1, 0.1, 1.0], np.eye(4))])
    for seed in range(5):
        motion = random_fourier(two_links, 5.0, 4, seed=seed, fraction=(0.3, 0.9)[seed % 2])
        for n in (1, 50, 1000):
            q = motion.evaluate(motion.grid(n))[0]
            every = clearance.distances(q)
            spare, place, pair = clearance.worst(q, q, q)
            assert SCALE_M * spare == pytest.approx(every.min(), abs=1e-9)
            assert every[place].min() == pytest.approx(every.min(), abs=1e-9)
            assert tuple(pair.split(" - ")) == clearance.pairs[int(every[place].argmin())]


def test_smallest_distance_with_a_sliding_joint(tmp_path):
    path = tmp_path / "slide.urdf"
    path.write_text(SHAPES_URDF.replace('name="bend" type="revolute"', 'name="bend" type="prismatic"'))
    robot = read_robot(path)
    clearance = clearance_of(robot, least_m=0.0, ground_m=-1.0)
    for seed in range(5):
        q = random_fourier(robot, 5.0, 3, seed=seed).evaluate(np.linspace(0.0, 5.0, 200))[0]
        assert SCALE_M * clearance.worst(q, q, q)[0] == pytest.approx(clearance.distances(q).min(), abs=1e-9)


def test_a_design_keeps_its_distance(two_links):
    limits = limits_of(two_links, acceleration=20.0)
    shape = FourierShape(5.0, 3)
    clearance = clearance_of(two_links, least_m=0.02, ground_m=-0.1)
    free = search_excitation(two_links, None, shape, limits=limits, starts=1, engine="serial", rest=False)
    grid = free.playable.grid(3000)
    assert clearance.distances(free.playable.evaluate(grid)[0]).min() < 0.0  # it would hit
    kept = limits_of(two_links, acceleration=20.0, clearance=clearance)
    held = search_excitation(two_links, None, shape, limits=kept, starts=1, engine="serial", rest=False)
    assert held.margins.clearance >= 0.0
    assert clearance.distances(held.playable.evaluate(grid)[0]).min() >= 0.02
    assert held.margins.smallest >= 0.0


def test_a_distance_that_no_neighbours_can_keep_is_refused_and_not_made_smaller():
    """Only neighbours, as those of a wrist, may come nearer than asked."""
    robot = read_robot(example_robot("ur_description/urdf/ur5_robot.urdf"))
    with pytest.raises(InputError, match=facts("300 mm", "upper_arm_link - wrist_3_link", "--clearance")):
        usual_clearance(robot, least_m=0.3)
    kept, _ = usual_clearance(robot, least_m=0.1)
    assert kept is not None
    nearer = [pair for pair, least in zip(kept.pairs, kept.least, strict=True) if least < 0.1]
    assert ("forearm_link", "wrist_2_link") in nearer
    assert not any("ee_link" in pair and "ground" in pair for pair in nearer)


@pytest.mark.slow
def test_panda_is_designed_beside_seventy_pairs_of_meshes():
    robot = read_robot(
        example_robot("panda_description/urdf/panda.urdf"), lock={"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
    )
    limits = limits_of(robot, tool_speed=1.0, clearance=clearance_of(robot, least_m=0.01))
    found = search_excitation(robot, limits=limits, rest=True, periods=5, seconds=8.0)
    assert found.margins.smallest >= 0.0
    assert found.playable.closed


@pytest.mark.slow
def test_ur5_does_not_collide_with_itself():
    """A real arm with meshes: the free design hits itself or the table, the held one does not."""
    robot = read_robot(example_robot("ur_description/urdf/ur5_robot.urdf"))
    clearance = clearance_of(robot, least_m=0.01, ground_m=-0.05)
    assert len(clearance.pairs) > 20
    shape = FourierShape(10.0, 5)
    free = search_excitation(
        robot, None, shape, limits=limits_of(robot, acceleration=8.0), starts=2, seconds=30.0, rest=False
    )
    grid = free.trajectory.grid(4000)
    assert clearance.distances(free.trajectory.evaluate(grid)[0]).min() < 0.0
    limits = limits_of(robot, acceleration=8.0, clearance=clearance)
    held = search_excitation(robot, free.base, shape, limits=limits, starts=3, seconds=60.0, rest=True)
    assert clearance.distances(held.playable.evaluate(held.playable.grid(8000))[0]).min() >= 0.01 - 1e-4
    assert held.margins.smallest >= 0.0
    assert held.condition_number < 200.0


def test_locked_joints_carry_their_shapes(two_links):
    locked = two_links.lock({"bend": 0.5})
    clearance = clearance_of(locked, least_m=0.0, ground_m=-0.3)
    q = np.array([[0.3]])
    whole = clearance_of(two_links, least_m=0.0, ground_m=-0.3)
    ground = [pair[1] == "ground" for pair in whole.pairs].index(True)
    mine = [pair[1] == "ground" for pair in clearance.pairs].index(True)
    assert clearance.distances(q)[0, mine] == pytest.approx(whole.distances(np.array([[0.3, 0.5]]))[0, ground], abs=1e-9)


def test_pairs_that_always_touch_are_left_out_and_said(tmp_path):
    path = tmp_path / "big.urdf"
    path.write_text(SHAPES_URDF.replace('radius="0.1"', 'radius="2.0"'))
    robot = read_robot(path)
    clearance = clearance_of(robot, ground_m=-6.0)
    assert clearance.pairs == (("lower", "ground"),)
    assert "base - lower" in clearance.notes[0]
    assert clearance_of(robot, ground_m=-6.0, ignore=[("base", "lower")]).notes == ()


def test_refusals(two_links, tmp_path):
    with pytest.raises(InputError, match=facts(".urdf", "MJCF", "SDF")):
        clearance_of(demo_arm())
    bare = tmp_path / "bare.urdf"
    bare.write_text(SHAPES_URDF.replace("collision", "visual"))
    with pytest.raises(InputError, match="has no <collision> element"):
        clearance_of(read_robot(bare))
    meshless = tmp_path / "arm.urdf"
    meshless.write_text(ARM_URDF)
    with pytest.raises(InputError, match=r"collision shapes of robot file .* cannot be read"):
        clearance_of(read_robot(meshless))
    with pytest.raises(InputError, match="least clearance is -1"):
        clearance_of(two_links, least_m=-1.0)
    with pytest.raises(InputError, match=facts("0.01", "0.02")):
        clearance_of(two_links, least_m=0.02, active_m=0.01)
    with pytest.raises(InputError, match=facts("head", "link", "collision")):
        clearance_of(two_links, ignore=[("head", "base")])
    with pytest.raises(InputError, match=facts("3000 mm", "any two bodies", "--clearance")):
        clearance_of(two_links, least_m=3.0)
    with pytest.raises(InputError, match="obstacle 'post' has sizes"):
        clearance_of(two_links, obstacles=[("post", [1.0, 1.0], np.eye(4))])


@pytest.mark.parametrize("shapes", [False, True])
def test_the_motion_stays_above_the_mounting_plane(tmp_path: Path, shapes: bool) -> None:
    path, out = tmp_path / "arm.urdf", tmp_path / "motion.csv"
    path.write_text(arm_with_hand_urdf(shapes=shapes))
    down = ("--position", "-2.5:2.5,-0.5:2.2")  # the middle of this range lies below the plane
    quick = ("--seconds", 2, "--starts", 2, "--period", 5, "--harmonics", 2, "--effects", "none", *down, "-o", out)
    done = dynid("excite", path, *quick)
    assert done.returncode == 0, done.stderr
    assert "to ground" in done.stdout
    assert "left_wheel" in done.stdout

    def lowest() -> float:
        """Height of the far end of the lift link by trigonometry alone."""
        q = read_columns(out)
        return float((0.3 - 0.6 * np.sin(q[:, 1])).min())

    assert lowest() > 0.0
    free = json.loads(dynid("excite", path, *quick, "--no-collision", "--json").stdout)
    assert free["smallest_clearance"] is None
    assert lowest() < 0.0  # the plane was what kept it up
    none = json.loads(dynid("excite", path, *quick, "--ground", "none", "--json").stdout)
    assert none["smallest_clearance"] is None or "ground" not in none["smallest_clearance"]["pair"]


def test_the_smallest_distance_to_each_obstacle_is_that_of_all_poses(tmp_path: Path) -> None:
    """Poses between those that are looked at are bounded, so what is found is what a look at every pose finds."""
    path = tmp_path / "arm.urdf"
    path.write_text(arm_with_hand_urdf(shapes=True))
    robot = read_robot(path, "none")
    box = np.eye(4)
    box[:3, 3] = (0.9, 0.2, 0.2)
    clearance = clearance_of(robot, ground_m=-1.0, obstacles=[("crate", (0.2, 0.2, 0.2), box)])
    time = np.linspace(0.0, 3.0, 301)[:, None]
    q = 0.8 * np.sin(time * np.linspace(1.0, 3.0, robot.n_joints))
    found, every = clearance.smallest(q), clearance.distances(q)
    assert {"ground", "crate"} <= set(found)
    for name, (distance, row, pair) in found.items():
        mine = [
            k for k, names in enumerate(clearance.pairs) if (name in names if name else not {"ground", "crate"} & set(names))
        ]
        assert pair in mine
        assert distance == pytest.approx(every[:, mine].min(), abs=1e-12)
        assert distance == pytest.approx(every[row, pair], abs=1e-12)


def read_columns(path: Path) -> np.ndarray:
    table = np.genfromtxt(path, delimiter=",", names=True)
    return np.column_stack([table["q1"], table["q2"]])
