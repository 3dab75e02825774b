"""Inboxes whose handoffs have types, with the real service."""

import asyncio
import os
import threading
import unittest
from typing import Literal, TypedDict, Union

from agent_handoff import AsyncClient, HandoffError, SchemaMismatch, define_inbox

from .common import URL, Case, Server

try:
    import pydantic
except ImportError:
    pydantic = None


class Rows(TypedDict, total=False):
    rows: list[str]
    kind: Literal["a", "b"]


class Count(TypedDict):
    count: int
    why: str | None


class Inboxes(Case):
    def served(self, inbox, handler, tasks, **options):
        """Bob serves until so many have ended. Returns how each ended, by its task."""
        stop, ends = threading.Event(), {}

        def ended(handoff, how):
            ends[handoff["task"]] = how
            if len(ends) == tasks:
                stop.set()

        self.client("bob").work(inbox, handler, stop=stop, on_end=ended, **options)
        return ends

    def test_a_typed_dict_is_checked_on_both_sides(self):
        counter = define_inbox("in", input=Rows, result=Count)
        alice = self.client("alice")
        schema = {"type": "object", "required": ["count", "why"], "properties": {
            "count": {"type": "integer"}, "why": {"anyOf": [{"type": "string"}, {"type": "null"}]}
        }}
        self.assertEqual(counter.result_schema, schema)
        id = alice.pass_("count", to=counter, output={"rows": ["a", "b"]})["handoff_id"]
        for output, said in (({"rows": [1]}, "output.rows.0: must be string"), ({"kind": "c"}, "output.kind"), (5, "output")):
            with self.assertRaises(SchemaMismatch) as raised:
                alice.pass_("count", to=counter, output=output)
            self.assertIn(said, str(raised.exception))
        foreign = alice.pass_("foreign", to="in", output={"rows": "no"}, max_attempts=3)["handoff_id"]
        wrong = alice.pass_("wrong", to=counter, output={})["handoff_id"]

        def handler(handoff, context):
            rows = counter.output(handoff).get("rows", [])
            return {"count": "two" if handoff["task"] == "wrong" else len(rows), "why": None}

        ends = self.served(counter, handler, 3)
        self.assertEqual(ends, {"count": "done", "foreign": "failed", "wrong": "failed"})
        status = alice.wait_for(id, of=counter)
        self.assertEqual((counter.result(status), status["attempt"]), ({"count": 2, "why": None}, 1))
        failed = alice.status(foreign)
        self.assertEqual((failed["error"]["code"], failed.get("reissued_as")), ("input_invalid", None))
        self.assertEqual(alice.status(wrong)["error"]["code"], "result_invalid")
        with self.assertRaises(SchemaMismatch):
            counter.result(failed)

    def test_a_mismatch_is_short_however_long_what_does_not_fit_is(self):
        class Kinds(TypedDict):
            kinds: dict[str, int]

        with self.assertRaises(SchemaMismatch) as raised:
            wrong = {f"{at}{'k' * 1000}": "one" for at in range(12)}
            self.client("alice").pass_("t", to=define_inbox("in", input=Kinds), output={"kinds": wrong})
        self.assertLess(len(str(raised.exception)), 3100)

    def test_the_service_checks_by_the_same_schema(self):
        alice, bob = self.client("alice"), self.client("bob")
        id = alice.pass_("count", to=define_inbox("in", result=Count))["handoff_id"]
        self.assertEqual(bob.catch(id)["attempt"], 1)
        with self.assertRaises(HandoffError) as raised:
            bob.done(id, {"count": "two"})
        self.assertEqual(raised.exception.code, "result_invalid")

    def test_what_comes_after_others_has_their_results(self):
        first, alice, bob = define_inbox("first", result=Count), self.client("alice"), self.client("bob")
        second = define_inbox("second", after=first)
        good, bad = (alice.pass_("t", to=to)["handoff_id"] for to in (first, "first"))
        alice.pass_("good", to=second, after=[good])
        alice.pass_("bad", to=second, after=[bad])
        bob.done(bob.catch(good)["handoff_id"], {"count": 1, "why": None})
        bob.done(bob.catch(bad)["handoff_id"], {"count": "one"})
        got = []
        ends = self.served(second, lambda handoff, context: got.append(first.result(handoff["after"][0])), 2)
        self.assertEqual((ends, got), ({"good": "done", "bad": "failed"}, [{"count": 1, "why": None}]))

    @unittest.skipIf(pydantic is None, "pydantic isn't installed")
    def test_models_of_pydantic_go_both_ways(self):
        class Point(pydantic.BaseModel):
            x: int
            y: int = 2

        counter = define_inbox("in", input=Point, result=Point)
        alice = self.client("alice")
        id = alice.pass_("t", to=counter, output=Point(x=1))["handoff_id"]
        with self.assertRaises(SchemaMismatch):
            alice.pass_("t", to=counter, output={"x": "one"})
        self.served(counter, lambda handoff, context: Point(x=counter.output(handoff).x + 1), 1)
        self.assertEqual(alice.wait_for(id, of=counter)["result"], Point(x=2, y=2))

    @unittest.skipIf(pydantic is None, "pydantic isn't installed")
    def test_what_only_describes_is_left_out_of_the_result_schema(self):
        class Circle(pydantic.BaseModel):
            kind: Literal["circle"]
            deprecated: int = pydantic.Field(deprecated=True, examples=[{"readOnly": 1}])

        class Square(pydantic.BaseModel):
            kind: Literal["square"]

        class Shape(pydantic.BaseModel):
            shape: Union[Circle, Square] = pydantic.Field(discriminator="kind")
            secret: pydantic.SecretStr = pydantic.SecretStr("")

        inbox = define_inbox("in", result=Shape)
        circle = inbox.result_schema["$defs"]["Circle"]["properties"]["deprecated"]
        self.assertEqual(circle, {"type": "integer", "title": "Deprecated", "examples": [{"readOnly": 1}]})
        self.assertEqual(self.client("alice").pass_("t", to=inbox)["status"], "pending")

    def test_what_is_no_definition_is_refused_where_it_is_written(self):
        for inbox in (None, "", 5):
            with self.assertRaisesRegex(TypeError, "inbox must be the name of an inbox"):
                define_inbox(inbox, input=Rows)
        for wrong in (str, dict, {"type": "object"}):
            with self.assertRaisesRegex(TypeError, "give a TypedDict, or a model of pydantic"):
                define_inbox("in", result=wrong)

    def test_coroutines_and_decorated_handlers_too(self):
        counter = define_inbox("in", input=Rows, result=Count)

        async def both():
            async with AsyncClient(URL, self.keys["bob"]) as bob, AsyncClient(URL, self.keys["alice"]) as alice:
                id = (await alice.pass_("t", to=counter, output={"rows": ["a"]}))["handoff_id"]
                stop = asyncio.Event()

                @bob.worker(counter)
                async def count(handoff, context):
                    stop.set()
                    return {"count": len(handoff["output"]["rows"]), "why": "so"}

                await bob.run(stop=stop)
                return counter.result(await alice.wait_for(id, of=counter))

        self.assertEqual(asyncio.run(both()), {"count": 1, "why": "so"})

    def test_its_calls_say_which_worker_makes_them(self):
        def name(said=None, **options):
            seen, stop = [], threading.Event()

            def answer(method, path, headers, body, index):
                seen.append(headers.get("Handoff-Worker"))
                stop.set()
                return 200, {}, {"items": []}

            if said is not None:
                os.environ["HANDOFF_WORKER"] = said
                self.addCleanup(os.environ.pop, "HANDOFF_WORKER", None)
            self.client("bob", Server(self, answer).url).work("in", lambda *_: None, stop=stop, **options)
            return set(seen)

        [own] = name()
        self.assertRegex(own, rf"^[A-Za-z0-9._@/-]+:{os.getpid()}$")
        self.assertEqual(name("žba 1/ü@x:y"), {"-ba-1/-@x:y"})
        self.assertEqual(name("x" * 101), {"x" * 100})
        self.assertEqual(name(""), {None})
        self.assertEqual(name("other", worker="mine"), {"mine"})
