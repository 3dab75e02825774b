"""What the client does when something is in the way."""

import asyncio
import gc
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

from agent_handoff import AsyncClient, Client, HandoffError
from agent_handoff import _scope

from .common import URL, Case, Relay, Server, environment, socket_of


def code_of(call, *args, **more):
    try:
        return call(*args, **more)
    except HandoffError as error:
        return error.code


class Connections(Case):
    def test_a_connection_cut_at_every_byte_of_an_answer_loses_nothing(self):
        answer = b'{"handoff_id":"x","status":"pending"}'
        begin = b"HTTP/1.1 201 Created\r\n"
        whole = begin + b"Content-Type: application/json\r\nX-A: b\r\nContent-Length: 37\r\n\r\n" + answer
        chunks = begin + b"Transfer-Encoding: chunked\r\n\r\n5\r\n" + answer[:5] + b"\r\n20\r\n" + answer[5:]
        for text in (whole, chunks + b"\r\n0\r\n\r\n"):
            first = [True]
            cut = [0]
            keys = []

            def serve(listener):
                while True:
                    try:
                        near, _ = listener.accept()
                    except OSError:
                        return
                    with near:
                        while True:
                            said = b""
                            while b"\r\n\r\n" not in said or not said.endswith(b"}"):
                                data = near.recv(65_536)
                                if not data:
                                    break
                                said += data
                            if not said:
                                break
                            keys.append(said.lower().partition(b"idempotency-key: ")[2][:36])
                            if first[0]:
                                first[0] = False
                                near.sendall(text[:cut[0]])
                                break
                            near.sendall(text)

            listener = socket.create_server(("127.0.0.1", 0))
            threading.Thread(target=serve, args=(listener,), daemon=True).start()
            with mock.patch("agent_handoff._call.backoff", lambda attempt: 0.0):
                with listener, Client(f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
                    for cut[0] in range(len(text)):
                        first[0] = True
                        keys.clear()
                        with self.subTest(cut=cut[0]):
                            self.assertEqual(client.pass_("t"), json.loads(answer))
                            self.assertEqual(len(set(keys)), 1)
                            # Of the last chunk nothing more than its length matters.
                            is_whole = text is not whole and cut[0] > text.rindex(b"0")
                            self.assertEqual(len(keys), 1 if is_whole else 2)

    def test_kept_connections_that_have_ended_are_no_attempt(self):
        relay = Relay(self)
        alice = self.client("alice", relay.url, retry_for=0)
        [alice.inbox("in") for _ in range(5)]
        self.assertEqual(relay.count, 1, "it is kept")
        kept = alice._settings.transport._kept[-1]
        kept.sock.shutdown(socket.SHUT_RDWR)
        self.assertEqual(alice.inbox("in")["pending"], 0)
        self.assertEqual(relay.count, 2)
        # It ends when the request is on its way.
        with mock.patch("agent_handoff._transport._has_news", lambda sock: False):
            alice._settings.transport._kept[-1].sock.shutdown(socket.SHUT_RDWR)
            self.assertEqual(alice.inbox("in")["pending"], 0)
        self.assertEqual(relay.count, 3)

    def test_a_silent_server_is_given_up_and_the_next_connection_is_new(self):
        relay = Relay(self, lambda index: None)
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        with Client(f"http://127.0.0.1:{silent.getsockname()[1]}", retry_for=0, attempt_timeout=0.2) as client:
            self.assertEqual(code_of(client.status, "x"), "timeout")
        slow = Server(self, lambda *_: (time.sleep(0.05), (200, {}, b"{" + b" " * 100 + b"}"))[1])
        with Client(slow.url, retry_for=0, attempt_timeout=5) as client:
            self.assertEqual(client.status("x"), {})
        self.assertEqual(relay.count, 0)

    def test_an_answer_that_trickles_has_no_more_time_than_another(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            near, _ = listener.accept()
            with near:
                near.recv(65_536)
                for _ in range(100):
                    try:
                        near.sendall(b"H")
                    except OSError:
                        return
                    time.sleep(0.05)

        threading.Thread(target=serve, daemon=True).start()
        began = time.monotonic()
        with Client(f"http://127.0.0.1:{listener.getsockname()[1]}", retry_for=0, attempt_timeout=0.5) as client:
            self.assertEqual(code_of(client.status, "x"), "timeout")
        self.assertLess(time.monotonic() - began, 4)

    def test_the_other_protocol_is_said_in_words(self):
        with Client(URL.replace("http:", "https:"), "k" * 16) as client:
            began = time.monotonic()
            with self.assertRaises(HandoffError) as refused:
                client.status("x")
            self.assertLess(time.monotonic() - began, 5, "it isn't asked again")
        self.assertEqual((refused.exception.code, refused.exception.retryable), ("connection_failed", False))
        self.assertIn("begins with http://", str(refused.exception))
        tls = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(tls.close)

        def serve():
            near, _ = tls.accept()
            with near:
                near.recv(1000)
                near.sendall(b"\x15\x03\x03\x00\x02\x02\x46\r\n")

        threading.Thread(target=serve, daemon=True).start()
        with Client(f"http://127.0.0.1:{tls.getsockname()[1]}") as client:
            with self.assertRaises(HandoffError) as refused:
                client.status("x")
        self.assertIn("perhaps the address begins with https://", str(refused.exception))

    @unittest.skipUnless(shutil.which("openssl"), "no openssl")
    def test_over_tls_the_certificate_counts(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
             "/CN=h", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/key", "-out", f"{folder}/cert"],
            check=True, capture_output=True,
        )
        server = Server(self, lambda *_: (200, {}, {"pending": 3}))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/cert", f"{folder}/key")
        server.server.socket = context.wrap_socket(server.server.socket, server_side=True)
        url = server.url.replace("http:", "https:")
        with Client(url, ssl_context=ssl.create_default_context(cafile=f"{folder}/cert")) as client:
            self.assertEqual([client.inbox("in")["pending"] for _ in range(3)], [3] * 3)
            self.assertEqual(len(client._settings.transport._kept), 1)
            client._settings.transport._kept[-1].sock.shutdown(socket.SHUT_RDWR)
            self.assertEqual(client.inbox("in", retry_for=0)["pending"], 3)
        with Client(url) as client, self.assertRaises(HandoffError) as refused:
            client.inbox("in")
        self.assertEqual((refused.exception.code, refused.exception.retryable), ("connection_failed", False))
        self.assertIn("certificate", str(refused.exception))

    def test_20_mb_come_whole(self):
        items = [{"handoff_id": f"{n}", "task": "x" * 2_000_000} for n in range(10)]
        for headers in ({}, {"Connection": "close"}):
            server = Server(self, lambda *_: (200, headers, {"items": items}))
            with Client(server.url, retry_for=0) as client:
                caught = client.catch_next("in", max=10)
                self.assertEqual(len(client._settings.transport._kept), 0 if headers else 1)
            self.assertEqual(caught, items)
            self.assertEqual([json.loads(one.text) for one in caught], items)

    def test_through_a_proxy(self):
        seen = []

        def forward(method, path, headers, body, index):
            seen.append((method, path, headers.get("host"), headers.get("proxy-authorization")))
            return 200, {}, {"pending": 7}

        proxy = Server(self, forward)
        address = proxy.url.replace("//", "//user:p%40ss@")
        clean = {name: "" for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "NO_PROXY")}
        with environment(**{**clean, "http_proxy": address}):
            with Client("http://service.test:81/base") as client:
                self.assertEqual(client.inbox("in")["pending"], 7)
        self.assertEqual(
            seen, [("GET", "http://service.test:81/base/api/inboxes/in", "service.test:81", "Basic dXNlcjpwQHNz")]
        )
        with environment(**{**clean, "http_proxy": address, "no_proxy": "127.0.0.1,.test"}):
            self.client("alice").inbox("in")
            self.assertEqual(len(seen), 1)
            with Client("http://service.test", retry_for=0) as client:
                self.assertEqual(code_of(client.inbox, "in"), "connection_failed")
        for exempt in ("127.0.0.0/8", "10.0.0.0/8, 127.0.0.1/32", "::1/128 127.0.0.0/8"):
            with environment(**{**clean, "http_proxy": address, "no_proxy": exempt}):
                self.client("alice").inbox("in")
                self.assertEqual(len(seen), 1, exempt)
        for url, exempt, is_exempt in (
            ("http://service.test", "service.test:80", True), ("http://a.service.test:81", "x, *.Service.test", True),
            ("http://service.test:81", "*, x", True), ("http://service.test:81", "a service.test", True),
            ("http://[::1]:81", "[::1]", True), ("http://[::1]:81", "[::1]:81", True),
            ("http://[::1]:81", "[::1]:8", False),
            ("http://service.test:81", "service.test:80", False), ("http://xservice.test", "service.test,,.", False),
        ):
            with environment(**{**clean, "http_proxy": address, "no_proxy": exempt}):
                with Client(url) as client:
                    self.assertEqual(client._settings.transport._proxy is None, is_exempt, f"{url} {exempt}")
        for name, exempt in (("http_proxy", ""), ("all_proxy", "10.0.0.0/8")):
            with environment(**{**clean, name: "socks5h://user:secret@h:1", "no_proxy": exempt}):
                with self.assertRaisesRegex(ValueError, f"^{name.upper()} names a proxy that can't be used") as refused:
                    Client("http://service.test")
                self.assertNotIn("secret", str(refused.exception))
        with environment(**{**clean, "all_proxy": "socks5h://h:1", "http_proxy": address}):
            Client("http://service.test").close()
        tunnels = []
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def tunnel():
            near, _ = listener.accept()
            with near:
                tunnels.append(near.recv(65_536))
                near.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

        threading.Thread(target=tunnel, daemon=True).start()
        with environment(**{**clean, "https_proxy": f"http://u:p@127.0.0.1:{listener.getsockname()[1]}"}):
            with Client("https://service.test", retry_for=0) as client:
                self.assertEqual(code_of(client.inbox, "in"), "connection_failed")
        self.assertTrue(tunnels[0].startswith(b"CONNECT service.test:443 HTTP/1."))
        self.assertIn(b"Proxy-Authorization: Basic dTpw", tunnels[0])

    def test_retry_after_is_obeyed(self):
        server = Server(self, lambda *args: (429, {"Retry-After": "1"}, b"") if args[4] == 0 else (200, {}, {}))
        began = time.monotonic()
        with Client(server.url) as client:
            client.status("x")
            self.assertGreaterEqual(time.monotonic() - began, 1)
        later = Server(self, lambda *args: (503, {"Retry-After": "60"}, b""))
        with Client(later.url) as client, self.assertRaises(HandoffError) as refused:
            client.status("x")
        self.assertEqual((refused.exception.retry_after, len(later.seen)), (60, 1))
        date = {"Date": "Fri, 20 Nov 2020 09:00:00 GMT", "Retry-After": "Fri, 20 Nov 2020 09:01:00 GMT"}
        dated = Server(self, lambda *args: (503, date, b""))
        with Client(dated.url) as client, self.assertRaises(HandoffError) as refused:
            client.status("x")
        self.assertEqual(refused.exception.retry_after, 60)

    def test_a_lost_decision_is_found_again(self):
        for is_kept in (False, True):
            with self.subTest(is_kept=is_kept):
                self.lose_a_decision(is_kept)

    def lose_a_decision(self, is_kept):
        alice = self.client("alice")
        id = alice.pass_("t", require_human=True)["handoff_id"]
        dropped = []

        def fate(method, path, headers, body, index):
            if method == "GET":
                return 200, {}, {"items": []}
            own = Client(URL, self.keys["approver"])
            try:
                answer = own.approvals.approve(id, note="Go.")
                return 200, {}, answer.text.encode()
            except HandoffError as error:
                return error.status, {}, error.text.encode()
            finally:
                own.close()
                if not dropped:
                    dropped.append(index)
                    raise OSError("dropped")

        server = Server(self, fate)
        with Client(server.url) as carol:
            if is_kept:
                carol.asks()
            decided = carol.approvals.approve(id, note="Go.")
        self.assertEqual((decided["approval"]["state"], dropped), ("approved", [int(is_kept)]))
        self.assertEqual(json.loads(decided.text), decided)


class Sharing(Case):
    def test_100_threads_share_a_client(self):
        alice, bob = self.client("alice"), self.client("bob")
        caught, errors = [], []

        def run(n):
            try:
                alice.pass_(str(n), to="in")
                caught.extend(bob.catch_next("in", wait=20))
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=(n,)) for n in range(100)]
        [one.start() for one in threads]
        [one.join() for one in threads]
        self.assertEqual(errors, [])
        self.assertEqual(sorted(int(one["task"]) for one in caught), list(range(100)))

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_forked_child_has_connections_of_its_own(self):
        relay = Relay(self)
        alice = self.client("alice", relay.url)
        alice.inbox("in")
        before = relay.count
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                id = alice.pass_("of the child", to="in")["handoff_id"]
                os.write(write, id.encode())
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        os.close(write)
        with os.fdopen(read) as file:
            id = file.read()
        self.assertEqual(relay.count, before + 1)
        self.assertEqual(alice.status(id)["status"], "pending")
        self.assertEqual(relay.count, before + 1, "the parent's is still its own")

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_fork_beside_a_running_worker_harms_neither(self):
        relay = Relay(self)
        alice, bob = self.client("alice"), self.client("bob", relay.url)
        stop, errors = threading.Event(), []
        working = threading.Thread(target=bob.work, args=("in", lambda *_: {"pid": os.getpid()}), kwargs={
            "stop": stop, "on_error": lambda error, handoff: errors.append(error)
        })
        working.start()
        self.until(lambda: b"/api/catch" in relay.forwarded)
        pid = os.fork()
        if pid == 0:
            # It uses the client, closes it, and lets go of all that it has of its parent's.
            try:
                with bob:
                    bob.inbox("in")
                del bob, working
                gc.collect()
            finally:
                os._exit(0)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        count = relay.count
        ids = [alice.pass_("t", to="in")["handoff_id"] for _ in range(3)]
        pids = {one["result"]["pid"] for one in alice.wait_for_all(ids, timeout=20)}
        self.assertEqual((pids, relay.count, errors), ({os.getpid()}, count, []))
        stop.set()
        working.join(10)
        self.assertFalse(working.is_alive())

    def test_a_clock_that_is_set_changes_no_wait(self):
        alice = self.client("alice")
        id = alice.pass_("t", to="in")["handoff_id"]
        jumps = iter(range(10**6))
        with mock.patch("time.time", lambda: next(jumps) * 1e6):
            began = _scope.now()
            self.assertEqual(code_of(alice.wait_for, id, timeout=1), "timeout")
        self.assertGreaterEqual(_scope.now() - began, 1)


