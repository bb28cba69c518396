"""Archives of arrays: NumPy's and HDF5."""

from __future__ import annotations

import io
import resource
import zipfile

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.io.logs.formats.arrays import Hdf5Format, table_of_arrays
from dynid.io.logs.read import read_recording
from dynid.io.logs.table import OpenOptions
from dynid.signals.recording import StaticRecording
from log_files import ARM, DQ, RNG, TAU, N, Q, T, check
from messages import facts


@pytest.mark.parametrize(
    "names",
    [("t", "q", "dq", "tau"), ("time", "position", "velocity", "torque"), ("timestamp", "pos", "vel", "effort")],
)
def test_npz_arrays(tmp_path, names):
    np.savez(tmp_path / "log.npz", **dict(zip(names, (T, Q, DQ, TAU), strict=True)))
    check(read_recording(tmp_path / "log.npz", ARM))


def test_npz_by_joint_names_and_turned_arrays(tmp_path):
    order = [2, 0, 1]
    np.savez(tmp_path / "log.npz", t=T[:, None], q=Q[:, order].T, tau=TAU[:, order], joint_names=np.array(ARM)[order])
    recording = read_recording(tmp_path / "log.npz", ARM)
    check(recording, velocity=False)
    assert any("turned to rows by joints" in note for note in recording.source.notes)


def test_npz_arrays_of_different_lengths(tmp_path):
    np.savez(tmp_path / "log.npz", t=T, q=Q[:-5], tau=TAU)
    with pytest.raises(InputError, match=f"array 'q' has {N - 5} rows and 't' has {N}, expected as many"):
        read_recording(tmp_path / "log.npz", ARM)
    np.savez(tmp_path / "log.npz", t=T, q=Q, tau=TAU[:-1].T)
    with pytest.raises(InputError, match=f"array 'tau' has {N - 1} rows and 't' has {N}"):
        read_recording(tmp_path / "log.npz", ARM)
    np.savez(tmp_path / "log.npz", q1=Q[:, 0], q2=Q[:, 1], q3=Q[:-1, 2], tau=TAU)
    with pytest.raises(InputError, match=f"array 'q3' has {N - 1} rows and 'q1' has {N}"):
        read_recording(tmp_path / "log.npz", ARM, rate_hz=125.0)
    # what is no motion, or too small to be one, may have any length
    np.savez(tmp_path / "log.npz", t=T, q=Q, dq=DQ, tau=TAU, gravity=np.zeros(3), v=np.ones(3), extra=np.zeros((N - 1, 2)))
    recording = read_recording(tmp_path / "log.npz", ARM)
    check(recording)
    assert "array 'v' has 3 rows where 't' has 40 and is ignored" in recording.source.notes


def test_npz_pose_table(tmp_path):
    root = RNG.normal(size=(N, 3, 3))
    inertia = root @ root.transpose(0, 2, 1)
    np.savez(tmp_path / "poses.npz", q=Q, M=inertia, g=TAU)
    table = read_recording(tmp_path / "poses.npz", ARM)
    assert isinstance(table, StaticRecording)
    np.testing.assert_array_equal(table.inertia, inertia)
    with pytest.raises(InputError, match=facts("3", "2", "position")):
        read_recording(tmp_path / "poses.npz", ARM[:2])


def test_npz_never_unpickles(tmp_path):
    np.savez(tmp_path / "log.npz", t=T, q=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match=r"'q.npy' holds Python objects, expected numbers"):
        read_recording(tmp_path / "log.npz", ARM)


def test_npz_bombs_are_refused_before_they_unpack(tmp_path, monkeypatch):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 3)})
    with zipfile.ZipFile(tmp_path / "liar.npz", "w") as archive:
        archive.writestr("t.npy", header.getvalue())
    with pytest.raises(InputError, match=r"declares shape \(1000000000000, 3\) but holds \d+ bytes"):
        read_recording(tmp_path / "liar.npz", ARM)
    np.savez_compressed(tmp_path / "zeros.npz", t=np.zeros(300_000), q=np.zeros((300_000, 3)))
    monkeypatch.setattr("dynid.io.logs.table.HARMLESS_BYTES", 1000)
    with pytest.raises(InputError, match=r"unpacks from \d+ to \d+ bytes \(\d+ times\), expected at most 200 times"):
        read_recording(tmp_path / "zeros.npz", ARM)
    monkeypatch.setattr("dynid.io.logs.table.HARMLESS_BYTES", 2**30)
    monkeypatch.setenv("DYNID_MEMORY_GB", "0.001")
    with pytest.raises(
        InputError, match=r"needs .* GiB of memory, expected at most 0\.001 GiB; write longer logs as parquet"
    ):
        read_recording(tmp_path / "zeros.npz", ARM)


