"""What the mock promises. Run by the test suite; alone: python3 -m unittest, in this folder."""
import contextlib
import http.client
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest

from script import Script, ScriptError, load
from server import Mock

PATHS = {
    "anthropic": "/v1/messages?beta=true",
    "openai": "/v1/responses",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}
HERE = os.path.dirname(os.path.abspath(__file__))


class Playing:
    """A mock at work, and the requests of a client."""

    def __init__(self, *replies):
        self.log = io.StringIO()
        self.mock = Mock(Script(list(replies)), self.log)
        threading.Thread(target=self.mock.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.mock.shutdown()
        self.mock.server_close()

    def post(self, path, body, timeout=10):
        """The answer to a request, its body read to the end."""
        client = http.client.HTTPConnection("127.0.0.1", self.mock.port, timeout=timeout)
        with contextlib.closing(client):
            client.request("POST", path, json.dumps(body), {"x-api-key": "secret"})
            answer = client.getresponse()
            answer.text = answer.read().decode()
        return answer

    def ask(self, api, **body):
        """The answer of one API as a stream."""
        return self.post(PATHS[api], {"stream": True, **body})

    def lines(self):
        """The log."""
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


def events(answer):
    """The data of a stream's events."""
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def outcome(api, answer):
    """The text, the calls and the tokens of a stream, put together as a client does it."""
    text, calls, tokens = "", [], None
    for event in events(answer):
        if api == "anthropic":
            block = event.get("content_block", {})
            if block.get("type") == "tool_use":
                calls.append([block["name"], ""])
            delta = event.get("delta", {})
            text += delta.get("text", "")
            if "partial_json" in delta:
                calls[-1][1] += delta["partial_json"]
            if event["type"] == "message_start":
                tokens = event["message"]["usage"]["input_tokens"] + event["message"]["usage"]["cache_read_input_tokens"]
        elif api == "openai":
            text += event["delta"] if event["type"] == "response.output_text.delta" else ""
            item = event.get("item", {})
            if event["type"] == "response.output_item.done" and item["type"].endswith("_call"):
                name = "/".join(filter(None, [item.get("namespace"), item["name"]]))
                calls.append([name, item.get("arguments", item.get("input"))])
            if event["type"] == "response.completed":
                tokens = event["response"]["usage"]["input_tokens"]
        else:
            for part in event["candidates"][0]["content"]["parts"]:
                text += part.get("text", "")
                if "functionCall" in part:
                    calls.append([part["functionCall"]["name"], json.dumps(part["functionCall"]["args"])])
            tokens = event.get("usageMetadata", {}).get("promptTokenCount", tokens)
    return text, calls, tokens


class Replies(unittest.TestCase):
    """What is said, on each of the wires."""

    def test_a_request_for_a_title_takes_no_reply_of_the_script(self):
        title = {"format": {"type": "json_schema", "schema": {"properties": {"title": {"type": "string"}}}}}
        with Playing({"text": "of the script"}) as playing:
            named = playing.ask("openai", text=title)
            self.assertIn("A session", named.text)
            self.assertIn("of the script", playing.ask("openai", input=[]).text)
            self.assertEqual([line["model"] for line in playing.lines()], [False, True])

    def test_a_text_arrives_in_pieces_with_its_usage(self):
        for api in PATHS:
            with self.subTest(api), Playing({"text": "one – two", "usage": {"input": 70, "cached": 20}}) as playing:
                answer = playing.ask(api)
                self.assertEqual(outcome(api, answer), ("one – two", [], 70))
                self.assertNotIn("one – two", "".join(json.dumps(event, ensure_ascii=False)
                                                      for event in events(answer) if "delta" in event))

    def test_a_reply_that_is_not_streamed_says_the_same(self):
        whole = {
            "anthropic": ("/v1/messages", lambda told: told["content"][0]["text"]),
            "openai": ("/v1/responses", lambda told: told["output"][0]["content"][0]["text"]),
            "gemini": ("/v1beta/models/m:generateContent", lambda told: told["candidates"][0]["content"]["parts"][0]["text"]),
        }
        for api, (path, text) in whole.items():
            with self.subTest(api), Playing({"text": "hello"}) as playing:
                self.assertEqual(text(json.loads(playing.post(path, {}).text)), "hello")

    def test_calls_have_the_names_that_each_cli_gives_them(self):
        names = {
            "anthropic": ["mcp__counterfoil__submit_result", "mcp__other__ask", "Write", "Bash", "Own"],
            "openai": ["mcp__counterfoil/submit_result", "mcp__other/ask", "apply_patch", "exec_command", "Own"],
            "gemini": ["mcp_counterfoil_submit_result", "mcp_other_ask", "write_file", "run_shell_command", "Own"],
        }
        calls = [{"mcp": "submit_result", "input": {"ok": True}}, {"mcp": "ask", "server": "other"},
                 {"write": "a.txt", "content": "a\nb\n"}, {"shell": "ls"}, {"tool": "Own", "input": {"x": 1}}]
        for api, expected in names.items():
            with self.subTest(api), Playing({"calls": calls}) as playing:
                _, found, _ = outcome(api, playing.ask(api))
                self.assertEqual([name for name, _ in found], expected)
                self.assertEqual(json.loads(found[0][1]), {"ok": True})
                self.assertIn("a.txt", found[2][1])
                self.assertEqual(json.loads(found[4][1]), {"x": 1})

    def test_a_result_goes_to_the_tool_for_it_where_there_is_one(self):
        with Playing({"result": {"ok": True}, "repeat": True}) as playing:
            text, calls, _ = outcome("anthropic", playing.ask("anthropic", tools=[{"name": "StructuredOutput"}]))
            self.assertEqual((text, calls[0][0], json.loads(calls[0][1])), ("", "StructuredOutput", {"ok": True}))
            for api in PATHS:
                text, calls, _ = outcome(api, playing.ask(api))
                self.assertEqual((json.loads(text), calls), ({"ok": True}, []))

    def test_what_is_asked_beside_takes_no_reply(self):
        with Playing({"text": "hello"}) as playing:
            for path in ("/v1/messages/count_tokens", "/v1beta/models/m:countTokens"):
                self.assertEqual(playing.post(path, {}).status, 200)
            self.assertEqual(playing.post("/v1/elsewhere", {}).status, 404)
            self.assertEqual(outcome("openai", playing.ask("openai"))[0], "hello")


class Choices(unittest.TestCase):
    """Which reply a request gets."""

    def test_the_first_that_is_left_and_fits(self):
        replies = [{"when": "Grüße\n\"x\"", "text": "when"}, {"api": "gemini", "text": "gemini"},
                   {"unless": ["later"], "text": "unless"}, {"text": "last", "repeat": True}]
        with Playing(*replies) as playing:
            said = [outcome(api, playing.ask(api, input=[{"text": words}]))[0] for api, words in [
                ("openai", "later"), ("openai", "a Grüße\n\"x\" b"), ("openai", "now"), ("anthropic", "now"),
                ("gemini", "later"), ("gemini", "later")]]
        self.assertEqual(said, ["last", "when", "unless", "last", "gemini", "last"])

    def test_a_script_that_runs_out_says_so(self):
        with Playing() as playing:
            answer = playing.ask("anthropic")
        self.assertEqual(answer.status, 400)
        self.assertIn("no reply left for request 1", answer.text)


class Faults(unittest.TestCase):
    """What goes wrong on purpose."""

    def test_errors_are_worded_as_each_api_does_it(self):
        kinds = {"anthropic": ("error", "type", "overloaded_error"), "openai": ("error", "code", "server_error"),
                 "gemini": ("error", "status", "UNKNOWN")}
        for api, (outer, key, kind) in kinds.items():
            with self.subTest(api), Playing({"status": 529, "error": "busy", "headers": {"x-a": "b"}}) as playing:
                answer = playing.ask(api)
                told = json.loads(answer.text)[outer]
                self.assertEqual((answer.status, answer.getheader("x-a")), (529, "b"))
                self.assertEqual((told["message"], told[key]), ("busy", kind))

    def test_a_reset_is_told_as_each_api_does_it(self):
        for api in PATHS:
            with self.subTest(api), Playing({"status": 429, "reset": 1.5}) as playing:
                answer = playing.ask(api)
                told = json.loads(answer.text)["error"]
                if api == "anthropic":
                    self.assertEqual(answer.getheader("retry-after"), "2")
                    self.assertTrue(answer.getheader("anthropic-ratelimit-unified-reset").isdigit())
                elif api == "openai":
                    self.assertEqual((told["type"], told["resets_in_seconds"]), ("usage_limit_reached", 2))
                else:
                    self.assertEqual(told["details"][0]["retryDelay"], "1.5s")

    def test_a_hang_lasts_until_the_client_leaves(self):
        for place in ("start", "middle"):
            with self.subTest(place), Playing({"text": "hello", "hang": place}, {"text": "next"}) as playing:
                client = http.client.HTTPConnection("127.0.0.1", playing.mock.port, timeout=0.3)
                client.request("POST", PATHS["openai"], '{"stream": true}')
                with self.assertRaises(TimeoutError):
                    answer = client.getresponse()
                    self.assertEqual(place, "middle")
                    answer.read()
                client.close()
                self.assertEqual(outcome("openai", playing.ask("openai"))[0], "next")

    def test_a_cut_breaks_the_connection(self):
        for place in ("start", "middle"):
            with self.subTest(place), Playing({"text": "hello", "cut": place}) as playing:
                with self.assertRaises((ConnectionResetError, http.client.HTTPException)):
                    playing.ask("openai")

    def test_garbage_stands_in_the_middle(self):
        with Playing({"text": "hello", "garbage": "data: {not json"}) as playing:
            lines = playing.ask("openai").text.splitlines()
        self.assertIn("data: {not json", lines)
        self.assertTrue(lines[0].startswith("event: response.created") and "response.completed" in lines[-2])


class Scripts(unittest.TestCase):
    """What a script may not be."""

    def test_slips_are_refused_with_their_place(self):
        for reply, words in [
            ("text", "reply 1 is not an object"),
            ({"txt": "a"}, "reply 1: there is no `txt`"),
            ({"text": 1}, "`text` cannot be 1"),
            ({"delay": True}, "`delay` cannot be true"),
            ({"delay": -1}, "`delay` is a number of seconds"),
            ({"api": "claude"}, "`api` is one of anthropic, openai, gemini"),
            ({"hang": "end"}, "`hang` is one of start, middle"),
            ({"when": [1]}, "`when` is a text or a list of texts"),
            ({"status": 200}, "`status` is for errors"),
            ({"status": 500, "text": "a"}, "an error with a status has no `text`"),
            ({"reset": 1}, "`reset` goes with a `status`"),
            ({"headers": {"a": "b\r\nc: d"}}, "the header `a` is a text of one line"),
            ({"usage": {"inputs": 1}}, "reply 1, usage: there is no `inputs`"),
            ({"usage": {"input": -1}}, "the usage `input` is a number of tokens"),
            ({"calls": [{}]}, "reply 1, call 1 names its tool by one of"),
            ({"calls": [{"tool": "a", "mcp": "b"}]}, "reply 1, call 1 names its tool by one of"),
            ({"calls": [{"shell": "ls", "input": {}}]}, "reply 1, call 1: there is no `input`"),
            ({"calls": [{"write": 1}]}, "`write` is a text"),
        ]:
            with self.subTest(reply), self.assertRaises(ScriptError) as raised:
                Script([reply])
            self.assertIn(words, str(raised.exception))

    def test_files_that_are_none(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.json")
            with self.assertRaisesRegex(ScriptError, "cannot read"):
                load(path)
            for text, words in [("{", "is not JSON"), ("3", "a list of replies"), ('{"replies": [], "x": 1}', "a list of replies")]:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                with self.assertRaisesRegex(ScriptError, words):
                    load(path)


class Process(unittest.TestCase):
    """The program around it."""

    def test_it_tells_its_port_logs_without_keys_and_ends_with_who_started_it(self):
        with tempfile.TemporaryDirectory() as folder:
            def name(part):
                return os.path.join(folder, part)

            with open(name("script"), "w", encoding="utf-8") as file:
                json.dump({"replies": [{"text": "hello"}]}, file)
            command = [sys.executable, "-B", HERE, name("script"), "--log", name("log"), "--port-file", name("port")]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                port = int(process.stdout.readline())
                with open(name("port"), encoding="utf-8") as file:
                    self.assertEqual(int(file.read()), port)
                client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                client.request("POST", "/v1/messages", '{"model": "m"}', {"x-api-key": "secret"})
                self.assertEqual(client.getresponse().status, 200)
                client.close()
                process.stdin.close()
                self.assertEqual(process.wait(10), 0)
            with open(name("log"), encoding="utf-8") as file:
                text = file.read()
            line = json.loads(text)
            self.assertNotIn("secret", text)
            self.assertEqual((line["n"], line["api"], line["reply"], line["keys"], line["body"]),
                             (1, "anthropic", 1, ["x-api-key"], {"model": "m"}))

    def test_it_runs_a_command_in_a_home_of_its_own_and_ends_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script")
            with open(path, "w", encoding="utf-8") as file:
                file.write("[]")
            script = 'echo "$ANTHROPIC_BASE_URL|$SECRET"; grep -h 127.0.0.1 "$CODEX_HOME/config.toml"; cat "$HOME/env"; exit 7'
            done = subprocess.run([sys.executable, "-B", HERE, path, "--", "sh", "-c", script], capture_output=True,
                                  text=True, check=False, env={**os.environ, "SECRET": "mine"})
        api = done.stdout.split("|")[0]
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertRegex(api, r"^http://127\.0\.0\.1:[0-9]+$")
        self.assertIn(f'base_url = "{api}/v1"', done.stdout)
        self.assertIn(f"GOOGLE_GEMINI_BASE_URL={api}\n", done.stdout)
        self.assertNotIn("mine", done.stdout)

    def test_a_bad_script_is_an_error_in_words(self):
        done = subprocess.run([sys.executable, "-B", HERE, "/nowhere"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "error: cannot read /nowhere: No such file or directory\n"))


if __name__ == "__main__":
    unittest.main()
