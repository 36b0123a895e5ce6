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
                           {"mcp": "submit_result", "input": {…}, "server": NAME}    the server is `countersign` unless named
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

The log has a line of JSON for each request: n, at, method, path, api, reply (which one of the script, counted from 1, or
null), keys (the names of the headers that carried one), body.

It ends on SIGTERM, on Ctrl-C, and, if its stdin is a pipe, when that is closed: it does not outlive who started it.
"""
import argparse
import os
import signal
import stat
import sys
import threading

from script import ScriptError, load
from server import Mock


def arguments():
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(
        prog="python3 testing/mock", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", metavar="SCRIPT", help="the script, a file of JSON")
    parser.add_argument("--log", metavar="FILE", help="write every request here, a line of JSON each")
    parser.add_argument("--port", type=int, default=0, help="the port to listen on (a free one)")
    parser.add_argument("--port-file", metavar="FILE", help="write the port here too, once it listens")
    return parser.parse_args()


def end_with_parent():
    """Ends when the pipe on stdin is closed. A terminal or a file there says nothing about who started us."""
    mode = os.fstat(0).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        def watch():
            while os.read(0, 4096):
                pass
            os._exit(0)
        threading.Thread(target=watch, daemon=True).start()


def main():
    """Listens until it is ended."""
    asked = arguments()
    try:
        script = load(asked.script)
        log = open(asked.log, "a", encoding="utf-8") if asked.log else None
        mock = Mock(script, log, asked.port)
    except (ScriptError, OSError, OverflowError) as error:
        sys.exit(f"error: {error}")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    end_with_parent()
    if asked.port_file:
        # In one step, so that nobody reads half a number.
        with open(asked.port_file + ".new", "w", encoding="utf-8") as file:
            file.write(f"{mock.port}\n")
        os.replace(asked.port_file + ".new", asked.port_file)
    print(mock.port, flush=True)
    try:
        mock.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