def test_an_archive_of_very_many_arrays_is_refused_before_any_is_opened(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "log.npz", "w") as archive:
        for k in range(5001):
            archive.writestr(f"x{k}.npy", b"")
    with pytest.raises(InputError, match="holds 5001 arrays, expected at most 5000"):
        read_recording(tmp_path / "log.npz", ARM)


@pytest.fixture(name="h5py")
def _h5py():
    return pytest.importorskip("h5py")


def test_arrays_of_one_log(h5py, tmp_path):
    with h5py.File(tmp_path / "log.h5", "w") as file:
        for name, values in (("time", T), ("robot/qpos", Q), ("robot/qvel", DQ), ("robot/torque", TAU)):
            file[name] = values
        file["camera/image"] = np.zeros((N, 2, 2), dtype=np.uint8)
    check(read_recording(tmp_path / "log.h5", ARM))


def test_episodes_with_commands_and_without_a_clock(h5py, tmp_path):
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


def test_links_to_other_files_are_refused(h5py, tmp_path):
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
def test_a_damaged_file_is_one_sentence(h5py, tmp_path, content):
    (tmp_path / "log.h5").write_bytes(content)
    with pytest.raises(InputError, match="HDF5"):
        read_recording(tmp_path / "log.h5", ARM)


def test_nothing_to_read(h5py, tmp_path):
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["words"] = "text"
    with pytest.raises(InputError, match="no arrays of numbers"):
        read_recording(tmp_path / "log.h5", ARM)


def test_a_tightly_packed_file_is_refused_before_it_unpacks(h5py, tmp_path, monkeypatch):
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file.create_dataset("q", data=np.zeros((300_000, 3)), compression="gzip")
    monkeypatch.setattr("dynid.io.logs.table.HARMLESS_BYTES", 1000)
    with pytest.raises(InputError, match=r"unpacks from \d+ to 7200000 bytes \(\d+ times\), expected at most 200 times"):
        read_recording(tmp_path / "log.h5", ARM)


def test_names_and_groups_that_ask_for_gigabytes_are_not_read(h5py, tmp_path, monkeypatch):
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["t"], file["q"], file["tau"] = T, Q, Q
        file.create_dataset("joint_names", shape=(10**9, 2), dtype="S8", chunks=(1000, 2))
    assert np.allclose(read_recording(tmp_path / "log.h5", ARM).position, Q)
    with h5py.File(tmp_path / "loop.h5", "w") as file:
        group = file.create_group("data/demo_0")
        for k in range(40):  # 40^12 ways through it
            group[f"g{k}"] = group
    with pytest.raises(InputError, match=r"groups lie deeper than 12"):
        read_recording(tmp_path / "loop.h5", ARM)
    with h5py.File(tmp_path / "many.h5", "w") as file:
        file.create_dataset("q", data=np.random.default_rng(0).normal(size=(100_000, 3)))
        for k in range(300):
            file[f"q{k}"] = file["q"]
    monkeypatch.setenv("DYNID_MEMORY_GB", "0.1")
    with pytest.raises(InputError, match=r"needs .* GiB of memory"):
        read_recording(tmp_path / "many.h5", ARM)


def test_joint_names_are_taken_from_lists_of_text_alone(h5py, tmp_path):
    swapped = [ARM[1], ARM[0], *ARM[2:]]
    for number, names in enumerate((np.array(swapped, dtype="S32"), swapped)):
        with h5py.File(tmp_path / f"log{number}.h5", "w") as file:
            file["t"], file["q"], file["tau"] = T, Q, Q
            file.attrs["joint_names"] = names
            file["joints"] = np.arange(3)  # numbers are no names
        found = read_recording(tmp_path / f"log{number}.h5", ARM)
        assert np.allclose(found.position[:, 0], Q[:, 1])


