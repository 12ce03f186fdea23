"""One column of every type that Lance takes, three rows each."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa

EXTENSION = "ARROW:extension:name"
ROWS = 3
# What a data format cannot hold.
UNSUPPORTED = {"2.0": {"map"}, "2.1": {"map", "fixed_size_list_struct"}, "2.2": set[str]()}


def _vectors(kind: str, size: int = 4) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.arange(ROWS * size).astype(kind)), size)


def _plain() -> dict[str, pa.Array]:
    day = datetime.date(2026, 8, 1)
    numbers = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)] + ["float16", "float32", "float64"]
    columns = {kind: pa.array(np.arange(ROWS).astype(kind)) for kind in numbers}
    return columns | {
        "null": pa.nulls(ROWS),
        "bool": pa.array([True, None, False]),
        "string": pa.array(["a", None, "c"]),
        "large_string": pa.array(["a", None, "c"], pa.large_string()),
        "binary": pa.array([b"a", None, b"c"]),
        "large_binary": pa.array([b"a", None, b"c"], pa.large_binary()),
        "fixed_size_binary": pa.array([b"abcd"] * ROWS, pa.binary(4)),
        "date32": pa.array([day] * ROWS),
        "date64": pa.array([day] * ROWS, pa.date64()),
    }


def _timed() -> dict[str, pa.Array]:
    units = ("s", "ms", "us", "ns")
    types = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
    types += [pa.timestamp(unit) for unit in units] + [pa.duration(unit) for unit in units]
    types += [pa.timestamp("us", zone) for zone in ("UTC", "Europe/Berlin", "+08:00")]
    return {str(kind): pa.array([1, 2, 3], kind) for kind in types}


def _decimals() -> dict[str, pa.Array]:
    values = [decimal.Decimal("100"), None, decimal.Decimal("200")]
    types = [pa.decimal128(38, 10), pa.decimal256(76, 20), pa.decimal128(10, -2)]
    return {str(kind): pa.array(values, kind) for kind in types}


def _nested() -> dict[str, pa.Array]:
    bfloat = pa.field("item", pa.binary(2), True, {EXTENSION: "lance.bfloat16", "ARROW:extension:metadata": ""})
    inner = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(ROWS * 8).astype("float32")), 2)
    points = pa.array([{"x": float(i), "y": 1.0} for i in range(ROWS * 2)])
    return {
        "list": pa.array([[1], [2, 3], None]),
        "large_list": pa.array([[1], [2, 3], None], pa.large_list(pa.int64())),
        "list_without_nulls": pa.array([[1], [2, 3], None], pa.list_(pa.field("element", pa.int32(), False))),
        "list_struct": pa.array([[{"a": 1, "b": "x"}], [], None]),
        "list_list": pa.array([[["x"]], [], None]),
        "struct": pa.array([{"a.b": 1, "deep": {"c": "x", "d": [1.5]}}] * ROWS),
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "vector": _vectors("float32"),
        "vector_float16": _vectors("float16", 768),
        "vector_uint8": _vectors("uint8"),
        "vector_bfloat16": pa.array([[b"ab"] * 4] * ROWS, pa.list_(bfloat, 4)),
        "vector_vector": pa.FixedSizeListArray.from_arrays(inner, 4),
        "fixed_size_list_struct": pa.FixedSizeListArray.from_arrays(points, 2),
        "list_timestamp": pa.array([[1], [], None], pa.list_(pa.timestamp("ms", "UTC"))),
        "dictionary": pa.array(["a", "b", "a"]).dictionary_encode(),
        "dictionary_int8": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array(["a", "b"])),
        "json": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(['{"a":1}', None, "1"])),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"] * ROWS, pa.binary(16))),
    }


def every_type(data_format: str) -> pa.Table:
    """Return a table with a column of every type that the data format holds, and metadata on the schema and on fields."""
    columns = _plain() | _timed() | _decimals() | _nested()
    fields, arrays = [], []
    for name, array in columns.items():
        if name not in UNSUPPORTED[data_format]:
            fields.append(pa.field(name, array.type))
            arrays.append(array)
    fields.append(pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"}))
    arrays.append(pa.array([b"x" * 100] * ROWS, pa.large_binary()))
    fields.append(pa.field("described", pa.int32(), nullable=False, metadata={"unit": "m", "sprache": "größe"}))
    arrays.append(pa.array([1, 2, 3], pa.int32()))
    return pa.table(arrays, schema=pa.schema(fields, metadata={"owner": "ann", "empty": ""}))
