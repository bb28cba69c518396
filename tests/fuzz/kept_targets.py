"""Readers of what dynid itself keeps (stores, checkpoints) and of datasets in folders, with the faults that fit their files."""

from __future__ import annotations

import datetime
import io
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dynid
from dynid.apps.fleet.row_query import list_contents
from dynid.apps.online.checkpoint import packed, unpacked, write_checkpoint
from dynid.apps.online.options import OnlineSettings
from dynid.apps.online.session import Session
from dynid.apps.online.sources import StandardInput
from dynid.apps.online.watcher import Watcher
from dynid.files import read_arrays
from dynid.io.demo import demo_robot
from fuzz.mutate import ODD_TEXTS, mutate_bytes
from online_streams import Stream, stream

_WATCH = {"learn": 1.0, "block": 0.1}
_TAKEN = 500


def mutate_row(rng: random.Random, content: bytes) -> bytes:
    """A row of a store with a column changed, cut, doubled, of another type or gone, under the metadata it had."""
    if rng.random() < 0.25:
        return mutate_bytes(rng, content)
    table = pq.read_table(io.BytesIO(content))
    metadata = table.schema.metadata
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(table.num_columns)
        field = table.schema.field(place)
        choice = rng.randrange(6)
        if choice == 0 and table.num_columns > 1:
            table = table.remove_column(place)
        elif choice == 1:
            table = table.set_column(place, field.name, pa.array([rng.choice(ODD_TEXTS)] * table.num_rows))
        elif choice == 2:
            table = table.set_column(place, field, pa.array([None] * table.num_rows, field.type))
        elif choice == 3:
            table = table.set_column(place, rng.choice(table.column_names), table.column(place))
        elif choice == 4:
            table = pa.concat_tables([table, table]) if rng.random() < 0.3 else table.slice(0, rng.randrange(2))
        else:
            values = table.column(place)[0].as_py() if table.num_rows else None
            table = table.set_column(place, field, pa.array([_odd(rng, values)] * table.num_rows, field.type))
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), out)
    return out.getvalue()


def _odd(rng: random.Random, value: Any) -> Any:
    """A value of the same type that nobody wrote."""
    if isinstance(value, list):
        if not value or rng.random() < 0.3:
            return []
        k = rng.randrange(len(value))
        return rng.choice(([*value, value[k]], value[:k], [*value[:k], _odd(rng, value[k]), *value[k + 1 :]], value * 2))
    if isinstance(value, dict):
        return {name: _odd(rng, item) for name, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_odd(rng, item) for item in value)
    if isinstance(value, float):
        return rng.choice((float("nan"), float("inf"), -value, 0.0, 1e300, 1e-320))
    if isinstance(value, datetime.date):
        return rng.choice((datetime.date.min, datetime.date.max))
    if isinstance(value, int):
        return rng.choice((-1, 0, 2**62, value + 1))
    return rng.choice(("", "a" * 300, "../..", "é", "\x00"))


def make_store(folder: Path) -> Path:
    """A store of two robots, three days each of the same few seconds."""
    robot = demo_robot("viscous").only(["shoulder_pitch", "elbow"])
    dynid.write_urdf(robot, folder / "arm.urdf")
    for seed in range(2):
        log = folder / f"log{seed}.csv"
        dynid.write_recording(dynid.demo_recording(robot, seconds=4.0, torque_noise=0.01, seed=seed), log)
        options = {"effects": "viscous", "velocity": "logged", "cutoff_hz": 15.0, "method": "wls"} if seed == 0 else {}
        dynid.add_to_store(
            folder / "arm.urdf", log, folder / "store", robot_id=f"R{seed}", day=f"2026-03-0{seed + 1}", **options
        )
    return folder / "store"


def read_store(path: Path) -> object:
    """List it, and identify its robots anew."""
    store = dynid.open_store(path)
    list_contents(store)
    for _, digest in next(iter(store.entries(light=True))).logs:
        store.place_of(digest)
    with np.errstate(all="ignore"):
        return dynid.identify_store(store).summary()