@pytest.mark.parametrize("length", [23, 11])  # of the texts alone, and of the name of the attribute too
def test_names_of_a_length_that_no_file_holds_take_no_memory(tmp_path, h5py, length):
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        file["t"], file["q"], file["tau"] = T, Q, TAU
        file.attrs["joint_names"] = ["a" * length for _ in ARM]
    content = path.read_bytes()
    descriptor = length.to_bytes(4, "little")
    assert content.count(descriptor) >= len(ARM)
    path.write_bytes(content.replace(descriptor, (2**32 - 16).to_bytes(4, "little")))
    before = resource.getrlimit(resource.RLIMIT_AS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError):
        read_recording(path, ARM)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 2**20  # in kilobytes: a gigabyte
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_whole_numbers_stay_whole_and_scalars_are_no_columns():
    """Counts of a clock in nanoseconds are longer than a float can hold; small types become floats of eight bytes."""
    found = table_of_arrays(
        "x",
        "npz",
        {
            "t": np.array([[2**60, 2**60 + 1]]),
            "u": np.array([1, 2], np.uint8),
            "q": np.ones((2, 3), np.float32),
            "s": np.array(5),
        },
    )
    (read,) = found.read(["t", "u", "q"], 2, 0)
    assert read["t"].dtype == np.int64
    assert np.diff(read["t"]).tolist() == [1]
    assert (read["u"].dtype, read["q"].dtype) == (np.float64, np.float64)
    assert "s" not in found.shapes


def test_an_array_of_more_than_half_of_the_rows_is_meant_as_motion():
    for rows, refused in ((21, True), (20, False)):
        arrays = {"t": T, "q": Q, "tau": Q, "dq": Q[:rows]}
        if refused:
            with pytest.raises(InputError, match=f"array 'dq' has {rows} rows and 't' has {N}"):
                table_of_arrays("x", "npz", arrays)
        else:
            assert (
                f"array 'dq' has {rows} rows where 't' has {N} and is ignored" in table_of_arrays("x", "npz", arrays).notes
            )


def test_a_clock_of_two_columns_has_as_many_rows(tmp_path):
    assert table_of_arrays("x", "npz", {"t": np.zeros((N, 2)), "q": Q}).n_rows == N


def test_what_is_not_packed_is_read_whatever_its_size(h5py, tmp_path, monkeypatch):
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["t"], file["q"], file["dq"], file["tau"] = T, Q, DQ, TAU
    monkeypatch.setattr("dynid.io.logs.table.HARMLESS_BYTES", 100)
    check(read_recording(tmp_path / "log.h5", ARM))


def test_one_row_is_a_table_and_none_is_not():
    assert table_of_arrays("x", "npz", {"t": np.zeros((1, 1)), "q": np.zeros((1, 3))}).n_rows == 1
    with pytest.raises(InputError, match="the arrays have no rows"):
        table_of_arrays("x", "npz", {"t": np.zeros(0), "q": np.zeros((0, 3))})


def test_a_limit_of_arrays_is_the_number_that_is_still_read(tmp_path, monkeypatch):
    np.savez(tmp_path / "log.npz", t=T, q=Q, dq=DQ, tau=TAU)
    monkeypatch.setattr("dynid.io.logs.formats.arrays.MOST_ARRAYS", 4)
    check(read_recording(tmp_path / "log.npz", ARM))
    monkeypatch.setattr("dynid.io.logs.formats.arrays.MOST_ARRAYS", 3)
    with pytest.raises(InputError, match="holds 4 arrays, expected at most 3"):
        read_recording(tmp_path / "log.npz", ARM)


def opened(path):
    return Hdf5Format().open(path, OpenOptions())


def test_only_episodes_have_an_index(h5py, tmp_path):
    """A group of data without episodes is one log; with one episode it still is."""
    for name, group in (("plain", "data"), ("one", "data/demo_3")):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file[f"{group}/t"], file[f"{group}/q"] = T, Q
        assert set(opened(tmp_path / f"{name}.h5").shapes) == {"t", "q"}
    with h5py.File(tmp_path / "two.h5", "w") as file:
        for number in (7, 3):
            file[f"data/demo_{number}/t"], file[f"data/demo_{number}/q"] = T[: 10 + number], Q[: 10 + number]
        file["data/mask_x/t"], file["data/config"] = T, np.zeros(3)  # no number behind the line, and no group
    table = opened(tmp_path / "two.h5")
    (read,) = table.read(["episode_index"], 100, 0)
    assert read["episode_index"].tolist() == [3] * 13 + [7] * 17


