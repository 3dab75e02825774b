"""What the client does, with the real service."""

import asyncio
import json
import pickle
import subprocess
import sys
import threading
import unittest
from pathlib import Path

from agent_handoff import AsyncClient, Client, HandoffError, RawJson, WebhookVerificationError, verify_webhook
from agent_handoff import _json, _transport

from .common import URL, Case, Server, called, called_async, environment

EXCHANGES = json.loads((Path(__file__).parents[2] / "exchanges.json").read_text(encoding="utf-8"))


class Exchanges(unittest.TestCase):
    def serve(self):
        current = {}

        def answer(method, path, headers, body, index):
            one = current["one"]
            if "before" in one and index == 0:
                return one["before"], {}, b""
            text = one["answer"].get("text")
            return one["answer"]["status"], {}, one["answer"]["body"] if text is None else text.encode()

        return current, Server(self, answer)

    def check(self, one, found, seen):
        if "error" in one:
            self.assertEqual({name: found[name] for name in one["error"]}, one["error"])
        else:
            self.assertEqual(found, one["result"])
        self.assertEqual(len(seen), 2 if "before" in one else 1)
        for method, path, headers, body in seen:
            self.assertTrue(path.startswith("/base/api/"))
            said = {"method": method, "path": path.removeprefix("/base"), "body": json.loads(body) if body else None}
            self.assertEqual(said, {name: one["request"][name] for name in said})
            key = headers.get("idempotency-key")
            if isinstance(one["request"]["key"], str):
                self.assertEqual(key, one["request"]["key"])
            self.assertEqual(key is not None, bool(one["request"]["key"]))
            self.assertEqual(key, seen[0][2].get("idempotency-key"))

    def test_each_call_says_on_the_wire_what_the_exchanges_say(self):
        current, server = self.serve()
        with Client(f"{server.url}/base//", "a-key-of-alice-0123456789") as client:
            for one in EXCHANGES:
                with self.subTest(one["name"]):
                    current["one"] = one
                    server.seen.clear()
                    self.check(one, called(client, one["python"]), server.seen)

    def test_the_async_client_says_the_same(self):
        current, server = self.serve()

        async def run():
            async with AsyncClient(f"{server.url}/base/", "a-key-of-alice-0123456789") as client:
                for one in EXCHANGES:
                    with self.subTest(one["name"]):
                        current["one"] = one
                        server.seen.clear()
                        self.check(one, await called_async(client, one["python"]), server.seen)

        asyncio.run(run())


class Answers(Case):
    def test_each_answer_has_its_exact_text(self):
        alice, bob = self.client("alice"), self.client("bob")
        raw = '{"n":9007199254740993,"one":1.0,"far":1e400,"é":"\\ud800","long":' + "7" * 5000 + "}"
        passed = alice.pass_("Zähle.", to="in", output=RawJson(raw), context={"deep": RawJson("1.50")})
        self.assertEqual(json.loads(passed.text), passed)
        alice.pass_("another", to="in", context={"half": "\ud800", "whole": "😀"})
        caught = bob.catch_next("in", max=2)
        self.assertEqual([one["task"] for one in caught], ["Zähle.", "another"])
        self.assertIn(raw, caught[0].text)
        self.assertIn('{"deep":1.50}', caught[0].text)
        self.assertEqual(caught[0]["output"]["n"], 9007199254740993)
        self.assertEqual(caught[1]["context"], {"half": "\ud800", "whole": "😀"})
        self.assertIn(caught[1].text, caught.text)
        batch = bob.batch([{"op": "status", "id": caught[0]["handoff_id"]}, {"op": "status", "id": "x"}])
        self.assertEqual([one["status"] for one in batch["results"]], [200, 404])
        self.assertEqual(json.loads(batch["results"][0]["body"].text), batch["results"][0]["body"])
        self.assertEqual(pickle.loads(pickle.dumps(caught[1])).text, caught[1].text)

    def test_texts_are_found_wherever_they_are(self):
        for text, texts in {
            '{"items":[]}': [], '{"a":"]","items" : [ 1 ,"a\\"]," , {"b":[2]}\n] }': ["1", '"a\\"],"', '{"b":[2]}'],
            '{"items":[1],"items":[2,3]}': ["2", "3"], '{"b":{"items":[9]}}': [], "{}": [],
        }.items():
            self.assertEqual(_json.element_texts(text, "items"), texts)
        self.assertEqual(_json.encode({"a": RawJson("1.0"), "b": [RawJson('{"c":1e5}')]}), b'{"a":1.0,"b":[{"c":1e5}]}')
        for wrong in ("", "1,2", "NaN", "{", '{"a":1}x'):
            with self.assertRaises(ValueError):
                RawJson(wrong)
        for unsayable in (float("nan"), {1}, object()):
            with self.assertRaises((TypeError, ValueError)):
                _json.encode({"a": unsayable})


