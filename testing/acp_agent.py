"""A scripted agent of the Agent Client Protocol, for tests. Standard library only.

    python3 acp_agent.py SCRIPT.json LOG.jsonl

The script: {"initialize": {...}, "new": {...}, "mode": {...}, "turns": [[ACTION, ...], ...]}. `initialize`, `new` and
`mode` are what is answered to the first requests, {"error": {...}} is an error, and {"hang": true} no answer. Each prompt takes the next turn. Actions:

    {"text": T, "message": ID}      a part of a message
    {"update": {...}}               any update of the session
    {"raw": T, "times": N}          a line that is written as it is
    {"write": T}                    a text that is written as it is, with no line ending
    {"stderr": T}                   to standard error
    {"ask": [METHOD, PARAMS]}       a request; its answer is logged
    {"permission": TOOL_CALL}       a request for a permission, with the usual options; its answer is logged
    {"tool": NAME, "input": {...}}  a call of a tool of the attached server; its answer is logged
    {"child": true}                 a process in a session of its own, which ignores SIGTERM; its id is logged
    {"sleep": SECONDS}
    {"wait": "cancel"}              until the turn is cancelled; then the answer is `cancelled`
    {"exit": CODE}
    {"answer": {...}}               the answer to the prompt; {"error": {...}} is an error
"""

import json
import os
import subprocess
import sys
import time

OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


class Server:
    """The server that the client attached."""

    def __init__(self, config):
        env = dict(os.environ, **{item["name"]: item["value"] for item in config["env"]})
        argv = [config["command"], *config["args"]]
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last = 0
        client = {"name": "acp_agent", "version": "0"}
        self.call("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method, params):
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.last:
                return answer


class Agent:
    def __init__(self, script, log):
        self.turns = list(script.get("turns", []))
        self.script = script
        self.log_file = open(log, "a", encoding="utf-8")
        self.server = None
        self.asked = 0

    def log(self, what, value):
        self.log_file.write(json.dumps({what: value}) + "\n")
        self.log_file.flush()

    def write(self, text):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def send(self, message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def read(self):
        line = sys.stdin.readline()
        if not line:
            self.log("end", True)
            sys.exit(0)
        message = json.loads(line)
        self.log("got", message)
        return message

    def answer(self, message, value):
        if value.get("hang"):
            return
        kind = {"error": value["error"]} if "error" in value else {"result": value}
        self.send({"id": message["id"], **kind})

    def update(self, update):
        self.send({"method": "session/update", "params": {"sessionId": "s1", "update": update}})

    def ask(self, method, params):
        self.asked += 1
        ident = f"agent-{self.asked}"
        self.send({"id": ident, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == ident:
                self.log("answer", message.get("result", message.get("error")))
                return

    def act(self, action, prompt):
        if "text" in action:
            chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": action["text"]}}
            if "message" in action:
                chunk["messageId"] = action["message"]
            self.update(chunk)
        elif "update" in action:
            self.update(action["update"])
        elif "raw" in action:
            for _ in range(action.get("times", 1)):
                self.write(action["raw"])
        elif "write" in action:
            sys.stdout.write(action["write"])
            sys.stdout.flush()
        elif "stderr" in action:
            print(action["stderr"], file=sys.stderr, flush=True)
        elif "ask" in action:
            self.ask(*action["ask"])
        elif "permission" in action:
            options = action.get("options", OPTIONS)
            self.ask(
                "session/request_permission",
                {"sessionId": "s1", "toolCall": action["permission"], "options": options},
            )
        elif "tool" in action:
            params = {"name": action["tool"], "arguments": action["input"]}
            self.log("tool", self.server.call("tools/call", params))
        elif "child" in action:
            script = "trap '' TERM; while :; do sleep 0.1; done"
            child = subprocess.Popen(["sh", "-c", script], start_new_session=True)
            self.log("child", child.pid)
        elif "sleep" in action:
            time.sleep(action["sleep"])
        elif "wait" in action:
            while self.read().get("method") != "session/cancel":
                pass
            self.answer(prompt, {"stopReason": "cancelled"})
        elif "exit" in action:
            sys.exit(action["exit"])
        elif "answer" in action:
            self.answer(prompt, action["answer"])
        else:
            raise ValueError(action)

    def run(self):
        while True:
            message = self.read()
            method = message.get("method")
            if method == "initialize":
                self.answer(message, self.script.get("initialize", {"protocolVersion": 1}))
            elif method == "session/new":
                servers = message["params"]["mcpServers"]
                if servers and self.script.get("serve", True):
                    self.server = Server(servers[0])
                self.answer(message, self.script.get("new", {"sessionId": "s1"}))
            elif method == "session/set_mode":
                self.answer(message, self.script.get("mode", {}))
            elif method == "session/prompt":
                for action in self.turns.pop(0):
                    self.act(action, message)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        SCRIPT = json.load(file)
    Agent(SCRIPT, sys.argv[2]).run()
