"""Python and the command line design the same motion: one function, one set of defaults, safe ones."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

import dynid
from cli_program import dynid as dynid_program
from dynid.cli.verbs.motion import excite
from dynid.engine import Serial
from dynid.errors import InputError, UnknownNameError
from dynid.excitation import command as designs
from dynid.excitation.collision import usual_clearance
from dynid.excitation.criteria import criterion_from
from dynid.excitation.limits import limits_of
from dynid.excitation.options import ExciteSettings
from dynid.excitation.shapes import FourierShape
from dynid.excitation.trajectories import FourierTrajectory
from dynid.io.demo import demo_description, demo_robot
from dynid.io.robots.read import read_robot
from dynid.option_types import default_of, options_of
from messages import facts
from problems import arm_with_hand_urdf

SEARCHES = ("search_excitation", "design_points", "sinusoid_excitation", "actuator_excitation")


app = typer.Typer()


app.command()(excite)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    path = tmp_path_factory.mktemp("robot") / "arm.toml"
    path.write_text(demo_description())
    return path


class CaughtError(Exception):
    """What reached a search."""

    def __init__(self, name: str, words: tuple[Any, ...], options: dict[str, Any]) -> None:
        super().__init__(name)
        self.name, self.words, self.options = name, words, options


def asked_of_the_search(monkeypatch: pytest.MonkeyPatch, call: Any) -> dict[str, Any]:
    """Every argument with which a design calls its search, limits taken apart, and the name of the search."""

    def caught(name: str) -> Any:
        def search(*words: Any, **options: Any) -> None:
            raise CaughtError(name, words, options)

        return search

    for name in SEARCHES:
        monkeypatch.setattr(designs, name, caught(name))
    with pytest.raises(CaughtError) as found:
        call()
    value = found.value
    options = dict(value.options) | {f"argument {number}": word for number, word in enumerate(value.words)}
    options.pop("progress", None)
    key = next(key for key, one in options.items() if type(one).__name__ == "Limits")
    limits = options.pop(key)
    options |= {f"limits.{one.name}": getattr(limits, one.name) for one in fields(limits) if one.name != "clearance"}
    options |= {"clearance": limits.clearance.pairs, "least_m": limits.clearance.least_m, "search": value.name}
    return options


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ((), {}),
        (("--shape", "bspline"), {"shape": "bspline"}),
        (("--shape", "points"), {"shape": "points"}),
        (("--shape", "sinusoids"), {"shape": "sinusoids"}),
        (("--for", "actuators"), {"purpose": "actuators"}),
    ],
    ids=["fourier", "bspline", "points", "sinusoids", "actuators"],
)
def test_python_asks_for_what_the_command_asks_for(arm, monkeypatch, words, options):
    def command() -> None:
        result = CliRunner().invoke(app, [str(arm), *words])
        if result.exception is not None:
            raise result.exception

    typed = asked_of_the_search(monkeypatch, command)
    for robot in (arm, read_robot(arm)):
        called = asked_of_the_search(monkeypatch, lambda robot=robot: dynid.design_excitation(robot, **options))
        assert set(called) == set(typed)
        for name, value in typed.items():
            other = called[name]
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(other, value, err_msg=name)
            elif hasattr(value, "parameters"):  # the robot itself
                np.testing.assert_array_equal(other.parameters.values, value.parameters.values)
                assert other.joint_names == value.joint_names
            elif isinstance(value, FourierTrajectory):
                np.testing.assert_array_equal(other.b, value.b)
            else:
                assert other == value, name


def test_every_flag_has_the_default_of_the_settings():
    flags = {one.name: one.default for one in get_command(app).params}
    for one in options_of(ExciteSettings):
        default = flags[one.name]
        assert default is None or default == default_of(one), one.name  # None: not given, so that of the settings
    assert ExciteSettings() == replace(ExciteSettings(), **{one.name: default_of(one) for one in options_of(ExciteSettings)})


def test_a_motion_designed_in_python_keeps_its_clearance():
    robot = demo_robot()
    found = dynid.design_excitation(robot, period=8.0, harmonics=3, starts=1, seconds=60.0, engine="serial")
    assert isinstance(found.margins.clearance, float)
    assert found.margins.smallest >= 0.0
    assert found.playable.at_rest
    assert found.playable.closed
    apart, _ = usual_clearance(robot)
    q = found.playable.evaluate(found.playable.grid(4000))[0]
    assert (apart.distances(q) >= apart.least - 1e-6).all()
    assert np.median(apart.least) == 0.05
    np.testing.assert_allclose(found.limits.velocity, 0.7 * robot.limits("dq_max"))
    free = dynid.design_excitation(
        robot, period=8.0, harmonics=3, starts=1, seconds=60.0, engine="serial", collision=False, rest=False
    )
    assert free.margins.clearance is None
    assert (
        apart.distances(free.playable.evaluate(free.playable.grid(4000))[0]) < apart.least
    ).any()  # the check was what kept it apart


def test_limits_of_ones_own_are_taken_and_bodies_kept_apart_all_the_same(monkeypatch):
    robot = demo_robot()
    own = limits_of(robot, fraction=0.5)
    called = asked_of_the_search(monkeypatch, lambda: dynid.design_excitation(robot, limits=own))
    np.testing.assert_array_equal(called["limits.velocity"], own.velocity)
    assert called["clearance"] == usual_clearance(robot)[0].pairs
    narrow = replace(own, clearance=usual_clearance(robot, least_m=0.07)[0])
    assert asked_of_the_search(monkeypatch, lambda: dynid.design_excitation(robot, limits=narrow))["least_m"] == 0.07


def test_objects_reach_the_search(monkeypatch):
    robot, family, criterion, engine = demo_robot(), FourierShape(4.0, 2), criterion_from("trace"), Serial()
    called = asked_of_the_search(
        monkeypatch, lambda: dynid.design_excitation(robot, shape=family, criterion=criterion, engine=engine)
    )
    assert (called["argument 2"], called["criterion"], called["engine"]) == (family, criterion, engine)
    with pytest.raises(InputError, match="criterion of your own: expected with a shape that is searched"):
        dynid.design_excitation(robot, shape="points", criterion=criterion)


def test_what_contradicts_itself_is_refused(arm):
    robot = demo_robot()
    with pytest.raises(UnknownNameError, match="unknown option of a designed motion 'harmonic'"):
        dynid.design_excitation(robot, harmonic=3)
    with pytest.raises(InputError, match="effects is given beside robot"):
        dynid.design_excitation(robot, effects=("viscous",))
    with pytest.raises(InputError, match="velocity is given beside limits"):
        dynid.design_excitation(robot, limits=limits_of(robot), velocity=(1.0,))
    with pytest.raises(InputError, match="limits are of 2 joints, the motion moves 7"):
        dynid.design_excitation(robot, limits=limits_of(robot.only(["elbow", "wrist_roll"])))


def test_a_home_that_is_not_free_is_refused_before_the_search(arm, monkeypatch):
    def search(*words: Any, **options: Any) -> None:
        raise AssertionError("a search was begun")

    for name in SEARCHES:
        monkeypatch.setattr(designs, name, search)
    robot = read_robot(arm, "none")
    with pytest.raises(InputError, match=facts("--home", "2 numbers", "7 joints")):
        dynid.design_excitation(robot, home=(0.0, 0.0))
    with pytest.raises(InputError, match=facts("--home", "range", "shoulder_yaw")):
        dynid.design_excitation(robot, home=(9.0, *(0.0,) * 6))
    folded = (0.0, 1.8, 0.0, -2.2, 0.0, 0.0, 0.0)
    with pytest.raises(InputError, match=facts("--home", "breaks the limit of")):
        dynid.design_excitation(robot, home=folded)


def test_the_tool_stays_in_its_room_by_pinocchios_kinematics(arm):
    """A motion within a box about the tool, one limit of which a free motion breaks; and rooms that leave nothing."""
    from dynid.dynamics.pinocchio_model import pinocchio_model, to_pinocchio_position

    quick = {"period": 5.0, "harmonics": 2, "seconds": 4.0, "starts": 2, "engine": "serial", "collision": False}
    robot = read_robot(arm, "none").only(["shoulder_yaw", "shoulder_pitch", "elbow"])
    free = dynid.design_excitation(robot, **quick)
    held = dynid.design_excitation(robot, keep_in=(0.0, 0.0, 0.6, 1.2, 1.2, 0.8), **quick)
    model = pinocchio_model(robot)
    working, frame = model.createData(), model.frames[model.getFrameId(robot.links[-1])]

    def places(found):
        q = found.playable.derivative(found.playable.grid(3000), 0)
        way = []
        for position in to_pinocchio_position(robot, q):
            pin.forwardKinematics(model, working, position)
            way.append((working.oMi[frame.parentJoint] * frame.placement).act(np.array(found.limits.tool_point)))
        return np.abs(np.array(way) - [0.0, 0.0, 0.6]) / [0.6, 0.6, 0.4]

    assert places(free).max() > 1.0
    assert 0.9 < places(held).max() <= 1.0
    (use,) = (one for one in held.limit_uses if one.name == "tool room")
    assert use.share == pytest.approx(places(held).max(), abs=1e-3)
    assert use.where.startswith("tool, ")
    with pytest.raises(InputError, match=facts("--keep-in", "-1.2", "positive")):
        dynid.design_excitation(robot, keep_in=(0.0, 0.0, 0.6, 1.2, -1.2, 0.8), **quick)
    with pytest.raises(InputError, match="tool room of 'tool, z'"):
        dynid.design_excitation(robot, keep_in=(0.0, 0.0, 9.0, 1.2, 1.2, 0.8), **quick)


@pytest.mark.parametrize(("torque", "told"), [(10.0, 1), (12.0, 0)])
def test_torque_limits_that_nobody_filled_in_are_told(torque, told):
    robot = demo_robot(effects="none").only(["shoulder_yaw", "shoulder_pitch", "elbow"]).with_gravity((0.0, 0.0, 0.0))
    robot = replace(robot, joints=tuple(replace(joint, tau_max=torque) for joint in robot.joints))
    quick = {"shape": "sinusoids", "period": 5.0, "clearance": 0.0, "ground": "none"}
    found = dynid.design_excitation(robot, torque_uncertainty=0.0, acceleration=(0.1,), **quick)
    assert sum("nobody filled them in" in note for note in found.warnings) == told
    stated = dynid.design_excitation(robot, torque_uncertainty=0.0, acceleration=(0.1,), torque=(9.0,), **quick)
    assert not any("nobody filled them in" in note for note in stated.warnings)


UNPLAYABLE = {
    "a box around the base": (("--box", "0,0,0.4,1,1,1"), facts("--box", "100 %")),
    "a start pose in collision": (("--home", "0,1.4"), facts("--home", "clearance", "ground")),
    "limits that exclude everything": (("--position", "3:4"), facts("position limit", "pan_joint", "-2.5 to 2.5")),
    "drives that hold nothing": (("--torque", "0.01"), facts("torque", "lift_joint")),
    "a speed of nothing": (("--velocity", "0"), facts("velocity", "0", "positive")),
    "limits of fewer joints": (("--acceleration", "1,2,3"), facts("acceleration limit", "3 values", "2 joints")),
    "noise of fewer joints": (("--torque-noise", "1,2,3"), facts("torque noise", "3 values", "2 joints")),
    "a joint without limits": ((), facts("position limit", "lift_joint", "--position")),
    "a speed that no robot reaches": ((), facts("velocity limits", "1000", "pan_joint", "--velocity")),
}


@pytest.mark.parametrize("what", UNPLAYABLE)
@pytest.mark.parametrize("shape", ["fourier", "bspline", "sinusoids", "points"])
def test_what_no_motion_fits_is_one_sentence_for_every_shape(tmp_path, shape, what):
    flags, said = UNPLAYABLE[what]
    urdf = arm_with_hand_urdf(shapes=True)
    if what == "a joint without limits":
        at = urdf.index("<limit", urdf.index('name="lift_joint"'))
        urdf = urdf[:at] + urdf[urdf.index("</joint>", at) :]
    if what == "a speed that no robot reaches":
        urdf = re.sub(r'velocity="[^"]*"', 'velocity="1000"', urdf)
    path, out = tmp_path / "arm.urdf", tmp_path / "m.csv"
    path.write_text(urdf)
    quick = () if shape == "sinusoids" else ("--seconds", "2", "--starts", "1")
    done = dynid_program("excite", path, "--shape", shape, *quick, *flags, "-o", out)
    assert done.returncode == 2, done.stdout
    assert re.search(said, done.stderr)
    assert "Traceback" not in done.stderr
    assert not out.exists()
