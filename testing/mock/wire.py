"""What the three APIs have in common: ids, usage, texts in pieces, and calls of tools that each CLI names in its own way."""
import json
import uuid

SERVER = "counterfoil"


def new_id(prefix):
    """An id like those of the vendors."""
    return prefix + uuid.uuid4().hex[:20]


def usage(reply):
    """Tokens of the input (with those from the cache), of the output, and from the cache."""
    given = reply.get("usage", {})
    return given.get("input", 10), given.get("output", 5), given.get("cached", 0)


def pieces(text):
    """A text in two, so that clients put together what arrives in parts."""
    half = (len(text) + 1) // 2
    return [piece for piece in (text[:half], text[half:]) if piece]


def as_text(result):
    """A result as a model writes one that was asked for JSON."""
    return json.dumps(result, ensure_ascii=False, indent=2)