class Flow(Case):
    def test_a_handoff_from_its_pass_to_its_end(self):
        alice, bob = self.client("alice"), self.client("bob")
        id = alice.pass_("one", to="in", heartbeat_within=60, max_attempts=3, retry_delay=0)["handoff_id"]
        self.assertEqual(alice.inbox("in")["pending"], 1)
        with self.assertRaises(HandoffError) as late:
            alice.wait_for(id, timeout=0.2)
        self.assertEqual((late.exception.code, late.exception.handoff_status), ("timeout", "pending"))
        self.assertIn(id, str(late.exception))
        self.assertIn("pending", str(late.exception))
        [work] = bob.catch_next("in", wait=5)
        self.assertFalse(bob.heartbeat(id, message="Half.", percent=50)["cancel_requested"])
        second = bob.fail(id, ValueError("No."))["reissued_as"]
        self.assertEqual(alice.status(id)["error"], {"message": "No."})
        bob.catch(second, wait=5)
        third = bob.decline(second, "Busy.")["reissued_as"]
        bob.catch(third, wait=5)
        self.assertEqual(alice.cancel(third, reason="Old.")["status"], "caught")
        self.assertEqual(bob.heartbeat(third)["cancel_reason"], "Old.")
        bob.done(third, {"rows": 5})
        for timeout in (5, float("inf")):
            self.assertEqual(alice.wait_for(id, timeout=timeout, attempt_timeout=timeout)["result"], {"rows": 5})
        self.assertEqual(alice.wait_for(id, timeout=5, follow=False)["status"], "failed")
        with self.assertRaises(HandoffError) as refused:
            bob.catch(third)
        error = pickle.loads(pickle.dumps(refused.exception))
        self.assertEqual((error.code, error.status, error.handoff_status), ("already_done", 409, "done"))
        self.assertEqual(str(error), str(refused.exception))

    def test_many_are_waited_for_and_a_timeout_names_what_is_open(self):
        alice, bob = self.client("alice"), self.client("bob")
        ids = [alice.pass_(str(n), to="in")["handoff_id"] for n in range(3)]
        for work in bob.catch_next("in", max=2):
            bob.done(work["handoff_id"], {"n": work["task"]})
        with self.assertRaises(HandoffError) as late:
            alice.wait_for_all([*ids, "none"], timeout=0.3)
        self.assertEqual((late.exception.code, late.exception.open), ("timeout", [ids[2]]))
        self.assertIn(f"{ids[2]} (pending)", str(late.exception))
        bob.done(bob.catch_next("in")[0]["handoff_id"])
        found = alice.wait_for_all([*ids, "none", ids[0]], timeout=5)
        self.assertEqual([one["status"] for one in found], ["done", "done", "done", "unknown", "done"])
        self.assertEqual(found[1]["result"], {"n": "1"})
        self.assertEqual(alice.wait_for_all([]), [])
        with self.assertRaises(TypeError):
            alice.wait_for_all("abc")

    def test_people_decide_and_answer(self):
        alice, bob, carol = self.client("alice"), self.client("bob"), self.client("approver")
        id = alice.pass_("t", require_human=True)["handoff_id"]
        self.assertEqual([one["handoff_id"] for one in carol.approvals.list()["items"]], [id])
        digest = carol.approvals.get(id)["digest"]
        self.assertEqual(carol.approvals.approve(id, note="Go.", digest=digest)["approval"]["state"], "approved")
        bob.catch(id)
        asked = bob.ask(id, "Which?", schema={"required": ["name"]})
        self.assertEqual(bob.asked(id)["state"], "open")
        self.assertEqual(carol.asks()["items"][0]["ask_id"], asked["ask_id"])
        with self.assertRaises(HandoffError) as refused:
            carol.answer(id, asked["ask_id"], {})
        self.assertEqual(refused.exception.code, "result_invalid")
        threading.Timer(0.2, carol.answer, (id, asked["ask_id"], {"name": "a"})).start()
        self.assertEqual(bob.asked(id, wait=100)["answer"], {"name": "a"})
        self.assertEqual(bob.ask(id, "And now?", of="passer", wait=0)["state"], "open")
        other = alice.pass_("t", require_human=True)["handoff_id"]
        self.assertEqual(carol.approvals.reject(other, "No.")["status"], "rejected")

    def test_events_resume(self):
        alice = self.client("alice")
        ids = [alice.pass_(str(n), to="in", labels={"run": "7"})["handoff_id"] for n in range(3)]
        seen = list(alice.events(follow=False, types=["handoff.passed"], labels={"run": "7"}))
        self.assertEqual([one["data"]["handoff_id"] for one in seen], ids)
        stop = threading.Event()
        found = []
        for event in alice.events(after=seen[0]["id"], stop=stop):
            found.append(event["data"]["handoff_id"])
            if len(found) == 2:
                alice.cancel(ids[0])
            if len(found) == 3:
                stop.set()
        self.assertEqual(found, [ids[1], ids[2], ids[0]])


