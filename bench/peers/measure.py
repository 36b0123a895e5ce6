"""Times the peers on the same texts and prints a table of ratios. Called by `bench/peers/run`."""

import json
import subprocess
import sys
import time
from pathlib import Path

TEXTS = ["6KB", "50KB", "1MB"]
LIMIT = 20.0  # Seconds for one run of one peer; a slower one is reported as slower.


def best(run, seconds=1.0):
    """The best of several runs, in microseconds."""
    shortest, begin, rounds = float("inf"), time.perf_counter(), 0
    while rounds < 3 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        took = time.perf_counter() - start
        shortest, rounds = min(shortest, took), rounds + 1
        if took > LIMIT:
            break
    return shortest * 1e6


def peers(schema):
    """Each peer as a function of (text, json alone); those that cannot be imported are left out and named."""
    found, missing = {}, []
    try:
        import json_repair

        found["json_repair.loads(text)"] = lambda text, alone: json_repair.loads(text)
    except Exception as error:  # noqa: BLE001 - a peer that does not load must not end the run
        missing.append(f"json_repair: {error}")
    try:
        try:
            from instructor.utils import extract_json_from_codeblock
        except ImportError:
            from instructor.utils.core import extract_json_from_codeblock

        found["instructor extract + json.loads"] = lambda text, alone: json.loads(extract_json_from_codeblock(text))
    except Exception as error:  # noqa: BLE001
        missing.append(f"instructor: {error}")
    try:
        found["baml-py parse"] = baml(schema)
    except Exception as error:  # noqa: BLE001
        missing.append(f"baml-py: {str(error).strip().splitlines()[0]}")
    try:
        from typing import List, Literal

        from pydantic import BaseModel

        class Finding(BaseModel):
            id: str
            file: str
            line: int
            severity: Literal["critical", "major", "minor"]
            message: str

        class Review(BaseModel):
            success: bool
            summary: str
            findings: List[Finding]

        found["pydantic on the JSON alone"] = lambda text, alone: Review.model_validate_json(alone)
    except Exception as error:  # noqa: BLE001
        missing.append(f"pydantic: {error}")
    return found, missing


def baml(_schema):
    """BAML's parser through its runtime: a function with the same output type, asked only to parse."""
    from baml_py import BamlRuntime

    source = """
client<llm> C {
  provider openai
  options {
    model m
    api_key k
  }
}
class Finding {
  id string
  file string
  line int
  severity "critical" | "major" | "minor"
  message string
}
class Review {
  success bool
  summary string
  findings Finding[]
}
function Parse(x: string) -> Review {
  client C
  prompt #"{{ x }} {{ ctx.output_format }}"#
}
"""
    runtime = BamlRuntime.from_files("baml_src", {"main.baml": source}, {})
    context = runtime.create_context_manager()

    from types import ModuleType

    from pydantic import BaseModel

    types = ModuleType("types")

    class Finding(BaseModel):
        id: str
        file: str
        line: int
        severity: str
        message: str

    class Review(BaseModel):
        success: bool
        summary: str
        findings: list[Finding]

    types.Finding, types.Review = Finding, Review

    def parse(text, _alone):
        return runtime.parse_llm_response("Parse", text, types, types, types, False, context, None, None, {})

    parse("{\"success\": true, \"summary\": \"x\", \"findings\": []}", "")
    return parse


def main():
    folder, ours_file, binary = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    ours = {row["name"]: row for row in json.loads(Path(ours_file).read_text())}
    schema = json.loads((folder / "schema.json").read_text())
    found, missing = peers(schema)
    rows = [
        ("**counterfoil any-json**", lambda name: ours[name]["any_json_us"]),
        ("**counterfoil fenced-json**", lambda name: ours[name]["fenced_json_us"]),
        ("serde_json on the JSON alone (floor)", lambda name: ours[name]["serde_json_us"]),
    ]
    texts = {name: ((folder / f"{name}.txt").read_text(), (folder / f"{name}.json").read_text()) for name in TEXTS}
    for peer, run in found.items():
        times = {}
        for name, (text, alone) in texts.items():
            try:
                times[name] = best(lambda: run(text, alone))
            except Exception as error:  # noqa: BLE001
                times[name] = None
                print(f"{peer} fails on {name}: {str(error)[:120]}", file=sys.stderr)
        rows.append((peer, times.get))
    print("| extraction + validation | " + " | ".join(f"{name}, µs | × ours" for name in TEXTS) + " |")
    print("|---|" + "---:|---:|" * len(TEXTS))
    for label, time_of in rows:
        cells = []
        for name in TEXTS:
            took = time_of(name)
            cells += ["fails", ""] if took is None else [f"{took:,.0f}", f"{took / ours[name]['any_json_us']:.1f}"]
        print(f"| {label} | " + " | ".join(cells) + " |")
    print()
    print("| hostile text | any-json, ms a MB at 1 MB | at 8 MB | with repair, at 1 MB | at 8 MB |")
    print("|---|---:|---:|---:|---:|")
    for name in sorted({name.removeprefix("hostile-").rsplit("-", 1)[0] for name in ours if name.startswith("hostile-")}):
        cells = []
        for key in ("any_json_us", "repair_us"):
            for size in ("1MB", "8MB"):
                row = ours[f"hostile-{name}-{size}"]
                cells.append(f"{row[key] / 1000 / (row['bytes'] / 1e6):.1f}")
        print(f"| {name} | " + " | ".join(cells) + " |")
    print()
    big = ours["1MB"]
    print(f"- 1 MB transcript: {big['bytes'] / big['fenced_json_us']:.0f} MB/s fenced, {big['bytes'] / big['any_json_us']:.0f} MB/s anywhere; ")
    print(f"  {big['fenced_json_us'] / big['serde_json_us']:.1f} and {big['any_json_us'] / big['serde_json_us']:.1f} times serde_json on the JSON alone.")
    small = folder / "6KB.txt"
    command = [binary, "check", str(small), "--schema", str(folder / "schema.json"), "--format", "json"]
    started = best(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True), 2.0)
    bare = best(lambda: subprocess.run(["true"], check=True), 1.0)
    builtin = folder / "qa.txt"
    builtin.write_text('{"dod_achieved": true, "checks": []}')
    command = [binary, "check", str(builtin), "--contract", "execution-loop/qa", "--format", "json"]
    pack = best(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True), 2.0)
    print(f"- `counterfoil check` on a small file, process start to exit: {started / 1000:.1f} ms with a schema, "
          f"{pack / 1000:.1f} ms with a built-in contract (starting `true` from the same script: {bare / 1000:.1f} ms).")
    for line in missing:
        print(f"- not measured: {line}")


if __name__ == "__main__":
    main()
