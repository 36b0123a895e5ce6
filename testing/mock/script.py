"""What the mock answers: a script's replies, checked when they are read, and which of them a request gets."""
import json
import threading

APIS = ("anthropic", "openai", "gemini")
AMOUNTS = (int, float)
TEXTS = (str, list)

# Every key of a reply with what it takes. What is not here is refused, so that a slip is not a reply that says nothing.
KEYS = {
    "api": str, "when": TEXTS, "unless": TEXTS, "repeat": bool,
    "text": str, "calls": list, "result": (dict, list), "usage": dict,
    "status": int, "error": str, "kind": str, "reset": AMOUNTS, "headers": dict,
    "delay": AMOUNTS, "pace": AMOUNTS, "hang": str, "cut": str, "garbage": str,
}
# A call names its tool by one of these; the other keys are what goes with it.
CALLS = {"tool": {"input"}, "mcp": {"server", "input"}, "write": {"content"}, "shell": set()}
USAGE = {"input", "output", "cached"}
PLACES = ("start", "middle")
LONGEST = 3600


class ScriptError(Exception):
    """A script that cannot be played; its text says where and why."""


def load(path):
    """Reads a script file: a list of replies, or an object with `replies`."""
    try:
        with open(path, encoding="utf-8") as file:
            script = json.load(file)
    except OSError as error:
        raise ScriptError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ScriptError(f"{path} is not JSON: {error}") from error
    if isinstance(script, dict) and set(script) == {"replies"}:
        script = script["replies"]
    if not isinstance(script, list):
        raise ScriptError(f"{path}: a script is a list of replies, or an object with the one key `replies`")
    try:
        return Script(script)
    except ScriptError as error:
        raise ScriptError(f"{path}: {error}") from error


class Script:
    """Replies, each given once, to the first request that it is for."""

    def __init__(self, replies):
        for number, reply in enumerate(replies, 1):
            check(reply, f"reply {number}")
        self.replies = replies
        self.used = set()
        self.lock = threading.Lock()

    def choose(self, api, body):
        """The number and the reply for a request, or (None, None) when no reply is left for it."""
        said = texts(body)
        with self.lock:
            for number, reply in enumerate(self.replies, 1):
                if number not in self.used and fits(reply, api, said):
                    if not reply.get("repeat"):
                        self.used.add(number)
                    return number, reply
        return None, None


def texts(body):
    """All texts of a request, so that `when` finds words as they were written and not as JSON escapes them."""
    found, rest = [], [body]
    while rest:
        node = rest.pop()
        if isinstance(node, str):
            found.append(node)
        elif isinstance(node, dict):
            rest.extend(node.values())
        elif isinstance(node, list):
            rest.extend(node)
    return found


def fits(reply, api, said):
    """Whether a reply is for a request of this API that holds these texts."""
    def holds(words):
        return any(words in text for text in said)

    return (reply.get("api", api) == api
            and all(holds(words) for words in listed(reply.get("when", [])))
            and not any(holds(words) for words in listed(reply.get("unless", []))))


def listed(words):
    """One text or a list of them, as a list."""
    return [words] if isinstance(words, str) else words


def check(reply, place):
    """Refuses a reply that is not one."""
    if not isinstance(reply, dict):
        raise ScriptError(f"{place} is not an object")
    for key, value in reply.items():
        known(key, KEYS, place)
        kinds = KEYS[key]
        # A bool is an int to Python, and to nobody else.
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise ScriptError(f"{place}: `{key}` cannot be {json.dumps(value)}")
    one_of(reply, "api", APIS, place)
    one_of(reply, "hang", PLACES, place)
    one_of(reply, "cut", PLACES, place)
    for key in ("when", "unless"):
        if not all(isinstance(words, str) for words in listed(reply.get(key, []))):
            raise ScriptError(f"{place}: `{key}` is a text or a list of texts")
    for key in ("delay", "pace", "reset"):
        if not 0 <= reply.get(key, 0) <= LONGEST:
            raise ScriptError(f"{place}: `{key}` is a number of seconds from 0 to {LONGEST}")
    for key, value in reply.get("headers", {}).items():
        if not isinstance(value, str) or any(c in key + value for c in "\r\n"):
            raise ScriptError(f"{place}: the header `{key}` is a text of one line")
    for key, value in reply.get("usage", {}).items():
        known(key, USAGE, f"{place}, usage")
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ScriptError(f"{place}: the usage `{key}` is a number of tokens")
    if "status" in reply:
        if not 400 <= reply["status"] <= 599:
            raise ScriptError(f"{place}: `status` is for errors, from 400 to 599")
        said = [key for key in ("text", "calls", "result", "hang", "cut", "garbage") if key in reply]
        if said:
            raise ScriptError(f"{place}: an error with a status has no `{said[0]}`")
    else:
        for key in ("error", "kind", "reset"):
            if key in reply:
                raise ScriptError(f"{place}: `{key}` goes with a `status`")
    for number, call in enumerate(reply.get("calls", []), 1):
        check_call(call, f"{place}, call {number}")


def check_call(call, place):
    """Refuses a call that names no tool, or more than one."""
    if not isinstance(call, dict):
        raise ScriptError(f"{place} is not an object")
    named = [key for key in CALLS if key in call]
    if len(named) != 1:
        raise ScriptError(f"{place} names its tool by one of {', '.join(CALLS)}")
    for key in call:
        known(key, CALLS[named[0]] | {named[0]}, place)
    for key in (*named, "server", "content"):
        if not isinstance(call.get(key, ""), str):
            raise ScriptError(f"{place}: `{key}` is a text")
    if "mcp" in call and not isinstance(call.get("input", {}), dict):
        raise ScriptError(f"{place}: `input` is an object")


def known(key, keys, place):
    """Refuses a key that nobody reads."""
    if key not in keys:
        raise ScriptError(f"{place}: there is no `{key}`; there are {', '.join(sorted(keys))}")


def one_of(reply, key, words, place):
    """Refuses a word that is none of these."""
    if key in reply and reply[key] not in words:
        raise ScriptError(f"{place}: `{key}` is one of {', '.join(words)}")