class Async(Case):
    def test_a_worker_and_its_passer_in_one_loop(self):
        async def run():
            alice, bob = AsyncClient(URL, self.keys["alice"]), AsyncClient(URL, self.keys["bob"])
            stop = asyncio.Event()
            seen = []

            async def handle(handoff, context):
                seen.append(handoff["task"])
                await context.heartbeat(percent=1)
                if handoff["task"] == "bad":
                    raise ValueError("It broke.")
                return {"task": handoff["task"], "cancelled": bool(context.cancelled)}

            working = asyncio.create_task(bob.work("in", handle, concurrency=3, stop=stop))
            passed = await asyncio.gather(*(alice.pass_(task, to="in") for task in ("a", "b", "bad")))
            found = await alice.wait_for_all([one["handoff_id"] for one in passed], timeout=10)
            results = [*({"task": task, "cancelled": False} for task in "ab"), None]
            self.assertEqual([one["result"] for one in found], results)
            self.assertEqual(found[2]["error"], {"message": "It broke."})
            stop.set()
            await asyncio.wait_for(working, 5)
            types = [event["type"] async for event in alice.events(follow=False, types=["handoff.done"])]
            self.assertEqual(types, ["handoff.done"] * 2)

        asyncio.run(run())

    def test_a_cancelled_catch_leaves_nothing_caught(self):
        async def run():
            alice, bob = AsyncClient(URL, self.keys["alice"]), AsyncClient(URL, self.keys["bob"])
            for catch in (bob.catch_next("in", wait=30), bob.catch_next(inboxes=["a", "in"], wait=30)):
                waiting = asyncio.create_task(catch)
                await asyncio.sleep(0.1)
                waiting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waiting
            id = (await alice.pass_("t", to="in"))["handoff_id"]
            await asyncio.sleep(0.1)
            self.assertEqual((await alice.status(id))["status"], "pending")
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(bob.wait_for(id), 0.2)

        asyncio.run(run())


