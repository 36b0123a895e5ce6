"""A mock of the model APIs that Claude Code, Codex and Gemini CLI talk to. It plays a script, on loopback only.

It serves Anthropic's Messages, OpenAI's Responses and Gemini's generateContent and streamGenerateContent, each at the
paths the vendors use, and what the CLIs ask beside. Its port is the first line on stdout.

A script is JSON: a list of replies. A request takes the first reply that is not used up and is for it; when none is
left, it gets an error 400 that says so.

  which request        "api": "anthropic" | "openai" | "gemini"     only for this API
                       "when": TEXT or [TEXT, …]                    only if the request has it somewhere in it (all of them)
                       "unless": TEXT or [TEXT, …]                  only if it has none of them
                       "repeat": true                               is never used up
  what is said         "text": TEXT
                       "result": {…}                                as native structured output is given: to Claude Code's tool
                                                                    for it if the request has that, else as JSON in the text
                       "calls": [CALL, …]                           calls of tools, each one of
                           {"mcp": "submit_result", "input": {…}, "server": NAME}    the server is `counterfoil` unless named
                           {"write": PATH, "content": TEXT}         a file, by the tool that each CLI has for it
                           {"shell": COMMAND}                       the same for commands
                           {"tool": NAME, "input": {…}}             a tool as that one CLI calls it
                       "usage": {"input": 10, "output": 5, "cached": 0}
  what goes wrong      "status": 429, "error": TEXT                 an HTTP error as that API words it; "kind": its type
                       "reset": SECONDS                             with a status: when it may be tried again, as that API says it
                       "headers": {NAME: TEXT}
                       "delay": SECONDS, "pace": SECONDS            before the answer; after each event of a stream
                       "hang": "start" | "middle"                   no byte at all; or half a stream, and then nothing more
                       "cut": "start" | "middle"                    the connection is reset there
                       "garbage": TEXT                              stands in the middle of the stream as it is

  [{"when": "Do the work", "text": "I am done."}, {"calls": [{"mcp": "submit_result", "input": {"ok": true}}]}, {"text": "Done."}]

With a command behind `--`, the mock runs it in a home of its own, in which the three CLIs know no other API, with nothing of
your environment but PATH, and ends with it, with its exit code:

  python3 testing/mock SCRIPT -- counterfoil run execution-loop --task "Greet people" --agent claude

The log has a line of JSON for each request: n, at, method, path, api, model (whether it was one for a reply), reply
(which one of the script it got, counted from 1, or null), keys (the names of the headers that carried one), body.

It ends on SIGTERM, on Ctrl-C, and, if its stdin is a pipe, when that is closed: it does not outlive who started it.
"""
import argparse
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading

from home import furnish, write
from script import ScriptError, load
from server import Mock


def arguments():
    """What was asked for on the command line, and the command behind `--`."""
    ours = sys.argv[1:]
    command = []
    if "--" in ours:
        at = ours.index("--")
        ours, command = ours[:at], ours[at + 1:]
    parser = argparse.ArgumentParser(
        prog="python3 testing/mock", usage="%(prog)s [options] SCRIPT [-- COMMAND …]", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", metavar="SCRIPT", help="the script, a file of JSON")
    parser.add_argument("--log", metavar="FILE", help="write every request here, a line of JSON each")
    parser.add_argument("--port", type=int, default=0, help="the port to listen on (a free one)")
    parser.add_argument("--port-file", metavar="FILE", help="write the port here too, once it listens")
    parser.add_argument("--home", metavar="DIR", help="write the settings with which the CLIs talk to this mock here, and in DIR/env "
                        "the variables that go with them (for a command: a folder that is removed behind it)")
    return parser.parse_args(ours), command


def end_with_parent():
    """Ends when the pipe on stdin is closed. A terminal or a file there says nothing about who started us."""
    mode = os.fstat(0).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        def watch():
            while os.read(0, 4096):
                pass
            os._exit(0)
        threading.Thread(target=watch, daemon=True).start()


def run(command, home, port):
    """Runs a command in a home; its exit code."""
    variables = {"PATH": os.environ.get("PATH", os.defpath), **furnish(home, port)}
    try:
        child = subprocess.Popen(command, env=variables)
    except OSError as error:
        sys.exit(f"error: cannot run {command[0]}: {error.strerror}")
    # Who ends us means the command. From a terminal it hears of Ctrl-C by itself.
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    signal.signal(signal.SIGINT, lambda *_: None)
    code = child.wait()
    return code if code >= 0 else 128 - code


def main():
    """Listens until it is ended."""
    asked, command = arguments()
    try:
        script = load(asked.script)
        log = open(asked.log, "a", encoding="utf-8") if asked.log else None
        mock = Mock(script, log, asked.port)
        if asked.port_file:
            write(asked.port_file, f"{mock.port}\n")
        if asked.home and not command:
            furnish(asked.home, mock.port)
    except (ScriptError, OSError, OverflowError) as error:
        sys.exit(f"error: {error}")
    if command:
        threading.Thread(target=mock.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory(prefix="counterfoil-mock-") as folder:
            sys.exit(run(command, asked.home or folder, mock.port))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    end_with_parent()
    print(mock.port, flush=True)
    try:
        mock.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
