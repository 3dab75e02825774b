"""What a TypedDict, or a pydantic model, says of a JSON object: its JSON Schema, and whether an object is so."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ._json import RawJson, encode, value_of

#: How many faults a mismatch names, and how much of each: a name, or what is allowed, may be long.
_MAX_NAMED = 10
_MAX_FAULT = 300


class SchemaMismatch(ValueError):
    """An object isn't what its type says. Its text names what is wrong, and where."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        #: A failed handoff has it as its code: ``input_invalid`` or ``result_invalid``.
        self.code = code


class Shape:
    """One of these types."""

    def __init__(self, type: Any) -> None:
        self._type = type
        self._is_model = hasattr(type, "model_validate_json")
        if not self._is_model and not typing.is_typeddict(type):
            raise TypeError("give a TypedDict, or a model of pydantic")
        #: As the service reads it.
        self.schema: dict[str, Any] = (
            _without_notes(type.model_json_schema()) if self._is_model else _schema_of(type, ())
        )

    def read(self, value: Any, name: str, code: str) -> Any:
        """What the other side wrote: a dict, or the model."""
        text = encode(value)
        if not self._is_model:
            _check(self._type, value_of(text.decode()), name, code)
            return value
        try:
            return self._type.model_validate_json(text)
        except ValueError as error:
            raise _mismatch(code, _faults_of(error, name)) from None

    def write(self, value: Any, name: str, code: str) -> Any:
        """What goes to the other side: the value as it is given, a model as a dict."""
        if self._is_model and isinstance(value, self._type):
            return value.model_dump(mode="json", by_alias=True)
        if value is not None and not isinstance(value, (Mapping, RawJson)):
            raise SchemaMismatch(code, f"{name}: must be an object, not {type(value).__name__}")
        self.read(value, name, code)
        return value


#: Keywords that only describe, and that a ``result_schema`` doesn't take. pydantic writes them.
_notes = frozenset((
    "$comment", "contentEncoding", "contentMediaType", "contentSchema", "deprecated", "discriminator", "readOnly",
    "writeOnly",
))
#: Keywords whose value has names of the schema's own, and a schema for each; and those whose value is no schema.
_by_name = frozenset(("$defs", "patternProperties", "properties"))
_literal = frozenset(("const", "default", "enum", "examples"))


def _without_notes(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_notes(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: value if keyword in _literal
        else {name: _without_notes(one) for name, one in value.items()} if keyword in _by_name
        else _without_notes(value)
        for keyword, value in schema.items() if keyword not in _notes
    }


def _faults_of(error: Any, name: str) -> list[str]:
    """pydantic's ValidationError has them one by one."""
    faults = error.errors() if hasattr(error, "errors") else [{"loc": (), "msg": str(error)}]
    return [f"{'.'.join([name, *map(str, fault['loc'])])}: {fault['msg']}" for fault in faults]


def _check(type: Any, value: Any, name: str, code: str) -> None:
    faults = list(_faults(type, value, name))
    if faults:
        raise _mismatch(code, faults)


def _mismatch(code: str, faults: Sequence[str]) -> SchemaMismatch:
    more = f"; and {len(faults) - _MAX_NAMED} more" if len(faults) > _MAX_NAMED else ""
    return SchemaMismatch(code, "; ".join(fault[:_MAX_FAULT] for fault in faults[:_MAX_NAMED]) + more)


#: The types of JSON, and what Python reads them as. Of very long integers it reads Decimals.
_scalars: dict[Any, tuple[str, tuple[type, ...]]] = {
    str: ("string", (str,)), bool: ("boolean", (bool,)), int: ("integer", (int, float, Decimal)),
    float: ("number", (int, float, Decimal)), None: ("null", (types.NoneType,)), types.NoneType: ("null", (types.NoneType,)),
}


def _members(type: Any) -> dict[str, Any]:
    """A TypedDict's members. Whether one is required, ``__required_keys__`` says."""
    return {name: _plain(hint) for name, hint in get_type_hints(type).items()}


def _plain(hint: Any) -> Any:
    """Of typing_extensions's Required and NotRequired, which Python 3.10 doesn't know, what is in them."""
    return get_args(hint)[0] if getattr(get_origin(hint), "_name", "") in ("Required", "NotRequired") else hint


def _kind(hint: Any) -> str:
    origin = get_origin(hint) or hint
    if hint is Any or hint is object:
        return "any"
    if origin is Literal:
        return "literal"
    if origin is Union or origin is types.UnionType:
        return "union"
    if typing.is_typeddict(hint):
        return "typed"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "mapping"
    if isinstance(origin, type) and issubclass(origin, Sequence) and origin not in (str, bytes, tuple):
        return "sequence"
    if hint in _scalars:
        return "scalar"
    raise TypeError(f"{hint!r} has no word in JSON Schema here: use pydantic")


def _schema_of(hint: Any, inside: tuple[Any, ...]) -> dict[str, Any]:
    kind, of = _kind(hint), get_args(hint)
    if kind == "any":
        return {}
    if kind == "literal":
        return {"enum": list(of)}
    if kind == "union":
        return {"anyOf": [_schema_of(one, inside) for one in of]}
    if kind == "mapping":
        return {"type": "object", **({"additionalProperties": _schema_of(of[1], inside)} if of else {})}
    if kind == "sequence":
        return {"type": "array", **({"items": _schema_of(of[0], inside)} if of else {})}
    if kind == "scalar":
        return {"type": _scalars[hint][0]}
    if hint in inside:
        raise TypeError(f"{hint.__name__} contains itself, which no result_schema may")
    members = _members(hint)
    properties = {name: _schema_of(one, (*inside, hint)) for name, one in members.items()}
    required = [name for name in members if name in hint.__required_keys__]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _faults(hint: Any, value: Any, path: str) -> Iterator[str]:
    """What is wrong with a value as JSON has it."""
    kind, of = _kind(hint), get_args(hint)
    if kind == "literal" and value not in of:
        yield f"{path}: must be one of {', '.join(map(repr, of))}"
    elif kind == "union" and all(any(True for _ in _faults(one, value, path)) for one in of):
        yield f"{path}: must be {' or '.join(getattr(one, '__name__', str(one)) for one in of)}"
    elif kind == "scalar":
        name, readable = _scalars[hint]
        is_right = isinstance(value, readable) and (hint is bool or not isinstance(value, bool))
        if not is_right or name == "integer" and value != value // 1:
            yield f"{path}: must be {name}"
    elif kind in ("mapping", "typed") and not isinstance(value, dict):
        yield f"{path}: must be object"
    elif kind == "sequence" and not isinstance(value, list):
        yield f"{path}: must be array"
    elif kind == "mapping" and of:
        for name, one in value.items():
            yield from _faults(of[1], one, f"{path}.{name}")
    elif kind == "sequence" and of:
        for at, one in enumerate(value):
            yield from _faults(of[0], one, f"{path}.{at}")
    elif kind == "typed":
        for name, one in _members(hint).items():
            if name in value:
                yield from _faults(one, value[name], f"{path}.{name}")
            elif name in hint.__required_keys__:
                yield f"{path}.{name}: is missing"
