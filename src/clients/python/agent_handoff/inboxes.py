"""Inboxes whose handoffs have types, which are checked on both sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, Union, cast, overload

from ._json import Answer
from ._shapes import SchemaMismatch, Shape

if TYPE_CHECKING:
    from . import types as t
    from ._lease import Context
    from ._operations import Operations

I = TypeVar("I")
R = TypeVar("R")

#: What is given as ``output``: an ``I``. The second one, which nothing can be, has mypy look at the inbox first, and so
#: read a dict as the TypedDict that the inbox takes.
Written = Union[I, Callable[[NoReturn], I]]


class InboxDefinition(Generic[I, R]):
    """An inbox, what goes into it and what comes of it. ``pass_`` and ``work`` take it in place of its name."""

    def __init__(
        self, inbox: str, input: type[I] | None, result: type[R] | None, after: InboxDefinition[Any, Any] | None
    ) -> None:
        # Without a name, what is passed would be in no inbox.
        if not isinstance(inbox, str) or inbox == "":
            raise TypeError("inbox must be the name of an inbox")
        self.inbox = inbox
        self._input = None if input is None else Shape(input)
        self._result = None if result is None else Shape(result)
        self._after = after

    @property
    def result_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of results, by which the service checks them too."""
        return None if self._result is None else self._result.schema

    def output(self, handoff: Mapping[str, Any]) -> I:
        """What was passed, of a handoff that a handler of this inbox got."""
        return cast(I, handoff["output"])

    def result(self, status: Mapping[str, Any]) -> R:
        """The result of a status: of ``wait_for``, of ``wait_for_all``, or of ``after``."""
        if status["status"] != "done":
            raise SchemaMismatch("result_invalid", f"There is no result: the handoff is {status['status']}.")
        return cast(R, self._read(status.get("result")))

    def _read(self, result: Any) -> Any:
        return result if self._result is None else self._result.read(result, "result", "result_invalid")

    def _members(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """Those of a pass, as they are sent."""
        sent = {**members, "to": self.inbox}
        if self._input is not None:
            sent["output"] = self._input.write(members.get("output"), "output", "input_invalid")
        return sent if self._result is None else {**sent, "result_schema": self._result.schema}

    def _handoff(self, handoff: t.Handoff) -> t.Handoff:
        """As its handler gets it."""
        read: dict[str, Any] = dict(cast("dict[str, Any]", handoff))
        if self._input is not None:
            read["output"] = self._input.read(read["output"], "output", "input_invalid")
        if self._after is not None and "after" in read:
            read["after"] = [
                one if one.get("result") is None else {**one, "result": self._after._read(one["result"])}
                for one in read["after"]
            ]
        return cast("t.Handoff", Answer(read, handoff.text))

    def _status(self, status: t.Status) -> t.Status:
        if self._result is None or status["status"] != "done":
            return status
        return cast("t.Status", Answer({**cast("dict[str, Any]", status), "result": self.result(status)}, status.text))

    def _checking(self, client: Operations, handler: Callable[[t.Handoff, Context], Any]) -> Any:
        """A handler whose handoff and result are checked."""

        def handle(handoff: t.Handoff, context: Context) -> Any:
            try:
                read = self._handoff(handoff)
            except SchemaMismatch as error:
                # Another attempt would get the same.
                client.fail(handoff["handoff_id"], error, retry=False)
                raise
            output = handler(read, context)
            return output if self._result is None else self._result.write(output, "result", "result_invalid")

        return handle


@overload
def define_inbox(
    inbox: str, *, input: type[I], result: type[R], after: InboxDefinition[Any, Any] | None = None,
) -> InboxDefinition[I, R]: ...


@overload
def define_inbox(
    inbox: str, *, input: type[I], result: None = None, after: InboxDefinition[Any, Any] | None = None,
) -> InboxDefinition[I, Any]: ...


@overload
def define_inbox(
    inbox: str, *, input: None = None, result: type[R], after: InboxDefinition[Any, Any] | None = None,
) -> InboxDefinition[dict[str, Any], R]: ...


@overload
def define_inbox(
    inbox: str, *, input: None = None, result: None = None, after: InboxDefinition[Any, Any] | None = None,
) -> InboxDefinition[dict[str, Any], Any]: ...


def define_inbox(
    inbox: str, *, input: Any = None, result: Any = None, after: InboxDefinition[Any, Any] | None = None,
) -> InboxDefinition[Any, Any]:
    """Says once what goes into an inbox and what comes of it, for its passers and its workers.

    ``input`` is of ``output``, which the passer gives and the catcher gets, ``result`` of what the handler returns:
    each a TypedDict, or a model of pydantic. The JSON Schema of ``result`` is the ``result_schema``. ``after`` is the
    inbox of what these handoffs come after: its results are checked too.

    >>> counter = define_inbox("counter", input=Rows, result=Count)
    >>> id = client.pass_("Count the rows.", to=counter, output={"rows": ["a", "b"]})["handoff_id"]
    >>> counter.result(client.wait_for(id))["count"]
    2
    """
    return InboxDefinition(inbox, input, result, after)


def served_by(inbox: Any, client: Operations, handler: Any) -> tuple[Any, Any]:
    """The inbox's name and the handler that serves it."""
    return (inbox.inbox, inbox._checking(client, handler)) if isinstance(inbox, InboxDefinition) else (inbox, handler)
