"""Measures the durable steps of LangGraph with its SQLite checkpointer and prints one JSON object.

Called by `bench/peers/run` with a folder on the disk to measure. Every step is a Python function that adds one to a
number; the graph is a loop of two nodes, and `durability="sync"` makes LangGraph write the checkpoint of a step before
the next one starts. The checkpointer is used as it comes from PyPI: what it sets is printed beside the figures.
"""

import json
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

STEPS = 300
ROUNDS = 5
RUNS = 16
SYNCHRONOUS = {0: "off", 1: "normal", 2: "full", 3: "extra"}


class State(TypedDict):
    count: int
    run: int


def graph(saver, stamps):
    """A loop of two nodes until the steps are done; each notes when it ran under its run."""

    def step(state):
        stamps[state["run"]].append(time.perf_counter())
        return {"count": state["count"] + 1}

    def other(name):
        return lambda state: name if state["count"] < STEPS else END

    builder = StateGraph(State)
    builder.add_node("work", step)
    builder.add_node("check", step)
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", other("check"), ["check", END])
    builder.add_conditional_edges("check", other("work"), ["work", END])
    return builder.compile(checkpointer=saver)


def run_one(compiled, run, thread):
    config = {"configurable": {"thread_id": thread}, "recursion_limit": STEPS + 10}
    result = compiled.invoke({"count": 0, "run": run}, config, durability="sync")
    if result["count"] != STEPS:
        raise SystemExit(f"langgraph did {result['count']} of {STEPS} steps")


def measure(folder, runs):
    """One measurement on a fresh file: steps a second over all runs, and the gaps between steps in milliseconds."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        with SqliteSaver.from_conn_string(str(Path(place) / "checkpoints.db")) as saver:
            stamps = [[] for _ in range(runs)]
            compiled = graph(saver, stamps)
            saver.setup()
            failures = []

            def work(run):
                try:
                    run_one(compiled, run, f"run-{run}")
                except BaseException as error:  # noqa: BLE001 - a thread that fails must fail the measurement
                    failures.append(error)

            threads = [threading.Thread(target=work, args=(run,)) for run in range(runs)]
            begin = time.perf_counter()
            if runs == 1:
                work(0)
            else:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            took = time.perf_counter() - begin
            if failures:
                raise failures[0]
            # A checkpoint for the input, one before the first step and one for each step: nothing was left out.
            kept = saver.conn.execute("select count(*) from checkpoints").fetchone()[0]
            if kept < runs * STEPS:
                raise SystemExit(f"langgraph kept {kept} checkpoints of {runs * STEPS} steps")
            journal = saver.conn.execute("pragma journal_mode").fetchone()[0]
            synchronous = saver.conn.execute("pragma synchronous").fetchone()[0]
    gaps = [(after - before) * 1000 for run in stamps for before, after in zip(run, run[1:])]
    cuts = statistics.quantiles(gaps, n=100, method="inclusive")
    figures = {"steps_per_second": runs * STEPS / took, "p50_ms": cuts[49], "p95_ms": cuts[94]}
    return figures, {"journal_mode": journal, "synchronous": SYNCHRONOUS.get(synchronous, synchronous)}


def median(folder, name, runs):
    """The median of several measurements, figure by figure, and the spread of the rate."""
    measured = [measure(folder, runs) for _ in range(ROUNDS)]
    rounds = [figures for figures, _ in measured]
    row = {"name": name}
    row |= {key: round(statistics.median(figures[key] for figures in rounds), 2) for key in rounds[0]}
    rates = sorted(figures["steps_per_second"] for figures in rounds)
    row["slowest_and_fastest"] = [round(rates[0], 2), round(rates[-1], 2)]
    return row, measured[-1][1]


def main():
    folder = sys.argv[1]
    one, pragmas = median(folder, "one-run", 1)
    many, _ = median(folder, "sixteen-runs", RUNS)
    versions = {name: version(name) for name in ("langgraph", "langgraph-checkpoint-sqlite")}
    facts = {"python": sys.version.split()[0], "sqlite": sqlite3.sqlite_version}
    print(json.dumps({**versions, **facts, **pragmas, "steps": STEPS, "rounds": ROUNDS, "measured": [one, many]}))


if __name__ == "__main__":
    main()
