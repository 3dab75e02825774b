"""Workers, with the real service."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

from agent_handoff import AsyncClient, HandoffError, RawJson


from .common import URL, Case, Relay, Server, socket_of


class Works(Case):
    def setUp(self):
        super().setUp()
        self.alice = self.client("alice")

    def work(self, handler, inbox="in", client=None, **options):
        """Bob works until the test ends, or what this returns is called; that raises what ended him."""
        stop, raised = threading.Event(), []
        # A client is closed by a cleanup. Made here, it is closed after the worker has ended.
        client = client or self.client("bob")

        def run():
            try:
                client.work(inbox, handler, stop=stop, **options)
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=run)

        def end():
            stop.set()
            thread.join(15)
            self.assertFalse(thread.is_alive())
            if raised:
                raise raised.pop()

        self.addCleanup(end)
        thread.start()
        return end

    def passed(self, task="t", **more):
        return self.alice.pass_(task, **{"to": "in", **more})["handoff_id"]

    def ended(self, *ids):
        return [self.alice.wait_for(id, timeout=20) for id in ids]

    def test_a_worker_that_is_tried_again_goes_on_from_the_checkpoint(self):
        found = []

        def handler(handoff, context):
            found.append(handoff.get("checkpoint"))
            if found[-1] is not None:
                return {"from": found[-1]}
            self.assertFalse(context.checkpoint({"rows": 1})["cancel_requested"])
            context.heartbeat(checkpoint={"rows": 2}, percent=50)
            raise ValueError("It broke.")

        id = self.passed(max_attempts=2, retry_delay=0)
        self.work(handler)
        [status] = self.ended(id)
        self.assertEqual(status["result"], {"from": {"rows": 2}})
        self.assertEqual(found, [None, {"rows": 2}])

    def test_what_the_handler_returns_is_the_output_and_what_it_raises_a_failure(self):
        class Odd(Exception):
            code = "E_ODD"

            def __str__(self):
                raise ValueError

        def raising(error):
            def handler():
                raise error
            return handler

        broken = Exception("It broke.")
        broken.code = "E_BROKEN"
        outcomes = {
            "output": (lambda: {"n": 1}, "done", {"n": 1}), "none": (lambda: None, "done", None),
            "raw": (lambda: RawJson('{"n":1.50}'), "done", {"n": 1.5}),
            "error": (raising(broken), "failed", {"message": "It broke.", "code": "E_BROKEN"}),
            "long": (raising(Exception("é" * 5000)), "failed", {"message": "é" * 4000}),
            "empty": (raising(KeyError()), "failed", {"message": "KeyError"}),
            "odd": (raising(Odd()), "failed", {"message": "The handler failed."}),
            "exit": (raising(SystemExit("Out.")), "failed", {"message": "Out."}),
            "number": (lambda: 5, "failed", "invalid_request"), "false": (lambda: False, "failed", "invalid_request"),
            "set": (lambda: {"a": {1}}, "failed", "set can't be JSON"),
            "nan": (lambda: {"a": float("nan")}, "failed", "JSON"),
            "schema": (lambda: {"n": "x"}, "failed", "result_invalid"),
        }
        more = {"schema": {"result_schema": {"properties": {"n": {"type": "number"}}}}}
        ids = [self.passed(task, **more.get(task, {})) for task in outcomes]
        ends, errors = [], []
        end = self.work(
            lambda handoff, context: outcomes[handoff["task"]][0](), concurrency=3,
            on_end=lambda handoff, how: ends.append(how), on_error=lambda error, handoff: errors.append(error),
        )
        for (task, (_, status, reported)), found in zip(outcomes.items(), self.ended(*ids)):
            with self.subTest(task):
                self.assertEqual(found["status"], status)
                if isinstance(reported, str):
                    self.assertIn(reported, str(found["error"]))
                else:
                    self.assertEqual(found["result"] if status == "done" else found["error"], reported)
        self.until(lambda: len(ends) == len(ids) and len(errors) == 5)
        end()

    def test_no_more_are_caught_than_it_works_on_and_the_first_inbox_comes_first(self):
        [self.passed(str(n), to=("second" if n < 4 else "first")) for n in range(8)]
        now, most, served, lock = [0], [0], [], threading.Lock()

        def handler(handoff, context):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
                served.append(handoff["to"])
            time.sleep(0.05)
            with lock:
                now[0] -= 1

        end = self.work(handler, ["first", "second"], concurrency=2)
        self.until(lambda: len(served) == 8)
        end()
        self.assertEqual((most, served), ([2], ["first"] * 4 + ["second"] * 4))

    def test_heartbeats_keep_it_and_the_handler_sees_a_requested_cancel(self):
        id = self.passed(heartbeat_within=5, work_within=600)

        def handler(handoff, context):
            self.alice.cancel(id, reason="Please.")
            said = context.heartbeat(message="Half.", percent=50)
            before = self.alice.status(id)["heartbeat_at"]
            self.until(lambda: self.alice.status(id)["heartbeat_at"] > before, 6)
            return {"requested": said["cancel_requested"], "cancelled": bool(context.cancelled)}

        end = self.work(handler)
        [found] = self.ended(id)
        self.assertEqual((found["status"], found["result"]), ("done", {"requested": True, "cancelled": False}))
        end()

    def test_a_forced_cancel_ends_it_and_a_handler_that_hangs_loses_its_place(self):
        ids = [self.passed("hang", heartbeat_within=5), self.passed("next", to="in", priority=0)]
        seen, how, let_go = [], [], threading.Event()
        self.addCleanup(let_go.set)

        def handler(handoff, context):
            if handoff["task"] == "hang":
                self.alice.cancel(ids[0], force=True)
                seen.append(context.cancelled.wait(10))
                try:
                    context.heartbeat()
                except HandoffError as error:
                    seen.append(error.code)
                let_go.wait(30)

        end = self.work(handler, on_end=lambda handoff, what: how.append(what))
        self.assertEqual([one["status"] for one in self.ended(*ids)], ["cancelled", "done"])
        self.assertEqual(seen, [True, "cancelled"])
        end()
        self.assertEqual(how, ["lost", "done"])

    def test_a_question_is_answered_in_the_midst_of_the_work(self):
        carol = self.client("approver")
        ids = [self.passed("ask", heartbeat_within=5), self.passed("late", heartbeat_within=5)]

        def handler(handoff, context):
            if handoff["task"] == "late":
                return context.ask("Anybody?", expires_in=1)
            return context.ask("Which?", schema={"required": ["name"]})

        end = self.work(handler, concurrency=2)
        self.until(lambda: [one for one in carol.asks()["items"] if one["question"] == "Which?"])
        [question] = [one for one in carol.asks()["items"] if one["question"] == "Which?"]
        carol.answer(question["handoff_id"], question["ask_id"], {"name": "a"})
        asked, late = self.ended(*ids)
        self.assertEqual(asked["result"], {"name": "a"})
        self.assertEqual((late["status"], late["error"]["code"]), ("failed", "expired"))
        end()

    def test_a_handler_may_end_its_handoff_itself(self):
        bob, errors, ends = self.client("bob"), [], []
        ids = [self.passed("decline"), self.passed("fail"), self.passed("too big")]

        def handler(handoff, context):
            if handoff["task"] == "decline":
                bob.decline(handoff["handoff_id"], "Not mine.")
            elif handoff["task"] == "too big":
                return {"text": "x" * 2 ** 21}
            else:
                bob.fail(handoff["handoff_id"], "No.", retry=False)
                raise ValueError

        end = self.work(
            handler, on_error=lambda error, handoff: errors.append(error.code),
            on_end=lambda handoff, how: ends.append(how),
        )
        self.assertEqual([one["status"] for one in self.ended(*ids)], ["declined", "failed", "failed"])
        end()
        self.assertEqual((errors, ends), (["payload_too_large"], ["declined", "failed", "failed"]))

    def test_its_own_end_leaves_nothing_caught(self):
        for _ in range(5):
            end = self.work(lambda handoff, context: None)
            stopping = threading.Timer(0.05, end)
            stopping.start()
            ids = [self.passed() for _ in range(4)]
            stopping.join()
            self.assertEqual(self.alice.inbox("in")["caught"], 0)
            for work in self.client("bob").catch_next("in", max=100):
                ids.remove(work["handoff_id"])
                self.client("bob").done(work["handoff_id"])
            self.assertEqual({one["status"] for one in self.ended(*ids)} - {"done"}, set())

    def test_what_was_caught_while_it_was_stopped_is_worked_on(self):
        import http.client
        id, held, stop = self.passed(), threading.Event(), threading.Event()

        def forward(method, path, headers, body, index):
            far = http.client.HTTPConnection(*socket_of(URL))
            far.request(method, path, body or None, {k: v for k, v in headers.items() if k.lower() != "host"})
            answer = far.getresponse()
            said = answer.read()
            far.close()
            if not held.is_set():
                held.set()
                stop.wait(10)
                return None
            return answer.status, {}, said

        bob = self.client("bob", Server(self, forward).url)
        threading.Thread(target=lambda: (held.wait(10), stop.set())).start()
        bob.work("in", lambda handoff, context: {"by": "bob"}, stop=stop)
        self.assertEqual(self.alice.status(id)["result"], {"by": "bob"})

    def test_what_is_refused_ends_it_and_so_does_what_on_error_raises(self):
        with self.assertRaises(HandoffError) as refused:
            self.client("approver").work("in", lambda handoff, context: None)
        self.assertEqual(refused.exception.code, "insufficient_scope")
        id = self.passed()

        def raising(error, handoff):
            raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            self.client("bob").work("in", lambda handoff, context: 5, on_error=raising)
        self.assertEqual(self.alice.status(id)["status"], "failed")
        # A key that is revoked in the midst of it: the end of what it had can't be reported either.
        gone, errors = [False], []

        def answer(method, path, headers, body, index):
            if gone[0]:
                return 401, {}, {"code": "unauthorized", "detail": "No.", "retryable": False}
            gone[0] = True
            return 200, {}, {"items": [{"handoff_id": "x", "status": "caught", "task": "t"}]}

        revoked = self.client("bob", Server(self, answer).url)
        with self.assertRaises(HandoffError) as refused:
            revoked.work("in", lambda handoff, context: None, on_error=lambda error, handoff: errors.append(error.code))
        self.assertEqual((refused.exception.code, errors), ("unauthorized", ["unauthorized"]))
        with self.assertRaises(ValueError):
            self.client("bob").work("in", lambda handoff, context: None, concurrency=0)
        with self.assertRaises(TypeError):
            self.client("bob").work("in", asyncio.sleep)

    def test_it_goes_on_over_a_connection_that_breaks_again_and_again(self):
        relay = Relay(self, lambda index: 900 if index % 2 else None)
        ids = [self.passed(str(n), max_attempts=1) for n in range(20)]
        end = self.work(lambda handoff, context: {"n": handoff["task"]}, client=self.client("bob", relay.url))
        self.assertEqual([one["result"] for one in self.ended(*ids)], [{"n": str(n)} for n in range(20)])
        end()


class Runs(Case):
    PROGRAM = """
