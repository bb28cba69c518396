"""Where lines come from: nothing is lost between a sender and the backlog, whatever either of them does."""

from __future__ import annotations

import threading
import time

import numpy as np

from dynid.apps.online.sources import LONGEST_LINE, Backlog, Batch, Lines


def test_backlog_holds_the_reader_back_and_loses_nothing() -> None:
    backlog = Backlog(most=10)
    sent = [b"%d" % k for k in range(200)]

    def reader() -> None:
        for line in sent:
            backlog.put(Batch(0.0, [line], [0]))
        backlog.close()

    thread = threading.Thread(target=reader)
    thread.start()
    time.sleep(0.1)
    taken: list[bytes] = []
    while not backlog.ended:
        batch = backlog.get(1.0)
        taken += [] if batch is None else batch.lines
    thread.join()
    assert taken == sent
    assert backlog.stalls > 0
    assert backlog.longest == 10


def test_lines_in_any_pieces() -> None:
    data, rng = b"one\ntwo\r\n\nthree", np.random.default_rng(0)
    for _ in range(20):
        cuts = sorted(rng.integers(len(data) + 1, size=4).tolist())
        lines = Lines(100)
        made = [lines.cut(data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        found = [line for part, _ in made for line in part] + lines.end()[0]
        assert found == [b"one", b"two\r", b"", b"three"]
        assert [at for _, part in made for at in part] == [104, 109, 110]
    endless = Lines()
    assert len(endless.cut(b"x" * (3 * LONGEST_LINE))[0]) == 2
