"""JSON whose numbers, names and order stay what they were."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, TypeVar

T = TypeVar("T")


class RawJson:
    """JSON text that is sent unchanged, for what Python's values can't hold: ``1e400``, ``1.50``, repeated names.

    >>> client.pass_("Add up.", output=RawJson('{"n": 1e400}'))
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        # Exactly one value: anything else could change the JSON around it.
        _decode(text, parse_constant=_refuse)
        text.encode()
        self.text = text

    def __repr__(self) -> str:
        return f"RawJson({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RawJson) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class Answer(dict[str, Any]):
    """A JSON object of the service, with the exact JSON that it was read from."""

    text: str

    def __init__(self, members: dict[str, Any], text: str) -> None:
        super().__init__(members)
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        return (Answer, (dict(self), self.text))


class Answers(list[T]):
    """What was caught, with the exact JSON that it was read from."""

    text: str

    def __init__(self, items: list[T], text: str) -> None:
        super().__init__(items)
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        return (Answers, (list(self), self.text))


#: Random, so that no other text can be mistaken for a mark.
_mark = f"raw-{uuid.uuid4().hex}-"
_marks = re.compile(f'"{_mark}([0-9]+)"')


def encode(value: Any) -> bytes:
    """A value's JSON, with the own text of each RawJson in it.

    Raises TypeError or ValueError for what JSON has no word for (a set, NaN, a loop).
    """
    texts: list[str] = []

    def other(one: Any) -> str:
        if not isinstance(one, RawJson):
            raise TypeError(f"{type(one).__name__} can't be JSON")
        texts.append(one.text)
        return f"{_mark}{len(texts) - 1}"

    def dumps(ascii: bool) -> str:
        texts.clear()
        text = json.dumps(value, ensure_ascii=ascii, allow_nan=False, separators=(",", ":"), default=other)
        return _marks.sub(lambda found: texts[int(found[1])], text) if texts else text

    try:
        return dumps(False).encode()
    except UnicodeEncodeError:
        # Half a surrogate pair has no UTF-8, but an escape.
        return dumps(True).encode()


def present(**members: Any) -> dict[str, Any]:
    """The members that are there: None says that one isn't."""
    return {name: value for name, value in members.items() if value is not None}


def answer_of(text: str) -> Answer:
    """Raises ValueError for what isn't a JSON object."""
    value = _decode(text)
    if not isinstance(value, dict):
        raise ValueError("no object")
    return Answer(value, text)


def value_of(text: str) -> Any:
    """Any value of JSON."""
    return _decode(text)


def counted(answer: Answer) -> Answer:
    """The service leaves the first attempt of a handoff out; here it is 1."""
    if answer.get("status", "unknown") != "unknown":
        answer.setdefault("attempt", 1)
    return answer


def with_texts(answer: Answer, name: str) -> list[Answer]:
    """The objects of the array that is a member of the answer, each with its own text, in the answer's place."""
    texts = element_texts(answer.text, name)
    items = [Answer(value, text) for value, text in zip(answer[name], texts)]
    answer[name] = items
    return items


def element_texts(text: str, name: str) -> list[str]:
    """The text of each element of an array that is a member of a JSON object."""
    array = member_text(text, name)
    return [] if array is None else [array[start:end] for start, end in _parts(array, False)]


def member_text(text: str, name: str) -> str | None:
    """The text of a JSON object's member. If a name is repeated, the last one counts, as in ``json.loads``."""
    found = None
    for start, end in _parts(text, True):
        key, after = _scan(text, start)
        if key == name:
            found = text[_skip(text, _skip(text, after) + 1):end]
    return found


def member_spans(text: str) -> list[tuple[str, int, int]]:
    """The name of each member of a JSON object, and where it stands, from the name's quote to the value's end."""
    return [(_scan(text, start)[0], start, end) for start, end in _parts(text, True)]


def _parts(text: str, named: bool) -> Iterator[tuple[int, int]]:
    """Where the members of an object, or the elements of an array, begin and end. The JSON must be valid."""
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] not in "]}":
        start = at
        _, at = _scan(text, at)
        if named:
            _, at = _scan(text, _skip(text, _skip(text, at) + 1))
        yield start, at
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)


_space = re.compile(r"[ \t\n\r]*")


def _skip(text: str, at: int) -> int:
    found = _space.match(text, at)
    return at if found is None else found.end()


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _int(digits: str) -> int | Decimal:
    """Python refuses to read integers of thousands of digits, whose reading costs too much. A Decimal reads them."""
    return int(digits) if len(digits) <= 4000 else Decimal(digits)


_plain = json.JSONDecoder()
_careful = json.JSONDecoder(parse_int=_int)


def _scan(text: str, at: int) -> tuple[Any, int]:
    try:
        return _plain.raw_decode(text, at)
    except ValueError:
        return _careful.raw_decode(text, at)


def _decode(text: str, **options: Any) -> Any:
    try:
        return json.loads(text, **options)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        return json.loads(text, parse_int=_int, **options)