import asyncio, sys, time
from agent_handoff import AsyncClient, Client
kind = sys.argv[1]
if kind == "sync":
    client = Client()
    @client.worker("in", concurrency=2)
    def handle(handoff, context):
        print("caught", flush=True)
        time.sleep(1)
        return {"by": "sync"}
    @client.worker("other")
    def other(handoff, context): pass
    client.run()
else:
    client = AsyncClient()
    @client.worker("in")
    async def handle(handoff, context):
        print("caught", flush=True)
        await asyncio.sleep(1)
        return {"by": "async"}
    asyncio.run(client.run())
print("ended", flush=True)
"""

    def test_run_ends_on_a_signal_when_what_it_has_is_done(self):
        alice = self.client("alice")
        for kind in ("sync", "async"):
            for number in (signal.SIGTERM, signal.SIGINT):
                with self.subTest((kind, number)):
                    env = {**os.environ, "HANDOFF_URL": URL, "HANDOFF_KEY": self.keys["bob"]}
                    child = subprocess.Popen(
                        [sys.executable, "-c", self.PROGRAM, kind], env=env, stdout=subprocess.PIPE, text=True
                    )
                    with child:
                        id = alice.pass_("t", to="in")["handoff_id"]
                        self.assertEqual(child.stdout.readline(), "caught\n")
                        child.send_signal(number)
                        self.assertEqual(child.stdout.read(), "ended\n")
                    self.assertEqual(child.returncode, 0)
                    self.assertEqual(alice.status(id)["result"], {"by": kind})

    def test_without_a_handler_there_is_nothing_to_run(self):
        with self.assertRaises(RuntimeError):
            self.client("bob").run()
        with self.assertRaises(RuntimeError):
            asyncio.run(AsyncClient(URL, "k").run())


class AsyncWorks(Case):
    def test_a_lost_handoff_cancels_its_handler(self):
        alice = self.client("alice")

        async def run():
            bob, stop, seen = AsyncClient(URL, self.keys["bob"]), asyncio.Event(), []

            async def handle(handoff, context):
                try:
                    await asyncio.to_thread(alice.cancel, handoff["handoff_id"], force=True)
                    await context.cancelled.wait()
                    seen.append(bool(context.cancelled))
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    seen.append("cancelled")
                    raise

            working = asyncio.ensure_future(bob.work("in", handle, stop=stop))
            await asyncio.to_thread(alice.pass_, "t", to="in", heartbeat_within=5)
            while len(seen) < 2:
                await asyncio.sleep(0.05)
            stop.set()
            await working
            self.assertEqual(seen, [True, "cancelled"])

        asyncio.run(asyncio.wait_for(run(), 30))

    def test_100_at_once(self):
        alice = self.client("alice")

        async def run():
            bob, stop = AsyncClient(URL, self.keys["bob"]), asyncio.Event()

            async def handle(handoff, context):
                await asyncio.sleep(0.2)
                return {"n": handoff["task"]}

            ids = [one["body"]["handoff_id"] for one in alice.batch(
                [{"op": "pass", "body": {"task": str(n), "to": "in"}} for n in range(100)])["results"]]
            working = asyncio.ensure_future(bob.work("in", handle, concurrency=100, stop=stop))
            found = await bob_or(alice, ids)
            stop.set()
            await working
            self.assertEqual([one["result"] for one in found], [{"n": str(n)} for n in range(100)])

        async def bob_or(client, ids):
            return await asyncio.to_thread(client.wait_for_all, ids, timeout=30)

        asyncio.run(run())


if __name__ == "__main__":
    unittest.main()