class Cancelled(Case):
    def run_in(self, url, body):
        async def run():
            async with AsyncClient(url, self.keys["bob"]) as bob:
                await body(bob)

        asyncio.run(run())

    def lost(self, forwards=True):
        """A proxy that holds back the first catch's answer until it is released, or that catch itself."""
        held, release = threading.Event(), threading.Event()

        def forward(method, path, headers, body, index):
            is_first = path.startswith(("/api/catch", "/api/batch")) and not held.is_set()
            if is_first and not forwards:
                held.set()
                release.wait(1)
                return None
            far = http.client.HTTPConnection(*socket_of(URL))
            more = {name: value for name, value in headers.items() if name.lower() != "host"}
            far.request(method, path, body or None, more)
            answer = far.getresponse()
            said = answer.read()
            far.close()
            if is_first:
                held.set()
                release.wait(10)
            return answer.status, {}, said

        return Server(self, forward), held, release

    def test_what_a_cancelled_catch_has_caught_is_given_back(self):
        alice = self.client("alice")
        for number, catch in enumerate((
            lambda bob, id: bob.catch_next("in", max=3, wait=20), lambda bob, id: bob.catch(id),
            lambda bob, id: bob.batch([{"op": "catch", "id": id}]),
        )):
            id = alice.pass_("t", to="in", max_attempts=2, retry_delay=0)["handoff_id"]
            server, held, release = self.lost()

            async def body(bob):
                catching = asyncio.ensure_future(catch(bob, id))
                await asyncio.to_thread(held.wait, 10)
                catching.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await catching

            self.run_in(server.url, body)
            release.set()
            with self.subTest(number):
                self.assertEqual((alice.status(id)["status"], alice.inbox("in")["caught"]), ("declined", 0))
                alice.cancel(alice.status(id)["reissued_as"])

    INTERRUPTED = """
import sys
from agent_handoff import Client
with Client() as client:
    exec(sys.argv[1])
"""

    @unittest.skipUnless(os.name == "posix", "no signals")
    def test_nor_does_ctrl_c_leave_anything_caught(self):
        alice = self.client("alice")
        for number, code in enumerate((
            "client.catch_next('in', max=3, wait=20)", "client.catch({id!r})",
            "client.batch([{{'op': 'catch', 'id': {id!r}}}])",
            "import signal; signal.signal(signal.SIGINT, lambda *_: sys.exit(3)); client.catch_next('in', wait=20)",
        )):
            id = alice.pass_("t", to="in")["handoff_id"]
            server, held, release = self.lost()
            env = {**os.environ, "HANDOFF_URL": server.url, "HANDOFF_KEY": self.keys["bob"]}
            with subprocess.Popen(
                [sys.executable, "-c", self.INTERRUPTED, code.format(id=id)], env=env, stderr=subprocess.DEVNULL
            ) as child:
                self.assertTrue(held.wait(10))
                child.send_signal(signal.SIGINT)
            release.set()
            with self.subTest(number):
                self.assertEqual((alice.status(id)["status"], child.returncode != 0), ("declined", True))

    def test_nothing_else_is_caught_by_giving_back(self):
        alice = self.client("alice")
        [alice.pass_("t", to="in") for _ in range(3)]
        server, held, _ = self.lost(forwards=False)

        async def body(bob):
            catching = asyncio.ensure_future(bob.catch_next("in", max=5, wait=20))
            await asyncio.to_thread(held.wait, 10)
            catching.cancel()
            await asyncio.gather(catching, return_exceptions=True)

        # The service never heard of it, and it isn't asked for it now.
        self.run_in(server.url, body)
        inbox = alice.inbox("in")
        self.assertEqual((inbox["pending"], inbox["caught"], inbox["failed"]), (3, 0, 0))
        id = alice.pass_("by id", delay=30)["handoff_id"]

        async def by_id(bob):
            waiting = asyncio.ensure_future(bob.catch(id, wait=20))
            await asyncio.sleep(0.1)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

        self.run_in(URL, by_id)
        self.assertEqual(alice.status(id)["status"], "pending")

    def test_a_loop_that_is_closed_leaves_nothing_caught_either(self):
        alice = self.client("alice")
        bob = AsyncClient(URL, self.keys["bob"])
        loop = asyncio.new_event_loop()
        task = loop.create_task(bob.catch_next("in", wait=20))
        loop.run_until_complete(asyncio.sleep(0.2))
        loop.close()
        id = alice.pass_("t", to="in")["handoff_id"]
        self.until(lambda: alice.inbox("in")["caught"] == 0 and alice.status(id)["status"] in ("pending", "declined"))
        self.assertFalse(task.done())
        # And the client goes on in another loop.
        self.assertEqual(asyncio.run(bob.inbox("in"))["caught"], 0)
        asyncio.run(bob.aclose())
        with self.assertRaises(RuntimeError):
            asyncio.run(bob.inbox("in"))

    def test_a_cancelled_worker_gives_back_what_it_has(self):
        alice = self.client("alice")
        ids = [alice.pass_("t", to="in")["handoff_id"] for _ in range(3)]
        stopped = []

        async def body(bob):
            started = asyncio.Semaphore(0)

            async def handle(handoff, context):
                started.release()
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    stopped.append(handoff["handoff_id"])
                    raise

            working = asyncio.ensure_future(bob.work("in", handle, concurrency=2))
            await started.acquire()
            await started.acquire()
            working.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await working

        self.run_in(URL, body)
        self.assertEqual(sorted(stopped), sorted(ids[:2]))
        self.assertEqual([alice.status(id)["status"] for id in ids], ["declined", "declined", "pending"])
