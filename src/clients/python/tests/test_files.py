"""Files that go up and come down, with the real service."""

import asyncio
import errno
import hashlib
import os
import pathlib
import resource
import tempfile
import threading
import unittest

from agent_handoff import AsyncClient, HandoffError

from .common import URL, Case, Server


class Files(Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_file_goes_up_and_comes_down(self):
        client = self.client("alice")
        path = self.folder / "ä 100%.bin"
        data = b"abc" * 200_000
        path.write_bytes(data)
        put = client.files.put(path, media_type="text/plain")
        self.assertEqual(put, {
            "name": "ä 100%.bin", "uri": put["uri"], "media_type": "text/plain", "bytes": 600_000,
            "sha256": hashlib.sha256(data).hexdigest(),
        })
        self.assertEqual(client.files.info(put["uri"])["state"], "whole")
        to = self.folder / "came"
        self.assertEqual(client.files.get(put["uri"], to)["name"], "ä 100%.bin")
        self.assertEqual(to.read_bytes(), data)
        self.assertEqual(sorted(os.listdir(self.folder)), ["came", "ä 100%.bin"])
        self.assertEqual(client.files.put(b"four", name="n")["bytes"], 4)
        self.assertEqual(client.files.put(b"", name="n")["bytes"], 0)
        with self.assertRaises(TypeError):
            client.files.put(b"four")
        with self.assertRaises(OSError):
            client.files.get(put["uri"], self.folder / "nowhere" / "x")
        client.files.delete(put["uri"])
        with self.assertRaises(HandoffError) as raised:
            client.files.get(put["uri"], to)
        self.assertEqual(raised.exception.code, "not_found")

    def test_files_of_a_pass_and_of_a_done_are_uploaded_from_their_paths(self):
        alice, bob = self.client("alice"), self.client("bob")
        one, two = self.folder / "one.csv", self.folder / "two.csv"
        one.write_bytes(b"first")
        two.write_bytes(b"second")
        put = alice.files.put(b"put before", name="put")
        link = {"name": "link", "uri": "https://x.example/a"}
        id = alice.pass_("t", files=[str(one), link, two, put])["handoff_id"]
        files = bob.catch(id)["files"]
        self.assertEqual([file["name"] for file in files], ["one.csv", "link", "two.csv", "put"])
        self.assertEqual(files[0]["sha256"], hashlib.sha256(b"first").hexdigest())
        bob.files.get(files[2]["uri"], self.folder / "came")
        self.assertEqual((self.folder / "came").read_bytes(), b"second")
        bob.done(id, {"n": 1}, files=[two])
        self.assertEqual([file["name"] for file in alice.status(id)["result_files"]], ["two.csv"])
        with self.assertRaises(FileNotFoundError):
            alice.pass_("t", files=[self.folder / "none"])
        results = alice.batch([{"op": "pass", "body": {"task": "b", "files": [one]}}])["results"]
        self.assertEqual(results[0]["status"], 201)

    def test_a_repeated_pass_uploads_nothing_that_is_there(self):
        alice, one = self.client("alice"), self.folder / "one.csv"
        real = alice.files._open
        puts = []

        def upload(*args, **options):
            puts.append(args[2])
            if len(puts) == 1:
                raise HandoffError("connection_failed", detail="It broke off.", retryable=True)
            real(*args, **options)

        alice.files._open = upload
        one.write_bytes(b"first")

        def passed(**options):
            return alice.pass_("t", files=[one], idempotency_key="k" * 128, **options)

        with self.assertRaises(HandoffError):
            passed(retry_for=0)
        id = passed()["handoff_id"]
        self.assertEqual(puts, ["PUT", "PUT"], "what had not arrived is sent")
        self.assertEqual(passed()["handoff_id"], id)
        self.assertEqual(len(puts), 2)

        def batch():
            operations = [{"op": "pass", "body": {"task": "t", "files": [one]}}] * 2
            return [one["body"]["handoff_id"] for one in alice.batch(operations, idempotency_key="b")["results"]]

        ids = batch()
        self.assertEqual(batch(), ids)
        self.assertEqual(len(puts), 4)

    def test_a_handler_attaches_files_to_its_result(self):
        alice, bob = self.client("alice"), self.client("bob")
        one, stop = self.folder / "one.csv", threading.Event()
        one.write_bytes(b"first")
        ids = [alice.pass_(task, to="in")["handoff_id"] for task in ("works", "names nothing")]

        def handle(handoff, context):
            works = handoff["task"] == "works"
            if works:
                context.attach(one)
            context.attach({"name": "x", "uri": "https://x.example/" if works else "handoff-file:none"})
            return {}

        def ended(handoff, how):
            if handoff["handoff_id"] == ids[1]:
                stop.set()

        bob.work("in", handle, stop=stop, on_end=ended, on_error=lambda error, handoff: None)
        works, names_nothing = [alice.status(id) for id in ids]
        self.assertEqual([file["name"] for file in works["result_files"]], ["one.csv", "x"])
        self.assertEqual(names_nothing["error"]["code"], "file_missing")

    def test_a_file_that_finds_no_room_here_says_so_and_leaves_nothing(self):
        client = self.client("alice")
        uri = client.files.put(b"x" * 100_000, name="n")["uri"]
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
        try:
            with self.assertRaises(OSError) as raised:
                client.files.get(uri, self.folder / "came")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        self.assertEqual(raised.exception.errno, errno.EFBIG)
        self.assertEqual(os.listdir(self.folder), [])
        name = "n" * 255
        client.files.get(client.files.put(b"four", name=name)["uri"], self.folder / name)

    def test_coroutines(self):
        async def go():
            async with AsyncClient(URL, self.keys["alice"]) as client:
                put = await client.files.put(b"four", name="n")
                one = self.folder / "one"
                one.write_bytes(b"1")
                id = (await client.pass_("t", files=[one]))["handoff_id"]
                self.assertEqual((await client.catch(id))["files"][0]["name"], "one")
                await client.done(id, files=[put, one])
                await client.files.get(put["uri"], self.folder / "x")
                self.assertEqual((await client.files.info(put["uri"]))["bytes"], 4)

        asyncio.run(go())
        self.assertEqual((self.folder / "x").read_bytes(), b"four")

    def test_what_comes_is_what_was_put_and_the_key_stays_here(self):
        digest = hashlib.sha256(b"0123456789").hexdigest()

        def answer(method, path, headers, body, index):
            if path.startswith("/api/"):
                info = (
                    '{"file_id":"f","name":"n","bytes":10,"sha256":"%s","media_type":null,"state":"whole",'
                    '"url":"%s/files/f","url_expires_at":null}' % (digest, store.url)
                )
                return 200, {"content-type": "application/json"}, info.encode()
            return [
                (200, {}, b"012345678X"), (503, {}, b""), None, (200, {}, b"0123456789"),
            ][min(3, len([one for one in store.seen if one[1] == "/files/f"]) - 1)]

        store = Server(self, answer)
        client = self.client("alice", store.url)
        client.files.get("handoff-file:f", self.folder / "came")
        self.assertEqual((self.folder / "came").read_bytes(), b"0123456789")
        self.assertEqual(os.listdir(self.folder), ["came"])
        keys = [(path, headers.get("authorization") is not None) for _, path, headers, _ in store.seen]
        self.assertEqual(set(keys), {("/api/files/f", True), ("/files/f", False)})
        self.assertEqual(len(keys), 5)


if __name__ == "__main__":
    unittest.main()
