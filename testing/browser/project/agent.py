"""An agent that does what the first word of its task says."""

import json
import pathlib
import subprocess
import sys

HOSTILE = """<script>window.__pwned = 'reply'</script>"><img src=x onerror="window.__pwned = 'image'">javascript:alert(1)"""


def answer(files, note):
    print(json.dumps({"files_changed": files, "note": note}))


task = sys.stdin.read()
if task.startswith("Write"):
    pathlib.Path("notes.txt").write_text("written\n")
    answer(["notes.txt"], "The notes are written.")
elif task.startswith("Boast"):
    pathlib.Path("notes.txt").write_text("boasted\n")
    answer(["notes.txt", "src/parser.rs"], "Both are changed.")
elif "stumbled" in task:
    answer([], "Mended.")
elif task.startswith("Stumble"):
    # The message that asks for a repair quotes it.
    print(json.dumps({"files_changed": "notes.txt", "severity": "stumbled", "verdict": "fine"}, indent=2))
elif task.startswith("Wait"):
    subprocess.run(["sh", "wait.sh", "agent"], check=True)
    answer([], "Waited.")
elif task.startswith("Deceive"):
    answer([HOSTILE], HOSTILE)
elif HOSTILE in task:
    # Its answer is invalid, and so is the one to the message that quotes it.
    print(json.dumps({"files_changed": HOSTILE, "severity": HOSTILE, HOSTILE: 1}))
else:
    print(json.dumps({"files_changed": "notes.txt", "severity": "awful", "verdict": "fine"}, indent=2))
