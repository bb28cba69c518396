"""HDF5: arrays of one log, episodes of simulators, and files that reach for others."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.recording.readers.read import read_recording
from log_files import ARM, DQ, TAU, N, Q, T, check
from messages import facts

h5py = pytest.importorskip("h5py")


def test_arrays_of_one_log(tmp_path):
    with h5py.File(tmp_path / "log.h5", "w") as file:
        for name, values in (("time", T), ("robot/qpos", Q), ("robot/qvel", DQ), ("robot/torque", TAU)):
            file[name] = values
        file["camera/image"] = np.zeros((N, 2, 2), dtype=np.uint8)
    check(read_recording(tmp_path / "log.h5", ARM))


def test_episodes_with_commands_and_without_a_clock(tmp_path):
    """As Isaac Lab records: an episode is chosen by its number, its rate is given."""
    with h5py.File(tmp_path / "log.hdf5", "w") as file:
        for k in (0, 1, 10):
            group = file.create_group(f"data/demo_{k}")
            group["actions"] = Q + k
            group["states/articulation/robot/joint_position"] = Q + 0.5 * k
        file.attrs["joint_names"] = list(ARM)
    found = read_recording(tmp_path / "log.hdf5", ARM, episode=10, rate_hz=200.0)
    np.testing.assert_allclose(found.position, Q + 5.0)
    np.testing.assert_allclose(found.reference_position, Q + 10.0)
    assert found.rate_hz == pytest.approx(200.0)


def test_links_to_other_files_are_refused(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["q"] = Q
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["t"] = T
        file["q"] = h5py.ExternalLink("other.h5", "q")
    with pytest.raises(InputError, match=facts("'q' is a link", "log.h5")):
        read_recording(tmp_path / "log.h5", ARM)
    layout = h5py.VirtualLayout(shape=Q.shape, dtype=float)
    layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "q", shape=Q.shape)
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        file["t"] = T
        file.create_virtual_dataset("q", layout)
    with pytest.raises(InputError, match="another file"):
        read_recording(tmp_path / "virtual.h5", ARM)


@pytest.mark.parametrize("content", [b"\x89HDF\r\n\x1a\n", b"\x89HDF\r\n\x1a\n" + bytes(200)])
def test_a_damaged_file_is_one_sentence(tmp_path, content):
    (tmp_path / "log.h5").write_bytes(content)
    with pytest.raises(InputError, match="HDF5"):
        read_recording(tmp_path / "log.h5", ARM)


def test_nothing_to_read(tmp_path):
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["words"] = "text"
    with pytest.raises(InputError, match="no arrays of numbers"):
        read_recording(tmp_path / "log.h5", ARM)
