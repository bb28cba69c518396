"""Whatever a log looks like, reading gives the right numbers or one clear sentence, never another exception."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dynid.errors import InputError
from dynid.io.logs.read import open_recording, read_recording, write_recording
from dynid.signals.recording import Recording

SUFFIXES = st.sampled_from([".csv", ".parquet", ".npz"])
WORDS = {
    "position": ("q", "pos", "position", "actual_q"),
    "velocity": ("dq", "qd", "vel", "velocity"),
    "torque": ("tau", "torque", "effort"),
}
JOINT = st.text("abcdefghijklmnoprsuwxyz", min_size=3, max_size=8)


def in_folder(action):
    with tempfile.TemporaryDirectory() as folder:
        return action(Path(folder))


def write(path: Path, columns: dict[str, np.ndarray]) -> Path:
    if path.suffix == ".csv":
        stream = io.StringIO()
        stream.write(",".join(columns) + "\n")
        for row in zip(*columns.values(), strict=True):
            stream.write(",".join(repr(value.item()) for value in row) + "\n")
        path.write_text(stream.getvalue())
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        np.savez(path, **columns)
    return path


def signals(n: int, joints: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(n, joints)) for name in WORDS}


@given(
    names=st.lists(JOINT, min_size=1, max_size=5, unique=True).filter(
        lambda names: not {f"{name}_joint" for name in names} & set(names)
    ),
    data=st.data(),
    suffix=SUFFIXES,
    seed=st.integers(0, 2**31),
)
def test_columns_and_joint_names_in_any_order(names, data, suffix, seed):
    n = 12
    values = signals(n, len(names), seed)
    time = np.arange(n) * 0.01
    form = data.draw(st.sampled_from(["{x}_{joint}", "{joint}.{x}", "{x}.{joint}", "{joint}/{x}"]))
    words = {name: data.draw(st.sampled_from(options)) for name, options in WORDS.items()}
    columns = {data.draw(st.sampled_from(["t", "time", "timestamp", "stamp"])): time}
    for quantity, word in words.items():
        columns |= {form.format(x=word, joint=joint): values[quantity][:, k] for k, joint in enumerate(names)}
    columns["temperature"] = time
    order = data.draw(st.permutations(list(columns)))
    columns = {name: columns[name] for name in order}
    robot = data.draw(st.permutations(names))
    recording = in_folder(lambda folder: read_recording(write(folder / f"log{suffix}", columns), robot))
    chosen = [names.index(joint) for joint in robot]
    np.testing.assert_array_equal(recording.time, time)
    for quantity in WORDS:
        np.testing.assert_array_equal(getattr(recording, quantity), values[quantity][:, chosen])


@given(
    joints=st.integers(1, 12),
    start=st.sampled_from([0, 1]),
    form=st.sampled_from(["{x}{k}", "{x}_{k}", "{x}[{k}]", "joint{k}_{x}", "J{k}.{x}", "{x}_joint_{k}"]),
    suffix=SUFFIXES,
    seed=st.integers(0, 2**31),
    data=st.data(),
)
def test_numbers_from_zero_or_one_in_any_order(joints, start, form, suffix, seed, data):
    values = signals(9, joints, seed)
    time = np.arange(9) * 0.002
    columns = {"t": time}
    for quantity, word in {"position": "q", "velocity": "dq", "torque": "tau"}.items():
        columns |= {form.format(x=word, k=k + start): values[quantity][:, k] for k in range(joints)}
    columns = {name: columns[name] for name in data.draw(st.permutations(list(columns)))}
    names = [f"link_{chr(97 + k)}" for k in range(joints)]
    recording = in_folder(lambda folder: read_recording(write(folder / f"log{suffix}", columns), names))
    for quantity in WORDS:
        np.testing.assert_array_equal(getattr(recording, quantity), values[quantity])


@given(
    n=st.integers(4, 60),
    seed=st.integers(0, 2**31),
    suffix=SUFFIXES,
    nan_share=st.floats(0.0, 0.9),
    chunk_rows=st.integers(1, 70),
)
def test_nan_runs_repeated_and_unsorted_stamps(n, seed, suffix, nan_share, chunk_rows):
    """Against the plain statement: rows without NaN, the first of each stamp, in order of stamps."""
    rng = np.random.default_rng(seed)
    time = rng.integers(0, n, size=n) * 0.01
    values = signals(n, 2, seed)
    for array in values.values():
        start = rng.integers(0, n)
        array[start : start + int(nan_share * rng.integers(0, n)), rng.integers(0, 2)] = np.nan
    expected: dict[float, int] = {}
    for row in range(n):
        if all(np.isfinite(array[row]).all() for array in values.values()):
            expected.setdefault(time[row], row)
    rows = [expected[stamp] for stamp in sorted(expected)]
    columns = {"t": time} | {
        f"{word}{k + 1}": values[name][:, k]
        for name, word in (("position", "q"), ("velocity", "dq"), ("torque", "tau"))
        for k in range(2)
    }

    def read(folder: Path):
        path = write(folder / f"log{suffix}", columns)
        return read_recording(path, ["a", "b"]), open_recording(path, ["a", "b"], chunk_rows=chunk_rows).read()

    if len(rows) < 2:
        with pytest.raises(InputError):
            in_folder(read)
        return
    recording, streamed = in_folder(read)
    np.testing.assert_array_equal(recording.time, time[rows])
    for name, array in values.items():
        np.testing.assert_array_equal(getattr(recording, name), array[rows])
        np.testing.assert_array_equal(getattr(streamed, name), array[rows])
    assert recording.source.n_rows_in_file == n
    assert recording.source.n_dropped == n - len(rows)


@given(n=st.integers(3, 60), chunk_rows=st.integers(1, 70))
def test_chunks_hold_the_log(n, chunk_rows):
    values = signals(n, 2, n)
    whole = Recording(time=np.arange(n) * 0.1, joint_names=("a", "b"), **values)

    def walk(folder: Path):
        path = write_recording(whole, folder / "log.parquet")
        return list(open_recording(path, ["a", "b"], chunk_rows=chunk_rows))

    chunks = in_folder(walk)
    assert all(chunk.n_samples == chunk_rows for chunk in chunks[:-1])
    np.testing.assert_array_equal(np.concatenate([chunk.time for chunk in chunks]), whole.time)
    np.testing.assert_array_equal(np.concatenate([chunk.torque for chunk in chunks]), whole.torque)


@given(
    rate_hz=st.floats(25.0, 1900.0),
    unit=st.sampled_from(["s", "ms", "us", "ns"]),
    named=st.booleans(),
    date=st.booleans(),
    suffix=SUFFIXES,
)
def test_clocks_in_any_unit_from_any_origin(rate_hz, unit, named, date, suffix):
    per_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    time = np.arange(30) / rate_hz
    raw = (time + (1.7e9 if date else 0.0)) * per_second
    columns = {f"time_{unit}" if named else "time": raw, "q1": time}
    recording = in_folder(lambda folder: read_recording(write(folder / f"log{suffix}", columns), ["a"]))
    # A date in seconds as a float is good to a quarter of a microsecond.
    np.testing.assert_allclose(recording.time - recording.time[0], time, rtol=0, atol=1e-6 if date else 1e-9)
    np.testing.assert_array_equal(recording.position[:, 0], time)


@given(
    factor=st.sampled_from([("deg", np.pi / 180), ("rad", 1.0), ("mm", 1e-3), ("rev", 2 * np.pi)]),
    seed=st.integers(0, 1000),
)
def test_units_scale_and_wrong_units_are_named(factor, seed):
    unit, scale = factor
    position = signals(6, 2, seed)["position"]
    columns = {"t": np.arange(6) * 0.1, "q1": position[:, 0], "q2": position[:, 1]}

    def read(folder: Path, units: dict[str, str]):
        return read_recording(write(folder / "log.parquet", columns), ["a", "b"], units=units)

    recording = in_folder(lambda folder: read(folder, {"position": unit}))
    np.testing.assert_allclose(recording.position, position * scale, rtol=1e-15)
    with pytest.raises(InputError, match="unknown unit of position"):
        in_folder(lambda folder: read(folder, {"position": unit + "x"}))
    with pytest.raises(InputError, match="unknown quantity in units"):
        in_folder(lambda folder: read(folder, {"angle": unit}))


NAMES = st.one_of(
    st.sampled_from(
        ["t", "time", "q1", "q2", "q3", "dq1", "dq2", "tau1", "tau2", "i1", "i2", "M11", "M21", "M22", "g1", "g2",
         "fx", "fy", "fz", "mx", "my", "mz", "q_a", "a.q", "b.q", "tau_a", "episode_index", "sec", "nanosec", "q[0]"]
    ),
    st.text(max_size=6),
)  # fmt: skip
CELLS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", "nan", "x", "1e400", "-", "0x10", "1,5", '"', "NULL", "1 2", "\t"]),
)


def refusal(action) -> str:
    """The sentence with which ``action`` is refused, or nothing where it succeeds."""
    try:
        assert action() >= 1
    except InputError as error:
        return str(error)
    return ""


def read_or_refuse(content: bytes, name: str) -> None:
    def read(folder: Path) -> None:
        path = folder / name
        path.write_bytes(content)
        for kind in (None, "wrench", "static"):
            text = refusal(lambda kind=kind: read_recording(path, ["a", "b"], kind=kind).n_samples)
            assert not text or path.name in text
            assert "\n" not in text
        stream = refusal(lambda: sum(part.n_samples for part in open_recording(path, ["a", "b"], chunk_rows=3)))
        assert "\n" not in stream

    in_folder(read)


@given(
    header=st.lists(NAMES, min_size=1, max_size=12),
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=12), max_size=6),
    separator=st.sampled_from([",", ";", "\t", " "]),
)
def test_any_text_table_is_read_or_refused(header, rows, separator):
    lines = [separator.join(header), *(separator.join(row) for row in rows)]
    read_or_refuse("\n".join(lines).encode("utf-8", "surrogatepass"), "log.csv")


@given(
    columns=st.dictionaries(
        NAMES,
        st.one_of(
            hnp.arrays(np.float64, 7),
            hnp.arrays(np.int64, 7),
            hnp.arrays(np.float32, (7, 2)),
            hnp.arrays(np.bool_, 7),
            st.just(np.arange(7) * 0.1),
            st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=7, max_size=7),
        ),
        min_size=1,
        max_size=10,
    )
)
def test_any_parquet_is_read_or_refused(columns):
    arrays = {
        name: pa.array(value.tolist()) if isinstance(value, np.ndarray) and value.ndim == 2 else pa.array(value)
        for name, value in columns.items()
    }
    stream = io.BytesIO()
    pq.write_table(pa.table(arrays), stream)
    read_or_refuse(stream.getvalue(), "log.parquet")


@given(
    columns=st.dictionaries(
        st.sampled_from(["t", "q", "dq", "tau", "M", "g", "joint_names", "x"]),
        st.one_of(
            hnp.arrays(
                st.sampled_from([np.float64, np.int32, np.uint64, np.bool_, np.complex128]),
                hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
            ),
            st.sampled_from([np.arange(4) * 0.1, np.array(["a", "b"]), np.arange(8.0).reshape(4, 2)]),
        ),
        max_size=5,
    )
)
def test_any_npz_is_read_or_refused(columns):
    stream = io.BytesIO()
    np.savez(stream, **columns)
    read_or_refuse(stream.getvalue(), "log.npz")


@given(
    content=st.binary(max_size=200),
    name=st.sampled_from(["log.csv", "log.parquet", "log.npz", "log.mcap", "log.db3", "log.bag", "log.xyz"]),
    magic=st.sampled_from([b"", b"PAR1", b"PK\x03\x04", b"\x89MCAP0\r\n", b"SQLite format 3\x00", b"#ROSBAG V2.0\n"]),
)
def test_any_bytes_are_read_or_refused(content, name, magic):
    read_or_refuse(magic + content, name)


@given(data=st.data(), suffix=st.sampled_from([".parquet", ".npz"]))
def test_damaged_files_are_read_or_refused(data, suffix):
    values = signals(40, 2, 0)
    recording = Recording(time=np.arange(40) * 0.01, joint_names=("a", "b"), **values)
    content = bytearray(in_folder(lambda folder: write_recording(recording, folder / f"a{suffix}").read_bytes()))
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    else:
        for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=5)):
            content[place] ^= data.draw(st.integers(1, 255))
    read_or_refuse(bytes(content), f"log{suffix}")
