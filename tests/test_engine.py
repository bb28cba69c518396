import operator
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.engine import Engine, Processes, Serial, Threads, engine_from, usable_cores
from dynid.errors import InputError, UnknownNameError
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Viscous
from dynid.regression.factor import build_regression
from dynid.signals.samples import Samples
from engine_work import process_of, sixth_of
from messages import facts
from problems import random_tree

HERE = [Serial(), Threads(1), Threads(3)]
names = [repr(engine) for engine in HERE]


@pytest.mark.parametrize("engine", HERE, ids=names)
def test_results_come_in_the_order_of_the_items(engine):
    def slow_first(k):
        time.sleep(0.02 if k == 0 else 0.0)
        return k * k

    assert list(engine.map(slow_first, range(20))) == [k * k for k in range(20)]
    assert list(engine.map(slow_first, [])) == []


@pytest.mark.parametrize("engine", HERE, ids=names)
def test_progress_is_told_after_every_item(engine):
    told = []
    list(engine.map(abs, [-1, -2, -3], progress=lambda done, count: told.append((done, count))))
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("engine", HERE, ids=names)
def test_a_failure_keeps_its_kind_and_names_its_item(engine):
    done = []
    with pytest.raises(ZeroDivisionError) as caught:
        done.extend(engine.map(lambda k: 6 // k, [3, 2, 0, 1]))  # keeps what came before the failure
    assert done == [2, 3]
    assert "in item 2 of 4" in caught.value.__notes__


@pytest.mark.parametrize("engine", HERE, ids=names)
def test_an_interrupt_leaves_what_is_done_and_starts_nothing_more(engine):
    started, done = [], []

    def work(k):
        started.append(k)
        if k == 3:
            raise KeyboardInterrupt
        return k

    with pytest.raises(KeyboardInterrupt):
        done.extend(engine.map(work, range(1000)))
    assert done == [0, 1, 2]
    assert len(started) < 20


def test_whoever_stops_asking_stops_the_work():
    started = []
    results = Threads(2).map(started.append, range(1000))
    next(results)
    results.close()
    assert len(started) < 20


def test_threads_run_at_the_same_time():
    barrier = threading.Barrier(3)
    # would break after its time-out if fewer than three waited together
    assert sorted(Threads(3).map(lambda _: barrier.wait(timeout=10.0), range(3))) == [0, 1, 2]


def test_processes_start_fresh_and_keep_order():
    told = []
    results = list(Processes(2).map(operator.neg, [3, 1, 2], progress=lambda done, count: told.append(done)))
    assert results == [-3, -1, -2]
    assert told == [1, 2, 3]
    (other,) = Processes(1).map(process_of, [0])
    assert other != os.getpid()
    with pytest.raises(ZeroDivisionError) as caught:
        list(Processes(1).map(sixth_of, [1, 0]))
    assert "in item 1 of 2" in caught.value.__notes__


@pytest.mark.parametrize("engine", HERE, ids=names)
def test_results_as_they_are_done_carry_their_number(engine):
    told = []
    found = dict(engine.completed(lambda k: k * k, range(20), lambda done, count: told.append((done, count))))
    assert found == {k: k * k for k in range(20)}
    assert told == [(k + 1, 20) for k in range(20)]
    assert list(engine.completed(abs, [])) == []
    with pytest.raises(ZeroDivisionError) as caught:
        list(engine.completed(lambda k: 6 // k, [3, 2, 0]))
    assert "in item 2 of 3" in caught.value.__notes__


def test_a_slow_item_does_not_hold_back_those_after_it():
    gate = threading.Event()
    found = Threads(2).completed(lambda k: gate.wait(timeout=10.0) if k == 0 else k, range(6))
    first = [next(found) for _ in range(5)]
    assert first == [(k, k) for k in range(1, 6)]
    gate.set()
    assert list(found) == [(0, True)]


def test_threads_are_told_to_stop_before_they_are_waited_for():
    stop = threading.Event()
    began = time.perf_counter()

    def work(k):
        if k == 0:
            raise KeyboardInterrupt
        assert stop.wait(timeout=30.0)

    with pytest.raises(KeyboardInterrupt):
        list(Threads(3).completed(work, range(100), stop=stop))
    assert stop.is_set()
    assert time.perf_counter() - began < 10.0


def test_processes_hand_over_what_is_done():
    assert dict(Processes(2).completed(operator.neg, [3, 1, 2])) == {0: -3, 1: -1, 2: -2}


@pytest.mark.skipif(os.name != "posix", reason="the interrupt key is sent as a POSIX signal to the group")
@pytest.mark.parametrize("delay_s", [0.02, 0.1, 0.3])
def test_processes_that_are_still_starting_end_in_silence_too(tmp_path, delay_s):
    script = tmp_path / "early.py"
    script.write_text(
        textwrap.dedent(
            """
            import signal
            import time
            import numpy  # what the fresh processes spend their first moments with
            from dynid.engine import Processes

            if __name__ == "__main__":
                signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell turns it off for jobs in the background
                print("go", flush=True)
                try:
                    list(Processes(2).completed(time.sleep, [60.0, 60.0, 60.0]))
                except KeyboardInterrupt:
                    print("interrupted")
            """
        )
    )
    program = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "go\n"
    time.sleep(delay_s)
    os.killpg(program.pid, signal.SIGINT)
    out, err = program.communicate(timeout=30)
    assert (out, err, program.returncode) == ("interrupted\n", "", 0)


@pytest.mark.skipif(os.name != "posix", reason="the interrupt key is sent as a POSIX signal to the group")
def test_the_interrupt_key_ends_processes_in_silence(tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(
        textwrap.dedent(
            """
            import signal
            import time
            from dynid.engine import Processes

            if __name__ == "__main__":
                signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell turns it off for jobs in the background
                done = []
                try:
                    for result in Processes(2).map(time.sleep, [0.0, 60.0, 60.0, 60.0]):
                        done.append(result)
                        print("one", flush=True)
                except KeyboardInterrupt:
                    print("kept", len(done))
            """
        )
    )
    program = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "one\n"
    time.sleep(0.5)  # the second sleeper is under way
    os.killpg(program.pid, signal.SIGINT)
    out, err = program.communicate(timeout=30)
    assert (out, err, program.returncode) == ("kept 1\n", "", 0)


@pytest.mark.parametrize(
    ("choice", "engine"),
    [
        (None, Serial()),
        ("serial", Serial()),
        (1, Serial()),
        (4, Threads(4)),
        ("3", Threads(3)),
        ("threads", Threads(0)),
        ("Threads:2", Threads(2)),
        ("processes:2", Processes(2)),
        (Threads(7), Threads(7)),
    ],
)
def test_engines_from_what_a_user_writes(choice, engine):
    assert engine_from(choice) == engine
    assert isinstance(engine, Engine)


def test_workers_default_to_the_cores_this_process_may_use():
    assert Threads().n_workers == Processes().n_workers == usable_cores() >= 1
    assert Serial().n_workers == 1


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("cluster", facts("serial", "threads", "processes", "cluster", "engine")),
        ("threads:many", facts("threads:many", "many", "threads:4", "engine")),
        ("threads:", facts("threads", "engine")),
        ("serial:3", facts("serial:3", "threads:3", "3", "1", "engine")),
        (-2, facts("-2", "1")),
    ],
)
def test_bad_engines_are_refused(choice, message):
    with pytest.raises(InputError, match=message):
        engine_from(choice)
    if choice == "cluster":
        with pytest.raises(UnknownNameError):
            engine_from(choice)


@pytest.fixture(scope="module")
def robot():
    return random_tree(3, 4).with_effects([Viscous(), Coulomb(), Armature()])


@pytest.fixture(scope="module")
def samples(robot):
    rng = np.random.default_rng(5)
    n = 41_003
    q, v, a = rng.normal(size=(3, n, robot.n_dof))
    tau = inverse_dynamics(robot, q, v, a) + rng.normal(size=(n, robot.n_dof))
    return Samples(np.arange(n) * 1e-3, q, v, a, tau)


@pytest.mark.parametrize("engine", [Serial(), Threads(2), Processes(2)], ids=["serial", "threads", "processes"])
def test_split_samples_make_the_same_triangles(robot, samples, engine):
    short = samples[:900]
    whole = build_regression(robot, [samples, short])
    parts = []

    def watched(function, items):
        parts.extend(items)
        return engine.map(function, items)

    split = build_regression(robot, [samples, short], map_over=watched)
    *cut, last = [part.samples[0] for part in parts]
    assert len(last) == 900
    assert len(cut) > 2  # the long set is cut, in order and without loss
    np.testing.assert_array_equal(np.concatenate([part.time for part in cut]), samples.time)
    assert split.sources[0].samples[0] is samples  # the source to ask again is the whole one
    for mine, theirs in zip(split.factors, whole.factors, strict=True):
        assert mine.n_rows == theirs.n_rows
        gram = theirs.R.T @ theirs.R
        np.testing.assert_allclose(mine.R.T @ mine.R, gram, rtol=0, atol=1e-12 * np.abs(gram).max())
