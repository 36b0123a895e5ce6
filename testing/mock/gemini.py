"""Google's Gemini API, as Gemini CLI speaks it."""
import wire

NAME = "gemini"
KINDS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
         429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}


def route(path):
    """`model` for a request that a reply answers, an object for one that is answered beside, else None."""
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return "model"
    if path.endswith(":countTokens"):
        return {"totalTokens": 10}
    return None


def beside(_body):
    """The reply to a request that is not the agent's: there is none."""
    return None


def streams(path, _body):
    """Whether the answer is wanted as a stream."""
    return path.endswith(":streamGenerateContent")


def call(one, _body):
    """A call as Gemini CLI names its tools."""
    if "mcp" in one:
        return f"mcp_{one.get('server', wire.SERVER)}_{one['mcp']}", one.get("input", {})
    if "write" in one:
        return "write_file", {"file_path": one["write"], "content": one.get("content", "")}
    if "shell" in one:
        return "run_shell_command", {"command": one["shell"]}
    return one["tool"], one.get("input", {})


def parts(reply, body):
    """What a reply puts out, part by part."""
    text = reply.get("text", "")
    if "result" in reply:
        text += wire.as_text(reply["result"])
    found = [{"text": text}] if text else []
    for one in reply.get("calls", []):
        name, given = call(one, body)
        found.append({"functionCall": {"id": wire.new_id("fc_"), "name": name, "args": given}})
    return found


def message(found, end, reply):
    """One message with these parts, and with what stands at the end of an answer."""
    input_tokens, output_tokens, cached = wire.usage(reply)
    candidate = {"content": {"role": "model", "parts": found}, "index": 0}
    told = {"candidates": [candidate], "modelVersion": "mock", "responseId": wire.new_id("r_")}
    if end:
        candidate["finishReason"] = "STOP"
        told["usageMetadata"] = {"promptTokenCount": input_tokens, "candidatesTokenCount": output_tokens,
                                 "cachedContentTokenCount": cached, "totalTokenCount": input_tokens + output_tokens}
    return told


def whole(reply, body):
    """A reply as one message."""
    return message(parts(reply, body), True, reply)


def events(reply, body):
    """The same reply as server-sent events: they have no names here."""
    found = []
    for part in parts(reply, body):
        found += [{"text": piece} for piece in wire.pieces(part["text"])] if "text" in part else [part]
    return [(None, message([part], False, reply)) for part in found] + [(None, message([{"text": ""}], True, reply))]


def error(reply):
    """The body and the headers of an error."""
    status = reply["status"]
    told = {"code": status, "message": reply.get("error", "the script says so"),
            "status": reply.get("kind", KINDS.get(status, "UNKNOWN"))}
    if "reset" in reply:
        told["message"] += f" Please retry in {reply['reset']}s."
        told["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{reply['reset']}s"}]
    return {"error": told}, {}
