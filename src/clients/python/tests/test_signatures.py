"""Signatures of people's decisions: what test/client/signatures.test.ts has the service answer, and changes."""

import asyncio
import json
import os
import sys
import unittest
import unittest.mock

from agent_handoff import AsyncClient, Client, HandoffError
from agent_handoff._json import answer_of

try:
    import cryptography
except ImportError:
    cryptography = None

with open(os.environ["HANDOFF_SIGNED"], encoding="utf-8") as file:
    given = json.load(file)
url, cases = given["url"], given["cases"]


def outcome(verify, case):
    options = {name: case[name] for name in ("jwks", "issuer") if name in case}
    try:
        return verify(answer_of(case["text"]), **options)
    except HandoffError as error:
        return error


@unittest.skipIf(cryptography is None, "there is no cryptography")
class Signatures(unittest.TestCase):
    def test_each_answer(self):
        with Client(url) as client:
            for case in cases:
                with self.subTest(case["name"]):
                    found = outcome(client.verify_approval, case)
                    if "code" in case:
                        self.assertIsInstance(found, HandoffError)
                        self.assertEqual((found.code, found.retryable), (case["code"], False))
                    else:
                        self.assertEqual((found["iss"], found["state"]), (url, "approved"))
        self.assertGreater(len(cases), 50)

    def test_asyncio(self):
        async def both():
            async with AsyncClient(url) as client:
                claims = await client.verify_approval(answer_of(cases[0]["text"]))
                self.assertEqual(claims["decided_by"], "carol")
                with self.assertRaises(HandoffError) as raised:
                    await client.verify_approval(answer_of(cases[0]["text"]), issuer="https://other.example.com")
                self.assertEqual(raised.exception.code, "issuer")

        asyncio.run(both())

    def test_keys_need_no_key_and_are_kept(self):
        def key():
            raise AssertionError("not needed")

        with Client(url, key) as client:
            sent = []
            transport = client._verifier._settings.transport
            send = transport.send
            transport.send = lambda method, path, *rest: (sent.append(path), send(method, path, *rest))[1]
            for _ in range(3):
                client.verify_approval(answer_of(cases[0]["text"]))
            unknown = next(case for case in cases if case["name"] == "no kid")
            self.assertEqual(outcome(client.verify_approval, unknown).code, "unknown_key")
            self.assertEqual(sent, ["/.well-known/jwks.json"])


class Without(unittest.TestCase):
    def test_what_is_missing_is_named(self):
        missing = {name: None for name in ("cryptography", "cryptography.exceptions")}
        with unittest.mock.patch.dict(sys.modules, missing), Client(url) as client:
            with self.assertRaisesRegex(ImportError, r"agent_handoff\[verify\]"):
                client.verify_approval(answer_of(cases[0]["text"]))
