"""Queries."""

from __future__ import annotations

import base64
from typing import Any

import lance
import pyarrow as pa

from ..errors import INVALID, UNSUPPORTED, RefusedError
from ..request import Request
from . import paths, text

# More rows than any table has: how clients write "all of them".
_UNLIMITED = 1 << 31
_DEFAULT_K = 10
# Up to so many rows can be looked for without a look at how many there are.
_MODEST = 1000
_METRICS = {"l2": "l2", "euclidean": "l2", "cosine": "cosine", "dot": "dot", "innerproduct": "dot", "hamming": "hamming"}


def query(request: Request) -> pa.RecordBatchReader:
    """QueryTable."""
    reader: pa.RecordBatchReader = _scanner(request.readable(), request.args).to_reader()
    return reader


def explain(request: Request) -> str:
    """ExplainTableQueryPlan."""
    plan: str = _scanner(request.readable(), request.get("query", {})).explain_plan(verbose=bool(request.get("verbose", False)))
    return plan


def analyze(request: Request) -> str:
    """AnalyzeTableQueryPlan."""
    analysis: str = _scanner(request.readable(), request.args).analyze_plan()
    return analysis


def _scanner(dataset: lance.LanceDataset, asked: dict[str, Any]) -> lance.LanceScanner:
    vectors = _vectors(asked.get("vector") or {})
    searched = asked.get("full_text_query")
    k, offset = _counted(asked, "k"), _counted(asked, "offset")
    options: dict[str, Any] = {
        "columns": _columns(asked.get("columns") or {}),
        "filter": asked.get("filter") or None,
        "with_row_id": bool(asked.get("with_row_id")),
        "fast_search": bool(asked.get("fast_search")),
        "offset": offset or None,
    }
    if asked.get("prefilter") is not None:
        options["prefilter"] = bool(asked["prefilter"])
    if vectors is not None and searched:
        raise RefusedError(
            UNSUPPORTED,
            "a query has a vector or a text, not both: ask both and join them by _rowid, as LanceDB's clients do",
        )
    if vectors is not None:
        options["nearest"] = _nearest(dataset, vectors, asked, k or _DEFAULT_K, offset)
        if k and offset and not isinstance(vectors, list):
            options["limit"] = _bounded(dataset, k)
    else:
        if searched:
            options["full_text_query"] = text.Search(dataset).query(searched)
            # Results come by score and have no order beyond the limit, so that Lance wants one.
            k = k or _DEFAULT_K
        if 0 < k < _UNLIMITED:
            options["limit"] = k
        elif searched:
            options["limit"] = _rows(dataset)
    return dataset.scanner(**options)


def _counted(asked: dict[str, Any], name: str) -> int:
    value = asked.get(name) or 0
    if value < 0:
        raise RefusedError(INVALID, f"{name} is {value}: it must be 0 or more")
    return int(value)


def _rows(dataset: lance.LanceDataset) -> int:
    """Return how many rows there are to find, at least one: Lance takes no limit of none."""
    return max(1, int(dataset.count_rows()))


def _bounded(dataset: lance.LanceDataset, k: int) -> int:
    """Return how many rows to look for: the library makes room for as many as it is told."""
    return k if k <= _MODEST else min(k, _rows(dataset))


def _vectors(vector: dict[str, Any]) -> pa.Array | list[list[float]] | None:
    """Return the vector or the list of vectors to be near to, None for no vector search.

    The server sends one vector as its bytes, numbers of 32 bits: as text they take longer to read than all else in a request.
    """
    packed, single, several = vector.get("packed"), vector.get("single_vector"), vector.get("multi_vector")
    if (packed or single) and several:
        raise RefusedError(INVALID, "vector has single_vector and multi_vector: give one of them")
    if packed:
        numbers = base64.b64decode(packed)
        return pa.Array.from_buffers(pa.float32(), len(numbers) // 4, [None, pa.py_buffer(numbers)])
    return pa.array(single, pa.float32()) if single else several or None


def _columns(columns: dict[str, Any]) -> list[str] | dict[str, str] | None:
    names, aliases = columns.get("column_names"), columns.get("column_aliases")
    if names and aliases:
        raise RefusedError(INVALID, "columns has column_names and column_aliases: give one of them")
    return names or aliases or None


def _nearest(
    dataset: lance.LanceDataset, vectors: pa.Array | list[list[float]], asked: dict[str, Any], k: int, offset: int
) -> dict[str, Any]:
    schema = dataset.schema
    column = asked.get("vector_column") or _vector_column(schema)
    paths.field(schema, column)
    nearest: dict[str, Any] = {
        "column": column,
        "q": vectors,
        "k": _bounded(dataset, k + offset),
        "use_index": not asked.get("bypass_vector_index"),
    }
    if asked.get("distance_type"):
        nearest["metric"] = metric(asked["distance_type"])
    if asked.get("minimum_nprobes") is not None or asked.get("maximum_nprobes") is not None:
        # An upper bound of 0 is how older clients write that there is none.
        probes = {"minimum_nprobes": asked.get("minimum_nprobes"), "maximum_nprobes": asked.get("maximum_nprobes") or None}
        nearest.update({name: value for name, value in probes.items() if value is not None})
    elif asked.get("nprobes") is not None:
        nearest["nprobes"] = asked["nprobes"]
    for name in ("refine_factor", "ef"):
        if asked.get(name) is not None:
            nearest[name] = asked[name]
    bounds = (asked.get("lower_bound"), asked.get("upper_bound"))
    if bounds != (None, None):
        nearest["distance_range"] = bounds
    return nearest


def metric(given: str) -> str:
    """Return Lance's name of a distance type."""
    known = _METRICS.get(given.lower().replace("_", ""))
    if known is None:
        raise RefusedError(INVALID, f"distance_type {given!r}: it must be l2, cosine, dot or hamming")
    return known


def _vector_column(schema: pa.Schema) -> str:
    """Return the only column that holds vectors."""
    found = [f.name for f in schema if holds_vectors(f.type)]
    if len(found) != 1:
        what = f"the columns {', '.join(found)} all hold vectors" if found else "no column holds vectors"
        raise RefusedError(INVALID, f"vector_column is missing, and {what}: name the one that is meant")
    return paths.canonical("`" + found[0].replace("`", "``") + "`")


def holds_vectors(kind: pa.DataType) -> bool:
    """Tell whether a type holds one vector or, as a list, several."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return holds_vectors(kind.value_type) and not pa.types.is_list(kind.value_type)
    if isinstance(kind, pa.ExtensionType):
        return holds_vectors(kind.storage_type)
    return bool(
        pa.types.is_fixed_size_list(kind) and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))
    )
