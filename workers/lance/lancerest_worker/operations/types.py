"""Data types, as clients write them in JSON: the specification's names and Lance's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ..errors import INVALID, RefusedError

_SIMPLE: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "boolean": pa.bool_(),
    "float16": pa.float16(),
    "halffloat": pa.float16(),
    "float32": pa.float32(),
    "float": pa.float32(),
    "float64": pa.float64(),
    "double": pa.float64(),
    "utf8": pa.string(),
    "string": pa.string(),
    "large_utf8": pa.large_string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "date32": pa.date32(),
    "date32:day": pa.date32(),
    "date64": pa.date64(),
    "date64:ms": pa.date64(),
    "timestamp": pa.timestamp("us"),
    "duration": pa.duration("us"),
    **{f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def parse(said: Any) -> pa.DataType:
    """Return the type that a JSON object, or a name alone, stands for."""
    given: Any = {"type": said} if isinstance(said, str) else said
    if not isinstance(given, dict) or not isinstance(given.get("type"), str):
        raise RefusedError(
            INVALID,
            "data_type must be the name of a type, or an object with type and, where the type has them, length and fields",
        )
    name = given["type"].lower()
    if name in _SIMPLE:
        return _SIMPLE[name]
    make = _NESTED.get(name) or _PARAMETRIC.get(name.split(":", 1)[0])
    if make is None:
        raise RefusedError(INVALID, f"data_type {given['type']!r} is not known")
    try:
        return make(name, given)
    except (KeyError, IndexError, ValueError, pa.ArrowException) as err:
        raise RefusedError(INVALID, f"data_type {given['type']!r} is not complete or not valid: {err}") from err


def _field(member: dict[str, Any]) -> pa.Field:
    return pa.field(member["name"], parse(member["type"]), bool(member.get("nullable", True)))


def _timestamp(name: str, given: dict[str, Any]) -> pa.DataType:
    _, unit, *zone = name.split(":", 2)
    return pa.timestamp(unit, tz=None if zone in ([], ["-"]) else zone[0])


def _decimal(name: str, given: dict[str, Any]) -> pa.DataType:
    parts = name.split(":")
    if len(parts) == 4:
        bits, precision, scale = parts[1], int(parts[2]), int(parts[3])
    else:
        # Precision and scale travel as one number; the scale may be negative.
        bits, precision = name.removeprefix("decimal"), (given["length"] + 128) // 1000
        scale = given["length"] - precision * 1000
    make: Callable[[int, int], pa.DataType] = {
        "32": pa.decimal32,
        "64": pa.decimal64,
        "128": pa.decimal128,
        "256": pa.decimal256,
    }[bits]
    return make(precision, scale)


def _vector(name: str, given: dict[str, Any]) -> pa.DataType:
    parts = name.split(":")
    if len(parts) == 3:
        return pa.list_(parse(parts[1]), int(parts[2]))
    return pa.list_(_field(given["fields"][0]), int(given["length"]))


def _bytes(name: str, given: dict[str, Any]) -> pa.DataType:
    parts = name.split(":")
    return pa.binary(int(parts[1]) if len(parts) == 2 else int(given["length"]))


_NESTED: dict[str, Callable[[str, dict[str, Any]], pa.DataType]] = {
    "list": lambda _, given: pa.list_(_field(given["fields"][0])),
    "large_list": lambda _, given: pa.large_list(_field(given["fields"][0])),
    "struct": lambda _, given: pa.struct([_field(f) for f in given["fields"]]),
}
_PARAMETRIC: dict[str, Callable[[str, dict[str, Any]], pa.DataType]] = {
    "timestamp": _timestamp,
    "duration": lambda name, _: pa.duration(name.split(":")[1]),
    "decimal": _decimal,
    "decimal32": _decimal,
    "decimal64": _decimal,
    "decimal128": _decimal,
    "decimal256": _decimal,
    "fixed_size_list": _vector,
    "fixed_size_binary": _bytes,
}
