"""Algorithm 1 of Gaz and others: coordinates, penalties, starts that run elsewhere or are interrupted."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from consistent_problems import small_retrieval
from dynid.engine import Processes
from dynid.estimation.constraints.conditions import Condition
from dynid.estimation.methods.annealing import Penalised
from dynid.estimation.methods.retrieval import PenaltyRetrieval
from dynid.estimation.result import Outcome
from noisy_logs import short_arm

ARM = short_arm()


def test_gradient_of_the_penalised_cost():
    from scipy.optimize import approx_fprime

    method, base, values, rigid = small_retrieval()
    problem = method.problem(base, values, np.eye(base.n_base), prior=rigid.parameters, robot=None)
    lower, upper = problem.bounds.box(problem.consistent.layout, problem.consistent.scale)
    f = Penalised(problem, lower, upper - lower, 10.0)
    u = np.random.default_rng(1).uniform(0.2, 0.8, len(lower))
    assert f.penalty(u) > 0.0
    numbers = approx_fprime(u, f.value, 1e-7)
    np.testing.assert_allclose(f.gradient(u), numbers, atol=1e-5 * np.abs(numbers).max())


def test_annealing_comes_near_the_lower_bound_and_tells_its_progress():
    method, base, values, rigid = small_retrieval(optimiser="annealing", starts=2, steps=2, iterations=3)
    told = []
    found = PenaltyRetrieval(**{**vars(method), "progress": lambda done, of: told.append((done, of))}).retrieve(
        base, values, robot=rigid
    )
    assert told == [(1, 2), (2, 2)]
    assert not found.violated
    best = small_retrieval()[0].retrieve(base, values, robot=rigid)
    assert best.lower_bound <= best.cost <= found.cost * (1.0 + 1e-6)
    assert found.cost < best.cost + 0.05 * float(values @ values)


@pytest.mark.slow
def test_the_same_starts_in_other_processes_give_the_same_answer():
    method, base, values, rigid = small_retrieval(optimiser="annealing", starts=2, steps=1, iterations=1)
    here = PenaltyRetrieval(**{**vars(method), "conditions": ()})
    elsewhere = PenaltyRetrieval(**{**vars(here), "engine": Processes(2)})
    costs = [options.retrieve(base, values, robot=rigid).cost for options in (here, elsewhere)]
    assert costs[1] == pytest.approx(costs[0], rel=1e-9)


def test_an_interrupt_keeps_the_best_so_far():
    def interrupt(done, of):
        if done == 2:
            raise KeyboardInterrupt

    method, base, values, rigid = small_retrieval(optimiser="annealing", starts=5, steps=1, iterations=2, progress=interrupt)
    found = method.retrieve(base, values, robot=rigid)
    assert found.details["interrupted"]
    assert found.details["starts"] == 1
    assert any("interrupted after 1 of 5 starts" in note for note in found.notes)


def _interrupt_after(monkeypatch, calls):
    """The interrupt key at the n-th value of the penalised cost."""
    count, value = itertools.count(1), Penalised.value

    def interrupted(self, u):
        if next(count) == calls:
            raise KeyboardInterrupt
        return value(self, u)

    monkeypatch.setattr(Penalised, "value", interrupted)


def test_an_interrupt_of_the_first_start_leaves_the_relaxation(monkeypatch):
    method, base, values, rigid = small_retrieval(optimiser="annealing", starts=5, steps=1, iterations=2)
    method = PenaltyRetrieval(**{**vars(method), "conditions": ()})
    best = PenaltyRetrieval(**{**vars(method), "optimiser": "refine"}).retrieve(base, values, robot=rigid)
    _interrupt_after(monkeypatch, 50)
    found = method.retrieve(base, values, robot=rigid)
    assert found.details["interrupted"]
    assert found.outcome is Outcome.NOT_CONVERGED
    assert not found.violated
    assert found.cost == pytest.approx(best.cost, rel=1e-6)
    assert found.notes == (
        "interrupted after 0 of 5 starts; the result is the optimum of the convex relaxation, which meets every condition",
    )


def test_an_interrupt_of_the_first_start_leaves_its_best_point_where_the_relaxation_does_not_do(monkeypatch):
    method, base, values, rigid = small_retrieval(optimiser="annealing", starts=5, steps=1, iterations=2)

    def bent(p):
        return 1.0 - p["c2x"] ** 2 / 0.09  # |c2x| >= 0.3: not convex, and nowhere near the data

    method = PenaltyRetrieval(**{**vars(method), "conditions": (Condition("bent", bent),)})
    _interrupt_after(monkeypatch, 120)
    found = method.retrieve(base, values, robot=rigid)
    assert found.details["interrupted"]
    assert "the best point of the start that was under way" in found.notes[0]
    residual = found.base_values - values
    assert found.cost == pytest.approx(residual @ residual, rel=1e-9)
    # better than where it began, which is a random point of the box
    problem = method.problem(base, values, np.eye(base.n_base), prior=rigid.parameters, robot=None)
    lower, upper = problem.bounds.box(problem.consistent.layout, problem.consistent.scale)
    u = np.random.default_rng(np.random.SeedSequence(method.seed).spawn(1)[0]).uniform(size=len(lower))
    assert found.cost < problem.cost(Penalised(problem, lower, upper - lower, 0.0).point(u)[1])


def test_starts_in_any_order_give_the_same_answer():
    method, base, values, rigid = small_retrieval(optimiser="annealing", starts=4, steps=1, iterations=1)
    here, there = (
        PenaltyRetrieval(**{**vars(method), "engine": engine}).retrieve(base, values, robot=rigid)
        for engine in ("serial", "threads:3")
    )
    assert there.details["start_costs"] == here.details["start_costs"]
    assert there.cost == here.cost


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the interrupt key is sent as a POSIX signal to the group")
def test_the_interrupt_key_while_other_processes_anneal(tmp_path):
    script = tmp_path / "annealing.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import signal
            import sys
            sys.path.insert(0, {str(Path(__file__).parents[2])!r})
            import numpy as np
            from dynid.estimation.constraints.bounds import Bounds
            from dynid.estimation.methods.retrieval import PenaltyRetrieval
            from dynid.regression.base import reduce_to_base
            from noisy_logs import short_arm

            if __name__ == "__main__":
                signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell turns it off for jobs in the background
                robot = short_arm().with_effects(())
                base = reduce_to_base(robot)
                values = base.base_values(robot.parameters) * np.random.default_rng(0).uniform(0.9, 1.1, base.n_base)
                method = PenaltyRetrieval(
                    cost="coefficients", bounds=Bounds({{"m1": (0.1, 10.0)}}), optimiser="annealing", starts=4, steps=100,
                    iterations=10_000, engine="processes:2",
                )
                print("go", flush=True)
                found = method.retrieve(base, values, robot=robot)
                print(found.details["interrupted"], not found.violated, found.gap < 1e-3 * found.cost)
            """
        )
    )
    program = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "go\n"
    time.sleep(4.0)
    os.killpg(program.pid, signal.SIGINT)
    out, err = program.communicate(timeout=60)
    assert (out, err, program.returncode) == ("True True True\n", "", 0)