def test_arrays_of_another_length_are_named(h5py, tmp_path):
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["t"], file["q"], file["count"] = T, Q, np.arange(3)
    table = opened(tmp_path / "log.h5")
    assert set(table.shapes) == {"t", "q"}
    assert table.notes == ("array 'count' has another length and is ignored",)
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        file["t"], file["q"] = np.zeros(0), np.zeros((0, 3))
    with pytest.raises(InputError, match="holds no arrays of numbers of one length"):
        opened(tmp_path / "empty.h5")


def test_whole_numbers_of_hdf5_stay_whole(h5py, tmp_path):
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["t"], file["q"] = np.array([2**60, 2**60 + 1]), np.ones((2, 3), np.float32)
    (read,) = opened(tmp_path / "log.h5").read(["t", "q"], 2, 0)
    assert np.diff(read["t"]).tolist() == [1]
    assert read["q"].dtype == np.float64


def test_limits_of_depth_and_number_are_those_that_are_still_read(h5py, tmp_path, monkeypatch):
    for depth, refused in ((12, False), (13, True)):
        path = tmp_path / f"deep{depth}.h5"
        with h5py.File(path, "w") as file:
            inner = "/".join("g" * depth)
            file[f"{inner}/t"], file[f"{inner}/q"] = T, Q
        if refused:
            with pytest.raises(InputError, match="groups lie deeper than 12"):
                opened(path)
        else:
            assert len(opened(path).shapes) == 2
    with h5py.File(tmp_path / "few.h5", "w") as file:
        file["g/t"], file["g/q"] = T, Q  # with the group three
    monkeypatch.setattr("dynid.io.logs.formats.arrays.MOST_DATASETS", 3)
    assert len(opened(tmp_path / "few.h5").shapes) == 2
    monkeypatch.setattr("dynid.io.logs.formats.arrays.MOST_DATASETS", 2)
    with pytest.raises(InputError, match="holds more than 2 arrays and groups"):
        opened(tmp_path / "few.h5")
    with h5py.File(tmp_path / "episodes.h5", "w") as file:
        for number in range(3):
            file.create_group(f"data/demo_{number}")
    with pytest.raises(InputError, match="holds 3 episodes, expected at most 2"):
        opened(tmp_path / "episodes.h5")
    monkeypatch.setattr("dynid.io.logs.formats.arrays.MOST_DATASETS", 3)
    with pytest.raises(InputError, match="holds no arrays of numbers of one length"):
        opened(tmp_path / "episodes.h5")


def test_a_table_of_names_is_no_list_of_them(h5py, tmp_path):
    swapped = [ARM[1], ARM[0], *ARM[2:]]
    for shape, taken in (((3,), True), ((1, 3), False), ((3, 1), False)):
        path = tmp_path / f"names{shape[-1]}{len(shape)}.h5"
        with h5py.File(path, "w") as file:
            file["t"], file["q"], file["tau"] = T, Q, Q
            file["joint_names"] = np.array(swapped, dtype="S32").reshape(shape)
        found = read_recording(path, ARM)
        assert np.allclose(found.position[:, 0], Q[:, 1 if taken else 0])
    with h5py.File(tmp_path / "one.h5", "w") as file:
        file["t"], file["q"], file["tau"] = T, Q[:, 0], Q[:, 0]
        file.attrs["joint_names"] = "elbow"
    assert read_recording(tmp_path / "one.h5", ["elbow"]).joint_names == ("elbow",)


def test_a_table_of_texts_that_has_no_end_is_refused(h5py, tmp_path):
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        file["t"], file["q"] = np.arange(5.0), np.zeros((5, 2))
        file.attrs["joint_names"] = ["elbow", "wrist"]
    Hdf5Format().open(path, OpenOptions())
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL")
    free = heap + 16 + 2 * 24  # behind the two names
    assert content[free : free + 2] == b"\0\0"
    content[free + 8 : free + 16] = bytes(8)  # free space of no size: the library would read it again and again
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"log.h5: its table of texts is damaged \(an object of no size at byte {free}\)$"):
        Hdf5Format().open(path, OpenOptions())
