"""Files that go up and come down, with the real service."""

import asyncio
import hashlib
import os
import pathlib
import tempfile
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

    def test_coroutines(self):
        async def go():
            async with AsyncClient(URL, self.keys["alice"]) as client:
                put = await client.files.put(b"four", name="n")
                await client.files.get(put["uri"], self.folder / "x")
                self.assertEqual((await client.files.info(put["uri"]))["bytes"], 4)
                await client.files.delete(put["uri"])

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
