"""Where clients have their keys from, and what they do when a key is refused."""

import asyncio
import os
import tempfile
import threading
import unittest
from pathlib import Path

from agent_handoff import AsyncClient, Client, HandoffError

from .common import URL, Case, Server, environment


class Keys(unittest.TestCase):
    """With a server that knows one key."""

    def setUp(self):
        def answer(method, path, headers, body, index):
            if headers["authorization"] == "Bearer good":
                return 200, {}, {"handoff_id": "x", "status": "pending"}
            return 401, {}, {"code": "unauthorized", "status": 401, "detail": "No."}

        self.server = Server(self, answer)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def sent(self):
        return [str(headers["authorization"]).replace("Bearer ", "") for _, _, headers, _ in self.server.seen]

    def asked(self, of_loop=False, **options):
        """What became of a pass, the keys that were sent, and how many Idempotency-Keys."""
        self.server.seen.clear()

        async def run():
            async with AsyncClient(self.server.url, retry_for=0, **options) as client:
                await client.pass_("t")

        try:
            if of_loop:
                asyncio.run(run())
            else:
                with Client(self.server.url, retry_for=0, **options) as client:
                    client.pass_("t")
            outcome = "passed"
        except HandoffError as error:
            outcome = error.code
        return outcome, self.sent(), len({headers["idempotency-key"] for _, _, headers, _ in self.server.seen})

    def test_after_a_401_the_key_is_read_once_more_and_the_request_sent_once_more(self):
        file = self.folder / "key"
        file.write_text("bad")
        for of_loop in (False, True):
            with self.subTest(of_loop=of_loop):
                keys = iter(("bad", "good"))
                self.assertEqual(self.asked(of_loop, key=lambda: next(keys)), ("passed", ["bad", "good"], 1))
                keys = iter(("bad1", "bad2", "good"))
                self.assertEqual(self.asked(of_loop, key=lambda: next(keys)), ("unauthorized", ["bad1", "bad2"], 1))
                self.assertEqual(self.asked(of_loop, key_file=file), ("unauthorized", ["bad", "bad"], 1))
                self.assertEqual(self.asked(of_loop, key="bad"), ("unauthorized", ["bad"], 1))
        file.write_bytes("\ufeff good \r\n".encode())
        self.assertEqual(self.asked(key_file=str(file)), ("passed", ["good"], 1))

    def test_a_coroutine_function_runs_in_the_loop(self):
        keys, loops = iter(("bad", "good")), set()

        async def key():
            loops.add(asyncio.get_running_loop())
            await asyncio.sleep(0)
            return next(keys)

        self.assertEqual(self.asked(True, key=key), ("passed", ["bad", "good"], 1))
        self.assertEqual(len(loops), 1)
        with self.assertRaisesRegex(TypeError, "AsyncClient"):
            Client(self.server.url, key)

        async def fails():
            raise ValueError("away")

        self.assertEqual(self.asked(True, key=fails), ("key_unavailable", [], 0))

        async def hangs():
            await asyncio.sleep(60)

        self.assertEqual(self.asked(True, key=hangs, attempt_timeout=0.1), ("key_unavailable", [], 0))

    def test_a_call_that_waits_for_its_key_can_be_cancelled(self):
        async def run():
            begun, ended = asyncio.Event(), asyncio.Event()

            async def key():
                begun.set()
                try:
                    await asyncio.sleep(60)
                finally:
                    ended.set()

            async with AsyncClient(self.server.url, key) as client:
                call = asyncio.ensure_future(client.pass_("t"))
                await begun.wait()
                call.cancel()
                await asyncio.wait_for(ended.wait(), 5)
                await asyncio.wait({call})

        asyncio.run(run())
        self.assertEqual(self.sent(), [])

    def test_what_cannot_be_a_key_is_said_before_a_request_is_sent(self):
        empty, words = self.folder / "empty", self.folder / "words"
        empty.write_text(" \n")
        words.write_text("two words")
        for options, kind, says in (
            ({"key_file": self.folder / "none"}, ValueError, "none can’t be used: .*No such file"),
            ({"key_file": self.folder}, ValueError, "can’t be used: .*directory"),
            ({"key_file": empty}, ValueError, "empty can’t be used: a key must not be empty"),
            ({"key_file": words}, ValueError, "words can’t be used: .*visible ASCII"),
            ({"key": "k", "key_file": empty}, TypeError, "^key and key_file are given"),
            ({"key": ""}, ValueError, "must not be empty"),
        ):
            with self.subTest(says), self.assertRaisesRegex(kind, says):
                self.asked(**options)
        for wrong in ("", None):
            self.assertEqual(self.asked(key=lambda: wrong), ("key_unavailable", [], 0))
        self.assertEqual(self.sent(), [])

    def test_the_options_come_before_the_environment_and_a_key_there_before_a_file(self):
        file = self.folder / "key"
        file.write_text("of-the-file")
        for variables, options, sent in (
            ({"HANDOFF_KEY": "of-the-environment", "HANDOFF_KEY_FILE": "/nowhere"}, {}, "of-the-environment"),
            ({"HANDOFF_KEY": "", "HANDOFF_KEY_FILE": str(file)}, {}, "of-the-file"),
            ({"HANDOFF_KEY": "of-the-environment"}, {"key_file": file}, "of-the-file"),
            ({"HANDOFF_KEY_FILE": str(file)}, {"key": "given"}, "given"),
            ({"HANDOFF_KEY_FILE": str(file)}, {"key": lambda: "of-the-function"}, "of-the-function"),
            ({}, {}, "None"),
        ):
            with self.subTest(sent), environment(**{"HANDOFF_KEY": "", "HANDOFF_KEY_FILE": "", **variables}):
                self.assertEqual(self.asked(**options)[1][0], sent)


class Files(Case):
    """With the service."""

    def test_a_file_is_read_again_when_its_link_leads_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "token"

            def rotate(text):
                target = Path(folder) / f"target-{threading.get_ident()}-{text}"
                target.write_text(text)
                os.symlink(target, f"{path}.new")
                os.replace(f"{path}.new", path)

            rotate(self.keys["alice"])
            with Client(URL, key_file=path) as client:
                self.assertEqual(client.whoami()["agent"], "alice")
                rotate(self.keys["bob"])
                self.assertEqual(client.whoami()["agent"], "bob")
                rotate("")
                with self.assertRaises(HandoffError) as raised:
                    client.whoami(retry_for=0)
                self.assertEqual((raised.exception.code, raised.exception.retryable), ("key_unavailable", True))
                self.assertIn(str(path), raised.exception.detail)
                later = threading.Timer(0.2, rotate, (self.keys["alice"],))
                later.start()
                self.addCleanup(later.cancel)
                self.assertEqual(client.whoami()["agent"], "alice")