class Settings(unittest.TestCase):
    def test_what_could_not_be_sent_is_refused_at_once(self):
        for url in ("", "localhost:8080", "ftp://h", "http://", "http://h:99999", "http://a b", "http://u:p@h", "//h"):
            with self.subTest(url), self.assertRaises(ValueError):
                Client(url)
        for key in ("a\nb", "a b", "é", "a-key-of-alice\n"):
            with self.subTest(key), self.assertRaises(ValueError):
                Client("http://127.0.0.1:1", key)
        with Client("http://127.0.0.1:1") as client:
            for key in ("", "a\n", "é", "x" * 129):
                with self.subTest(key), self.assertRaises(ValueError):
                    client.pass_("t", idempotency_key=key)
            with self.assertRaises(ValueError):
                client.list(labels={"a:b": "c"})
        with self.assertRaises(RuntimeError):
            client.status("x")
        with environment(HANDOFF_URL="http://example.test/x/", HANDOFF_KEY="k"):
            settings = Client()._settings
            self.assertEqual(str(settings.transport.address), "http://example.test/x")
            self.assertEqual(settings.authorization.read(), "Bearer k")
        self.assertEqual(str(_transport.address_of("http://[::1]:80//")), "http://[::1]:80")


    def test_asyncio_is_imported_by_who_uses_it(self):
        program = (
            "import sys, agent_handoff as a; has = lambda: 'asyncio' in sys.modules; "
            "print(has(), a.AsyncClient.__name__, has(), hasattr(a, 'asyncClient'))"
        )
        run = subprocess.run(
            [sys.executable, "-c", program], cwd=Path(__file__).parents[1], check=True, capture_output=True, text=True
        )
        self.assertEqual(run.stdout, "False AsyncClient True False\n")


class Webhooks(unittest.TestCase):
    """The vectors of standardwebhooks' own tests."""

    SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    BODY = b'{"test": 2432232314}'

    def signed(self, secret=None, at=None):
        import base64, hashlib, hmac, time
        at = int(time.time()) if at is None else at
        key = base64.b64decode((secret or self.SECRET).removeprefix("whsec_"))
        sent = b".".join((b"msg_1", str(at).encode(), self.BODY))
        signature = base64.b64encode(hmac.digest(key, sent, hashlib.sha256)).decode()
        return {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(at), "Webhook-Signature": f"v1,{signature}"}

    def test_what_is_signed_is_taken_and_nothing_else(self):
        import time
        good = self.signed()
        self.assertEqual(verify_webhook(good, self.BODY, self.SECRET), {"test": 2432232314})
        self.assertEqual(verify_webhook(good, self.BODY.decode(), self.SECRET).text, self.BODY.decode())
        vector = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
                  "webhook-signature": "v2,x v1,bm9 v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}
        self.assertEqual(verify_webhook(vector, self.BODY, self.SECRET, tolerance=float("inf")), {"test": 2432232314})
        now = int(time.time())
        for headers, body in (
            (good, self.BODY + b" "), (vector, self.BODY), (self.signed("whsec_AAAA"), self.BODY), ({}, self.BODY),
            (self.signed(at=now - 400), self.BODY), (self.signed(at=now + 400), self.BODY),
            ({**good, "Webhook-Id": "msg_2"}, self.BODY), ({**good, "Webhook-Timestamp": "x"}, self.BODY),
            ({**good, "Webhook-Signature": "é v1, v1,é"}, self.BODY),
            ({**good, "Webhook-Signature": good["Webhook-Signature"].replace("v1", "v2")}, self.BODY),
        ):
            with self.subTest(headers), self.assertRaises(WebhookVerificationError):
                verify_webhook(headers, body, self.SECRET)
        for secret in ("", "whsec_", "whsec_é", "whsec_a b"):
            with self.subTest(secret), self.assertRaises(ValueError):
                verify_webhook(good, self.BODY, secret)
