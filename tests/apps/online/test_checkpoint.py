"""Checkpoints: numbers alone, whole or absent, and refused in one sentence where they are not what a watch writes."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.apps.online.checkpoint import check_like, packed, read_checkpoint, unpacked, write_checkpoint
from dynid.apps.online.options import OnlineSettings
from dynid.apps.online.session import Session
from dynid.apps.online.sources import StandardInput
from dynid.apps.online.watcher import Watcher
from dynid.errors import InputError
from online_streams import Stream, stream


def test_a_checkpoint_leaves_nothing_behind_in_memory(tmp_path: Path) -> None:
    """The collector hardly runs in a watch: what a checkpoint copies has to go when it is written."""
    state = {"rows": [np.zeros(1000)], "block": {"R": np.ones(1000)}}
    gone = weakref.ref(state["rows"][0])
    gc.disable()
    try:
        write_checkpoint(tmp_path / "watch.npz", state)
        del state
        assert gone() is None
    finally:
        gc.enable()


def test_checkpoint_is_numbers_alone(tmp_path: Path) -> None:
    state = {
        "a": np.arange(3.0),
        "b": [1, None, {"c": np.zeros((2, 0)), "d": float("nan")}],
        "e": "text",
        "f": np.float64(0.1),
    }
    path = tmp_path / "watch.npz"
    write_checkpoint(path, state)
    found = read_checkpoint(path)
    np.testing.assert_array_equal(found["a"], state["a"])
    assert found["b"][2]["c"].shape == (2, 0)
    assert found["f"] == 0.1
    assert repr(unpacked(packed(found))) == repr(found)
    for content in (b"", b"PK\x03\x04 broken", np.zeros(3).tobytes()):
        path.write_bytes(content)
        with pytest.raises(InputError, match="no checkpoint of a watch"):
            read_checkpoint(path)
    np.savez(path, tree=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match="no checkpoint of a watch"):
        read_checkpoint(path)
    with pytest.raises(InputError, match="there is no checkpoint"):
        read_checkpoint(tmp_path / "absent.npz")


def test_a_state_is_compared_by_names_kinds_and_shapes() -> None:
    like = {"a": np.zeros((0, 2)), "b": [1.0], "c": {}, "d": None, "e": True}
    good = {"a": np.ones((5, 2)), "b": [1, 2.0], "c": {"bad line": 3}, "d": "anything", "e": False}
    check_like(good, like, "state")
    for name, wrong in (("a", np.ones(5)), ("a", np.ones((5, 3))), ("b", 1.0), ("b", ["x"]), ("c", {"x": "y"}), ("e", 1)):
        with pytest.raises(InputError, match=f"state, {name}.*start anew without --resume"):
            check_like(good | {name: wrong}, like, "state")
    with pytest.raises(InputError, match="not what a watch"):
        check_like({"a": good["a"]}, like, "state")


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of everything in a state."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield (*path, key)
        yield from places(value, (*path, key))


WRONG: tuple[Callable[[Any], Any], ...] = (
    lambda value: None,
    lambda value: "text",
    lambda value: [],
    lambda value: {},
    lambda value: -7 if not isinstance(value, np.ndarray) else value[1:],
    lambda value: 10**15 if not isinstance(value, np.ndarray) else value.astype("U8"),
    lambda value: float("nan") if not isinstance(value, np.ndarray) else value.reshape(1, -1),
)


@pytest.fixture(scope="module")
def given() -> Stream:
    return stream(3.2)


def test_mutated_checkpoints_go_on_or_are_refused_in_one_sentence(given: Stream, tmp_path: Path) -> None:
    """Whatever stands in a file: an answer, or one sentence; never a traceback, never rows from outside of an array."""
    lines, log, file = given.json_lines(), tmp_path / "log", tmp_path / "watch.npz"
    watcher = Watcher(given.robot, settings=OnlineSettings(learn=1.0, block=0.1))
    for line in lines[:600]:
        list(watcher.feed(line))
    log.write_text("\n".join(lines) + "\n")
    taken = sum(len(line) + 1 for line in lines[:600])
    whole = unpacked(packed({"position": taken, "source": "StandardInput", "watcher": watcher.state()}))
    settings = OnlineSettings(learn=1.0, block=0.1, checkpoint=str(file), resume=True)
    rng, refused, bad = np.random.default_rng(0), list[str](), list[Any]()
    every = [(path, wrong) for path in places(whole) for wrong in (*WRONG, None)]
    for path, wrong in (every[k] for k in rng.permutation(len(every))[:250]):
        state = copy.deepcopy(whole)
        holder = state
        for key in path[:-1]:
            holder = holder[key]
        if wrong is None:
            del holder[path[-1]]
        else:
            holder[path[-1]] = wrong(holder[path[-1]])
        write_checkpoint(file, state)
        with log.open("rb") as source:
            session = Session(Watcher(given.robot, settings=settings), StandardInput(source), lambda text: None)
            try:
                assert list(session.run())
            except InputError as error:
                refused.append(str(error))
            except Exception as error:
                bad.append((path, wrong, error))
    assert not bad, "\n".join(f"{path}: {error!r}" for path, _, error in bad)
    assert len(refused) > 150
    assert not any("\n" in text for text in refused)
