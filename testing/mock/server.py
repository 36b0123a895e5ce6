"""The HTTP side of the mock: requests are logged, replies sent, with all that can go wrong on the way."""
import json
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anthropic
import gemini
import openai

VENDORS = (anthropic, openai, gemini)
LARGEST = 64 * 1024 * 1024
# Headers that carry a key: the log says which were there, and not what stood in them.
KEYS = ("authorization", "x-api-key", "x-goog-api-key")


class Mock(ThreadingHTTPServer):
    """A server on loopback that plays a script and writes down what it was asked."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, script, log, port=0):
        super().__init__(("127.0.0.1", port), Exchange)
        self.script, self.log = script, log
        self.lock, self.asked = threading.Lock(), 0

    @property
    def port(self):
        """The port it listens on."""
        return self.server_address[1]

    def record(self, **request):
        """Adds a request to the log, at once and whole; what number it has."""
        with self.lock:
            self.asked += 1
            line = {"n": self.asked, "at": round(time.time(), 3), **request}
            if self.log:
                self.log.write(json.dumps(line) + "\n")
                self.log.flush()
            return self.asked

    def handle_error(self, request, client_address):
        """A client that went away is no news; anything else is."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Exchange(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "counterfoil-mock"

    def log_message(self, *_):
        """The log is ours."""

    def do_GET(self):
        """Lists of models are empty, and there is nothing else to get."""
        path = self.path.split("?")[0].rstrip("/")
        found = path.endswith("/models") or path == ""
        self.record(None, None)
        self.send(200 if found else 404, {"object": "list", "data": [], "models": []} if found else missing(path))

    do_HEAD = do_GET

    def do_POST(self):
        """A request to a model is answered by the script, those beside it by what each API says then."""
        raw = self.body()
        if raw is None:
            return
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {"unparsed": raw[:2000].decode("utf-8", "replace")}
        body = body if isinstance(body, dict) else {"unparsed": body}
        path = self.path.split("?")[0].rstrip("/")
        for vendor in VENDORS:
            route = vendor.route(path)
            if route == "model":
                return self.play(vendor, path, body)
            if route is not None:
                self.record(vendor.NAME, body)
                return self.send(200, route)
        self.record(None, body)
        self.send(404, missing(path))

    def body(self):
        """The bytes of a request, or None if it was refused for their number."""
        if "chunked" in (self.headers.get("transfer-encoding") or "").lower():
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0].strip() or b"0", 16):
                if len(raw) + size > LARGEST:
                    return self.refuse()
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return raw
        size = int(self.headers.get("content-length") or 0)
        return self.refuse() if size > LARGEST else self.rfile.read(size)

    def refuse(self):
        """Says that a request is too large, and reads no more of it."""
        self.close_connection = True
        self.send(413, {"error": {"message": f"the mock takes requests of at most {LARGEST} bytes"}})

    def record(self, api, body, model=False, reply=None):
        """Logs this request."""
        keys = [name for name in KEYS if self.headers.get(name)]
        return self.server.record(
            method=self.command, path=self.path, api=api, model=model, reply=reply, keys=keys, body=body)

    def play(self, vendor, path, body):
        """Answers a request to a model."""
        if (reply := vendor.beside(body)) is not None:
            self.record(vendor.NAME, body)
            return self.answer(vendor, path, body, reply)
        number, reply = self.server.script.choose(vendor.NAME, body)
        asked = self.record(vendor.NAME, body, model=True, reply=number)
        if reply is None:
            reply = {"status": 400, "error": f"the mock's script has no reply left for request {asked} ({vendor.NAME})"}
        self.answer(vendor, path, body, reply)

    def answer(self, vendor, path, body, reply):
        """Sends a reply, or what the script wants to go wrong instead."""
        time.sleep(reply.get("delay", 0))
        if "status" in reply:
            told, headers = vendor.error(reply)
            return self.send(reply["status"], told, {**headers, **reply.get("headers", {})})
        if reply.get("hang") == "start":
            return self.stall()
        if reply.get("cut") == "start":
            return self.cut()
        if vendor.streams(path, body):
            self.stream(vendor.events(reply, body), reply)
        else:
            self.send(200, vendor.whole(reply, body), reply.get("headers"))

    def send(self, status, told, headers=None):
        """One JSON object."""
        data = json.dumps(told).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def stream(self, events, reply):
        """Server-sent events, and in their middle what the script wants to go wrong there."""
        self.send_response(200)
        headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked", **reply.get("headers", {})}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        for index, (name, data) in enumerate(events):
            if index == (len(events) + 1) // 2:
                if "garbage" in reply:
                    self.chunk(reply["garbage"] + "\n\n")
                if reply.get("hang") == "middle":
                    return self.stall()
                if reply.get("cut") == "middle":
                    return self.cut()
            self.chunk((f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n")
            time.sleep(reply.get("pace", 0))
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, text):
        """A piece of a stream."""
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def stall(self):
        """Says nothing more until the client has left."""
        self.close_connection = True
        while self.connection.recv(4096):
            pass

    def cut(self):
        """Ends the connection as a broken line does: by a reset, not by a goodbye."""
        self.close_connection = True
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


def missing(path):
    """The error of a path that no API here has."""
    return {"error": {"message": f"the mock has no {path}"}}
