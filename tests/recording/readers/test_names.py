"""Names of columns: every usual way to call a quantity of a joint."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynid.errors import InputError
from dynid.recording.readers.joints import HasJoints, MissingJointsError
from dynid.recording.readers.names import fold, joint_forms, near_name
from dynid.recording.readers.read import read_recording
from log_files import ARM, DQ, RNG, TAU, Arm, Held, N, Q, T, by_name, check, numbered, plain, write_csv
from messages import facts

NAMINGS = {
    "numbers from 1": plain(),
    "numbers from 0": {"time": T} | numbered("q", Q, 0) | numbered("qd", DQ, 0) | numbered("effort", TAU, 0),
    "underscores": {"timestamp": T}
    | numbered("pos", Q, 1, "{prefix}_{k}")
    | numbered("vel", DQ, 1, "{prefix}_{k}")
    | numbered("torque", TAU, 1, "{prefix}_{k}"),
    "brackets": {"stamp": T}
    | numbered("q", Q, 0, "{prefix}[{k}]")
    | numbered("dq", DQ, 0, "{prefix}[{k}]")
    | numbered("tau_J", TAU, 0, "{prefix}[{k}]"),
    "joint numbers": {"t": T}
    | numbered("position", Q, 1, "joint{k}_{prefix}")
    | numbered("velocity", DQ, 1, "joint{k}_{prefix}")
    | numbered("effort", TAU, 1, "joint{k}_{prefix}"),
    "axis numbers": {"t": T}
    | numbered("q", Q, 1, "A{k}.{prefix}")
    | numbered("dq", DQ, 1, "A{k}.{prefix}")
    | numbered("torque", TAU, 1, "A{k}.{prefix}"),
    "quantity_joint": by_name("{x}_{short}"),
    "joint.quantity": by_name("{joint}.{x}"),
    "quantity.joint": by_name("{x}.{joint}"),
    "capitals": {name.upper(): values for name, values in by_name("{joint}/{x}").items()},
    "measured": {"t": T}
    | numbered("actual_q", Q, 0, "{prefix}_{k}")
    | numbered("actual_qd", DQ, 0, "{prefix}_{k}")
    | numbered("measured_torque", TAU, 0, "{prefix}_{k}"),
    "zero padded": {"t": T}
    | numbered("q", Q, 1, "{prefix}0{k}")
    | numbered("dq", DQ, 1, "{prefix}0{k}")
    | numbered("tau", TAU, 1, "{prefix}0{k}"),
}


@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_usual_names_are_understood(tmp_path, naming, suffix):
    columns = NAMINGS[naming]
    path = tmp_path / f"log{suffix}"
    if suffix == ".csv":
        write_csv(path, columns)
    elif suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        np.savez(path, **columns)
    check(read_recording(path, ARM))


def test_a_robot_is_as_good_as_its_joint_names(tmp_path):
    assert isinstance(Arm(), HasJoints)
    check(read_recording(write_csv(tmp_path / "log.csv", plain()), Arm()))
    with pytest.raises(InputError, match="expected a robot with joints"):
        read_recording(tmp_path / "log.csv", "elbow")


def test_robots_whose_names_are_numbers_keep_their_place(tmp_path):
    """Columns counted from 0 are not mistaken for joints named from 1."""
    columns = {"t": T} | numbered("q", Q, 0, "{prefix}_joint{k}") | numbered("tau", TAU, 0, "{prefix}_joint{k}")
    path = write_csv(tmp_path / "log.csv", columns)
    check(read_recording(path, ("joint1", "joint2", "joint3")), velocity=False)
    check(read_recording(path, ("panda_joint0", "panda_joint1", "panda_joint2")), velocity=False)


def test_one_joint_needs_no_number(tmp_path):
    path = write_csv(tmp_path / "log.csv", {"t": T, "q": Q[:, 0], "dq": DQ[:, 0], "tau": TAU[:, 0]})
    np.testing.assert_array_equal(read_recording(path, ["hinge"]).torque, TAU[:, :1])


def test_commanded_and_external_quantities_are_kept_apart(tmp_path):
    other = RNG.normal(size=(3, N, 3))
    columns = plain() | numbered("q_d", other[0], 0, "{prefix}[{k}]") | numbered("tau_des", other[1])
    columns |= numbered("tau_ext_hat_filtered", other[2], 0, "{prefix}[{k}]")
    recording = read_recording(write_csv(tmp_path / "log.csv", columns), ARM)
    check(recording)
    np.testing.assert_array_equal(recording.reference_position, other[0])
    np.testing.assert_array_equal(recording.external_torque, other[2])


def misspelt() -> dict[str, np.ndarray]:
    return {name.replace("elbow", "ellbow"): values for name, values in by_name("{x}_{joint}").items()}


def test_a_misspelt_joint_is_named(tmp_path):
    path = write_csv(tmp_path / "log.csv", misspelt())
    with pytest.raises(MissingJointsError, match=facts("q_ellbow_joint", "elbow_joint", "column")) as caught:
        read_recording(path, ARM)
    assert caught.value.misspelt == {"q_ellbow_joint": "elbow_joint"}
    recording = read_recording(path, Held({"elbow_joint": 0.0}))
    (finding,) = recording.source.findings
    assert (finding.code, finding.severity, finding.joints) == ("misspelt_joint", "warning", ("elbow_joint",))
    assert "column 'q_ellbow_joint' is not used; did you mean joint 'elbow_joint', which has no column" in finding.sentence
    assert not any("ellbow" in note for note in recording.source.notes)


def test_a_misspelt_torque_is_named(tmp_path):
    columns = {name.replace("tau_elbow", "tau_elbo"): values for name, values in by_name("{x}_{joint}").items()}
    with pytest.raises(InputError, match=facts("elbow_joint", "tau_elbo_joint")):
        read_recording(write_csv(tmp_path / "log.csv", columns), ARM)


@pytest.mark.parametrize(
    ("name", "joints", "near"),
    [
        ("ellbow_joint", ("shoulder", "elbow_joint"), "elbow_joint"),
        ("sholder_pan", ("shoulder_pan_joint", "shoulder_lift_joint"), "shoulder_pan_joint"),
        ("gripper", ("elbow_joint",), None),
        ("joint_a2", ("joint_a1", "joint_a3"), None),
        ("finger_joint1", ("finger_joint2",), None),
        ("left_elbow", ("right_elbow",), None),
    ],
)
def test_near_names(name, joints, near):
    assert near_name(name, joints) == near


def test_an_arm_with_two_sets_of_names_is_read_by_both() -> None:
    """Of SO-101 arms, and only where all joints of one set are there: an elbow alone is no SO-101."""
    lerobot = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
    older = ["Rotation", "Pitch", "Elbow", "Wrist_Pitch", "Wrist_Roll", "Jaw"]
    assert [joint_forms(lerobot)[fold(name)] for name in older] == list(range(6))
    assert [joint_forms(older)[name] for name in lerobot] == list(range(6))
    assert "pitch" not in joint_forms(lerobot[:-1])
