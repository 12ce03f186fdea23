"""Queries."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa

from ..errors import INVALID, RefusedError
from ..request import Request
from . import conditions, limits, paths, several, text

# More rows than any table has: how clients write "all of them".
_UNLIMITED = 1 << 31
_DEFAULT_K = 10
# Up to so many rows can be looked for without a look at how many there are.
_MODEST = 1000
_METRICS = {"l2": "l2", "euclidean": "l2", "cosine": "cosine", "dot": "dot", "innerproduct": "dot", "hamming": "hamming"}


def query(request: Request) -> pa.RecordBatchReader:
    """QueryTable."""
    dataset, asked = request.readable(), request.args
    searches = _searches(dataset, asked)
    if isinstance(searches, lance.LanceScanner):
        reader: pa.RecordBatchReader = searches.to_reader()
        return reader
    return several.join(searches, _window(asked), bool(asked.get("with_row_id")))


def explain(request: Request) -> str:
    """ExplainTableQueryPlan."""
    verbose = bool(request.get("verbose", False))
    return _told(_searches(request.readable(), request.get("query", {})), lambda scanner: scanner.explain_plan(verbose=verbose))


def analyze(request: Request) -> str:
    """AnalyzeTableQueryPlan."""
    return _told(_searches(request.readable(), request.args), lambda scanner: scanner.analyze_plan())


def _told(searches: lance.LanceScanner | several.Searches, tell: Callable[[lance.LanceScanner], str]) -> str:
    """Return what is told of a search, or of each of several under its name."""
    if isinstance(searches, lance.LanceScanner):
        return tell(searches)
    named = [(name, scanner) for name, scanners in searches.items() for scanner in scanners]
    return "\n".join(f"search by {name}:\n{tell(scanner)}" for name, scanner in named)


def _searches(dataset: lance.LanceDataset, asked: dict[str, Any]) -> lance.LanceScanner | several.Searches:
    """Return the search that a query is, or the several ones whose results make its answer."""
    vectors = _vectors(asked.get("vector") or {})
    searched = asked.get("full_text_query")
    texts = [] if searched is None else text.Search(dataset).queries(searched)
    if len(texts) > 1 or (texts and vectors is not None):
        window = _window(asked)
        part = {
            **asked,
            "k": window.stop,
            "offset": 0,
            "with_row_id": True,
            "columns": several.columns(_columns(asked.get("columns") or {})),
        }
        found: several.Searches = {"text": [_scanner(dataset, part, None, one, several.SCORE) for one in texts]}
        if vectors is not None:
            if isinstance(vectors[0], list) and not _several_in_a_row(dataset, asked):
                raise RefusedError(INVALID, "a query with a text takes one vector: ask for each of the vectors by itself")
            found = {"vector": [_scanner(dataset, part, vectors, None)], **found}
        return found
    return _scanner(dataset, {**asked, "columns": _columns(asked.get("columns") or {})}, vectors, texts[0] if texts else None)


def _window(asked: dict[str, Any]) -> range:
    """Return which of the rows found are wanted, counted from the best."""
    offset = _counted(asked, "offset")
    return range(offset, offset + (_counted(asked, "k") or _DEFAULT_K))


def _scanner(
    dataset: lance.LanceDataset, asked: dict[str, Any], vectors: pa.Array | list[list[float]] | None, searched: Any, *more: str
) -> lance.LanceScanner:
    """Return one search. More columns are returned besides those that are asked for."""
    k, offset = _counted(asked, "k"), _counted(asked, "offset")
    columns = asked["columns"]
    if columns is not None and more:
        columns = [*columns, *more] if isinstance(columns, list) else {**columns, **{name: name for name in more}}
    options: dict[str, Any] = {
        "columns": columns,
        "filter": conditions.whole(asked["filter"], "filter") if asked.get("filter") else None,
        "with_row_id": bool(asked.get("with_row_id")),
        "fast_search": bool(asked.get("fast_search")),
        "offset": offset or None,
    }
    if asked.get("prefilter") is not None:
        options["prefilter"] = bool(asked["prefilter"])
    if vectors is not None:
        options["nearest"] = _nearest(dataset, vectors, asked, k or _DEFAULT_K, offset)
        if k and offset and not isinstance(vectors, list):
            options["limit"] = _bounded(dataset, k)
    else:
        if searched is not None:
            options["full_text_query"] = searched
            # Results come by score and have no order beyond the limit, so that Lance wants one.
            k = k or _DEFAULT_K
        if 0 < k < _UNLIMITED:
            options["limit"] = k
        elif searched is not None:
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
    if aliases:
        return {name: conditions.whole(text, f"the expression of column {name!r}") for name, text in aliases.items()}
    return names or None


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
    limits.numbers(asked, ("nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor", "ef"))
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


def _several_in_a_row(dataset: lance.LanceDataset, asked: dict[str, Any]) -> bool:
    """Tell whether the column has several vectors in each row, so that several are one query."""
    column = asked.get("vector_column") or _vector_column(dataset.schema)
    kind = paths.field(dataset.schema, column).type
    return not pa.types.is_fixed_size_list(kind)


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
