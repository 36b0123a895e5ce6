"""Anthropic's Messages API, as Claude Code speaks it."""
import math
import time

import wire

NAME = "anthropic"
KINDS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
         413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}
# What Claude Code calls the tool that hands back a result by its schema flag.
STRUCTURED = "StructuredOutput"


def route(path):
    """`model` for a request that a reply answers, an object for one that is answered beside, else None."""
    if path.endswith("/messages"):
        return "model"
    if path.endswith("/messages/count_tokens"):
        return {"input_tokens": 10}
    return None


def beside(_body):
    """The reply to a request that is not the agent's: there is none."""
    return None


def streams(_path, body):
    """Whether the answer is wanted as a stream."""
    return bool(body.get("stream"))


def call(one, _body):
    """A call as Claude Code names its tools."""
    if "mcp" in one:
        return f"mcp__{one.get('server', wire.SERVER)}__{one['mcp']}", one.get("input", {})
    if "write" in one:
        return "Write", {"file_path": one["write"], "content": one.get("content", "")}
    if "shell" in one:
        return "Bash", {"command": one["shell"], "description": "Run what the script says"}
    return one["tool"], one.get("input", {})


def whole(reply, body):
    """A reply as one message."""
    text, calls = reply.get("text", ""), [call(one, body) for one in reply.get("calls", [])]
    if "result" in reply:
        if any(tool.get("name") == STRUCTURED for tool in body.get("tools") or []):
            calls.append((STRUCTURED, reply["result"]))
        else:
            text += wire.as_text(reply["result"])
    content = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool_use", "id": wire.new_id("toolu_"), "name": name, "input": given} for name, given in calls]
    input_tokens, output_tokens, cached = wire.usage(reply)
    return {
        "id": wire.new_id("msg_"), "type": "message", "role": "assistant", "model": body.get("model", "mock"),
        "content": content, "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": input_tokens - cached, "output_tokens": output_tokens,
                  "cache_creation_input_tokens": 0, "cache_read_input_tokens": cached},
    }


def events(reply, body):
    """The same reply as server-sent events: their names and their data."""
    message = whole(reply, body)
    start = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    found = [("message_start", {"message": start})]
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in wire.pieces(block["text"])]
        else:
            empty = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece}
                      for piece in wire.pieces(wire.as_text(block["input"]))]
        found.append(("content_block_start", {"index": index, "content_block": empty}))
        found += [("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
        found.append(("content_block_stop", {"index": index}))
    found.append(("message_delta", {"delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
                                    "usage": {"output_tokens": message["usage"]["output_tokens"]}}))
    found.append(("message_stop", {}))
    return [(name, {"type": name, **data}) for name, data in found]


def error(reply):
    """The body and the headers of an error."""
    status, headers = reply["status"], {"request-id": wire.new_id("req_")}
    if "reset" in reply:
        headers["retry-after"] = str(math.ceil(reply["reset"]))
        headers["anthropic-ratelimit-unified-status"] = "rejected"
        headers["anthropic-ratelimit-unified-representative-claim"] = "five_hour"
        headers["anthropic-ratelimit-unified-reset"] = str(math.ceil(time.time() + reply["reset"]))
    kind = reply.get("kind", KINDS.get(status, "api_error"))
    return {"type": "error", "error": {"type": kind, "message": reply.get("error", "the script says so")}}, headers
