"""The queue between the thread of the rows and the one that answers."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dynid.watch.due import Due

LONG_S, SHORT_S = 20.0, 0.05


def begun(work: Callable[[], object]) -> threading.Thread:
    """A thread that does this."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def still_waits(thread: threading.Thread) -> bool:
    thread.join(SHORT_S)
    return thread.is_alive()


def ends(thread: threading.Thread) -> bool:
    thread.join(LONG_S)
    return not thread.is_alive()


def test_items_come_in_their_order_and_none_in_time_is_none() -> None:
    due: Due[int] = Due()
    for item in range(5):
        due.put(item)
    assert [due.get(LONG_S) for _ in range(5)] == [0, 1, 2, 3, 4]
    assert due.get(SHORT_S) is None


def test_who_puts_waits_for_room() -> None:
    due: Due[int] = Due(most=2)
    writer = begun(lambda: [due.put(item) for item in range(3)])
    assert still_waits(writer)
    assert due.get(LONG_S) == 0
    assert ends(writer)
    assert [due.get(LONG_S), due.get(LONG_S)] == [1, 2]


def test_settled_is_what_was_dealt_with_not_what_was_taken() -> None:
    due: Due[int] = Due()
    due.put(1)
    waiting = begun(due.settle)
    assert due.get(LONG_S) == 1
    assert still_waits(waiting)
    due.done()
    assert ends(waiting)


def test_nobody_waits_for_one_who_does_not_answer_any_more() -> None:
    due: Due[int] = Due(most=1)
    due.put(1)
    threads = [begun(lambda: due.put(2)), begun(due.settle)]
    assert all(still_waits(thread) for thread in threads)
    due.close()
    assert all(ends(thread) for thread in threads)
    assert due.closed
