"""Prints durable steps a second of Counterfoil and LangGraph side by side. Called by `bench/peers/run`."""

import json
import sys
from pathlib import Path

ROWS = [("one-run", "one run"), ("sixteen-runs", "sixteen runs at once"), ("bare-group-commit", "commits alone (the most there can be)")]


def ours(path):
    """The measurements of the Rust benchmark, one JSON object a line; other output is ignored."""
    rows = {}
    for line in Path(path).read_text().splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "steps_per_second" in row:
            rows[row["name"]] = row
    return rows


def cells(row):
    if row is None:
        return ["", "", ""]
    return [f"{row['steps_per_second']:,.0f}", f"{row['p50_ms']:.2f}", f"{row['p95_ms']:.2f}"]


def main():
    peer = json.loads(Path(sys.argv[1]).read_text())
    mine, theirs = ours(sys.argv[2]), {row["name"]: row for row in peer["measured"]}
    print("| durable steps | steps a second | p50, ms | p95, ms | × LangGraph |")
    print("|---|---:|---:|---:|---:|")
    for name, label in ROWS:
        if name in mine:
            other = theirs.get(name)
            ratio = f"{mine[name]['steps_per_second'] / other['steps_per_second']:.1f}" if other else ""
            print(f"| **counterfoil**, {label} | " + " | ".join([*cells(mine[name]), ratio]) + " |")
        if name in theirs:
            print(f"| LangGraph, {label} | " + " | ".join([*cells(theirs[name]), "1.0"]) + " |")
    print()
    ranges = [(row["name"], *row["slowest_and_fastest"]) for row in peer["measured"]]
    spread = ", ".join(f"{name} {low:,.0f} to {high:,.0f} a second" for name, low, high in ranges)
    print(f"- LangGraph {peer['langgraph']} with langgraph-checkpoint-sqlite {peer['langgraph-checkpoint-sqlite']}, "
          f"Python {peer['python']}, SQLite {peer['sqlite']}, `durability=\"sync\"`, journal_mode {peer['journal_mode']}, "
          f"synchronous {peer['synchronous']}: {peer['steps']} steps a run, the median of {peer['rounds']} rounds "
          f"(slowest and fastest: {spread}).")
    if not mine:
        print("- not measured: counterfoil (there is no benchmark `steps` in counterfoil-engine)")


if __name__ == "__main__":
    main()