def mutate_checkpoint(rng: random.Random, content: bytes) -> bytes:
    """The state of a checkpoint with values of other types and shapes, or the archive's own bytes."""
    if rng.random() < 0.2:
        return mutate_bytes(rng, content)
    state = unpacked(read_arrays(content, Path("watch.npz")))
    holder, key = _some_place(rng, state)
    value = holder[key]
    if isinstance(value, np.ndarray) and rng.random() < 0.8:
        flat = value.copy()
        if flat.size and rng.random() < 0.5:
            flat.reshape(-1)[rng.randrange(flat.size)] = (
                rng.choice((np.nan, np.inf, 1e300, -1.0)) if flat.dtype.kind == "f" else -1
            )
        holder[key] = rng.choice(
            (flat, value[..., :1], value[1:] if value.ndim else value, value.reshape(-1), value.astype(str))
        )
    else:
        holder[key] = _other_kind(rng, value)
    out = io.BytesIO()
    np.savez(out, **packed(state))
    return out.getvalue()


def _other_kind(rng: random.Random, value: Any) -> Any:
    """A value of another kind, or the same with a place changed."""
    if isinstance(value, dict | list) and rng.random() < 0.5:
        return [*value, 7] if isinstance(value, list) else {**value, "more": 7}
    return rng.choice(
        (None, True, -7, 2**62, 1.5, float("nan"), float("inf"), "text", "array:a0", "array:none", [], {}, [[]], [1, 2])
    )


def _some_place(rng: random.Random, tree: Any) -> tuple[Any, Any]:
    """A holder inside a state, and one of its keys."""
    while True:
        key = rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
        if not isinstance(tree[key], dict | list) or not tree[key] or rng.random() < 0.1:
            return tree, key
        tree = tree[key]


@cache
def _stream() -> Stream:
    return stream(3.0)


def make_checkpoint(folder: Path) -> Path:
    lines = _stream().json_lines()
    watcher = Watcher(_stream().robot, settings=OnlineSettings(**_WATCH))
    for line in lines[:_TAKEN]:
        list(watcher.feed(line))
    (folder / "log").write_text("\n".join(lines) + "\n")
    taken = sum(len(line) + 1 for line in lines[:_TAKEN])
    write_checkpoint(folder / "watch.npz", {"position": taken, "source": "StandardInput", "watcher": watcher.state()})
    return folder / "watch.npz"


def read_checkpoint(path: Path) -> object:
    """Go on from it."""
    options = OnlineSettings(**_WATCH, checkpoint=str(path), resume=True)
    with path.with_name("log").open("rb") as source, np.errstate(all="ignore"):
        return list(Session(Watcher(_stream().robot, settings=options), StandardInput(source), lambda _: None).run())


def make_lines(folder: Path) -> Path:
    """Lines of a stream, some of every form."""
    (folder / "lines.txt").write_text("\n".join(_stream().json_lines()[:60]) + "\n")
    return folder / "lines.txt"


def read_lines(path: Path) -> object:
    """Take them as a watch does; reports do not matter here."""
    watcher = Watcher(_stream().robot, settings=OnlineSettings(**_WATCH))
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        list(watcher.feed(line))
    return watcher.finish()


def make_lerobot(folder: Path) -> Path:
    """A dataset of LeRobot: lists of joints in parquet, their names in ``meta/info.json``."""
    (folder / "data" / "chunk-000").mkdir(parents=True)
    (folder / "meta").mkdir()
    t = np.arange(40) * 0.02
    q = np.stack([np.sin(t), np.cos(t)], axis=1).astype(np.float32)
    lists = pa.list_(pa.float32(), 2)
    columns = {
        "timestamp": pa.array(t),
        "observation.state": pa.array(q.tolist(), lists),
        "action": pa.array(q.tolist(), lists),
    }
    path = folder / "data" / "chunk-000" / "episode_000000.parquet"
    pq.write_table(pa.table({**columns, "episode_index": pa.array([0] * 40)}), path)
    names = {"motors": ["shoulder", "elbow"]}
    features = {name: {"dtype": "float32", "shape": [2], "names": names} for name in ("observation.state", "action")}
    (folder / "meta" / "info.json").write_text(json.dumps({"fps": 50, "features": features}))
    return path


def make_hdf5(folder: Path) -> Path:
    import h5py

    t = np.arange(40) * 0.01
    with h5py.File(folder / "log.h5", "w") as file:
        file["t"] = t
        for name in ("q", "dq", "tau"):
            file[name] = np.stack([np.sin(t), np.cos(t)], axis=1)
        file.attrs["joint_names"] = ["shoulder", "elbow"]
    return folder / "log.h5"
