"""OpenAI's Responses API, as Codex speaks it."""
import json
import math
import time

import wire

NAME = "openai"
KINDS = {400: "invalid_request_error", 401: "invalid_api_key", 429: "rate_limit_exceeded"}


def route(path):
    """`model` for a request that a reply answers, an object for one that is answered beside, else None."""
    if path.endswith("/responses"):
        return "model"
    return None


def beside(body):
    """The reply to a request that is not the agent's: codex-acp has a model name each session, in a conversation
    of its own, if the session lives long enough. None for any other request."""
    wanted = body.get("text", {}).get("format", {}).get("schema", {}).get("properties", {})
    return {"text": json.dumps({"title": "A session"})} if list(wanted) == ["title"] else None


def streams(_path, body):
    """Whether the answer is wanted as a stream."""
    return bool(body.get("stream"))


def call(one, _body):
    """A call as Codex names its tools: those of MCP servers have a namespace, and files are changed by patches."""
    if "mcp" in one:
        return {"namespace": f"mcp__{one.get('server', wire.SERVER)}", "name": one["mcp"],
                "arguments": json.dumps(one.get("input", {}))}
    if "write" in one:
        lines = "".join(f"+{line}\n" for line in one.get("content", "").splitlines())
        return {"name": "apply_patch", "input": f"*** Begin Patch\n*** Add File: {one['write']}\n{lines}*** End Patch"}
    if "shell" in one:
        return {"name": "exec_command", "arguments": json.dumps({"cmd": one["shell"]})}
    given = one.get("input", {})
    if isinstance(given, str):
        return {"name": one["tool"], "input": given}
    return {"name": one["tool"], "arguments": json.dumps(given)}


def items(reply, body):
    """What a reply puts out, item by item."""
    text = reply.get("text", "")
    if "result" in reply:
        text += wire.as_text(reply["result"])
    found = []
    if text:
        found.append({"type": "message", "id": wire.new_id("msg_"), "role": "assistant", "status": "completed",
                      "content": [{"type": "output_text", "text": text, "annotations": []}]})
    for one in reply.get("calls", []):
        given = call(one, body)
        kind = "custom_tool_call" if "input" in given else "function_call"
        found.append({"type": kind, "id": wire.new_id("fc_"), "call_id": wire.new_id("call_"), "status": "completed",
                      **given})
    return found


def whole(reply, body):
    """A reply as one response."""
    input_tokens, output_tokens, cached = wire.usage(reply)
    return {
        "id": wire.new_id("resp_"), "object": "response", "created_at": int(time.time()), "status": "completed",
        "model": body.get("model", "mock"), "output": items(reply, body),
        "usage": {"input_tokens": input_tokens, "input_tokens_details": {"cached_tokens": cached},
                  "output_tokens": output_tokens, "output_tokens_details": {"reasoning_tokens": 0},
                  "total_tokens": input_tokens + output_tokens},
    }


def events(reply, body):
    """The same reply as server-sent events: their names and their data."""
    response = whole(reply, body)
    found = [("response.created", {"response": {**response, "status": "in_progress", "output": [], "usage": None}})]
    for index, item in enumerate(response["output"]):
        begun = {**item, "status": "in_progress"}
        at = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            part = item["content"][0]
            at["content_index"] = 0
            found.append(("response.output_item.added", {"output_index": index, "item": {**begun, "content": []}}))
            found.append(("response.content_part.added", {**at, "part": {**part, "text": ""}}))
            found += [("response.output_text.delta", {**at, "delta": piece}) for piece in wire.pieces(part["text"])]
            found.append(("response.output_text.done", {**at, "text": part["text"]}))
            found.append(("response.content_part.done", {**at, "part": part}))
        else:
            found.append(("response.output_item.added", {"output_index": index, "item": begun}))
            if item["type"] == "function_call":
                arguments = item["arguments"]
                found.append(("response.function_call_arguments.delta", {**at, "delta": arguments}))
                found.append(("response.function_call_arguments.done", {**at, "arguments": arguments}))
        found.append(("response.output_item.done", {"output_index": index, "item": item}))
    found.append(("response.completed", {"response": response}))
    return [(name, {"type": name, "sequence_number": number, **data}) for number, (name, data) in enumerate(found)]


def error(reply):
    """The body and the headers of an error. With a reset, a 429 is that of a used-up plan, which alone says when."""
    status, headers = reply["status"], {"x-request-id": wire.new_id("req_")}
    kind = reply.get("kind", KINDS.get(status, "server_error"))
    told = {"message": reply.get("error", "the script says so"), "type": kind, "code": kind, "param": None}
    if "reset" in reply:
        headers["retry-after"] = str(math.ceil(reply["reset"]))
        if status == 429 and "kind" not in reply:
            told.update(type="usage_limit_reached", code=None, plan_type="pro",
                        resets_at=math.ceil(time.time() + reply["reset"]), resets_in_seconds=math.ceil(reply["reset"]))
    return {"error": told}, headers
