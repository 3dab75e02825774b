"""The service under test, and servers that misbehave.

test/helpers/python.ts starts the service and sets HANDOFF_TENANTS: a list of {"alice", "bob", "approver"}, their keys.
"""

import contextlib
import json
import os
import socket
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agent_handoff import Client, HandoffError

URL = os.environ.get("HANDOFF_URL", "")
_tenants = json.loads(os.environ.get("HANDOFF_TENANTS", "[]"))


class Case(unittest.TestCase):
    """Each test has a tenant of its own."""

    def setUp(self):
        self.keys = _tenants.pop()

    def client(self, who, url=URL, **options):
        client = Client(url, self.keys[who], **options)
        self.addCleanup(client.close)
        return client

    def until(self, condition, seconds=10):
        """Waits until it is true."""
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "it never came true")
            time.sleep(0.01)


class Server:
    """Answers what ``answer(method, path, headers, body, index)`` returns: status, headers, body; None hangs up."""

    def __init__(self, test, answer):
        self.seen = []
        lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

            def do(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                with lock:
                    index = len(outer.seen)
                    outer.seen.append((self.command, self.path, self.headers, body))
                answered = answer(self.command, self.path, self.headers, body, index)
                if answered is None:
                    self.close_connection = True
                    return
                status, headers, body = answered
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response_only(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            do_GET = do_POST = do_PUT = do

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        test.addCleanup(self.server.server_close)
        test.addCleanup(self.server.shutdown)


class Relay:
    """Passes bytes on to the service. ``limit(index)`` says how many bytes of answers a connection gets; None: all."""

    def __init__(self, test, limit=lambda index: None, target=None):
        self.count = 0
        #: All that clients have said.
        self.forwarded = b""
        self._limit = limit
        self._target = target or socket_of(URL)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()
        test.addCleanup(self._listener.close)

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._target)
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
            limit = self._limit(self.count)
            self.count += 1
            threading.Thread(target=self._copy, args=(near, far, None), daemon=True).start()
            threading.Thread(target=self._copy, args=(far, near, limit), daemon=True).start()

    def _copy(self, source, target, left):
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if left is not None:
                    data = data[:left]
                    left -= len(data)
                if target.getpeername() == self._target:
                    self.forwarded += data
                target.sendall(data)
                if left == 0:
                    break
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        source.close()


def called(client, call):
    """What a call of exchanges.json returns, or all that an iterator has, or an error in the words of that file."""
    try:
        found = _method(client, call)(*call["args"], **call.get("keywords", {}))
        return list(found) if hasattr(found, "__next__") else found
    except HandoffError as error:
        return _said(error)


async def called_async(client, call):
    try:
        found = _method(client, call)(*call["args"], **call.get("keywords", {}))
        return [one async for one in found] if hasattr(found, "__anext__") else await found
    except HandoffError as error:
        return _said(error)


def _method(client, call):
    for name in call["method"].split("."):
        client = getattr(client, name)
    return client


def _said(error):
    names = ("code", "status", "retryable", "request_id", "detail", "handoff_status", "reissued_as", "errors")
    return {**{name: getattr(error, name) for name in names}, "message": str(error)}


def socket_of(url):
    host, _, port = url.partition("://")[2].partition(":")
    return host, int(port)


@contextlib.contextmanager
def environment(**values):
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
