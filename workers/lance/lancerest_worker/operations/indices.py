"""Operations on indices."""

from __future__ import annotations

import math
from typing import Any

import lance
import pyarrow as pa

from ..errors import INDEX_EXISTS, INDEX_NOT_FOUND, INVALID, UNSUPPORTED, RefusedError
from ..request import Request
from . import limits, paths
from .query import holds_vectors, metric

_SCALAR = {
    "BTREE": "BTREE",
    "SCALAR": "BTREE",
    "BITMAP": "BITMAP",
    "LABELLIST": "LABEL_LIST",
    "INVERTED": "INVERTED",
    "FTS": "INVERTED",
    "NGRAM": "NGRAM",
    "ZONEMAP": "ZONEMAP",
    "BLOOMFILTER": "BLOOMFILTER",
    "RTREE": "RTREE",
}
_VECTOR = {
    "VECTOR": "IVF_PQ",
    "IVFFLAT": "IVF_FLAT",
    "IVFPQ": "IVF_PQ",
    "IVFSQ": "IVF_SQ",
    "IVFRQ": "IVF_RQ",
    "IVFHNSWFLAT": "IVF_HNSW_FLAT",
    "IVFHNSWPQ": "IVF_HNSW_PQ",
    "IVFHNSWSQ": "IVF_HNSW_SQ",
}
_NUMBERS = ("num_partitions", "target_partition_size", "num_bits", "m", "ef_construction", "max_iterations", "sample_rate")
_TEXT = (
    "with_position",
    "base_tokenizer",
    "language",
    "max_token_length",
    "lower_case",
    "stem",
    "remove_stop_words",
    "ascii_folding",
    "block_size",
    "custom_stop_words",
    "min_ngram_length",
    "max_ngram_length",
    "prefix_only",
    "index_operators",
    "preserve_original",
    "split_identifiers",
    "split_on_numerics",
)
# Names of the system's own indices begin so.
_SYSTEM = "__lance"


def create(request: Request) -> dict[str, Any]:
    """CreateTableIndex."""
    given = str(request.get("index_type", ""))
    kind = given.upper().replace("_", "")
    if kind in _SCALAR:
        return _scalar(request, _SCALAR[kind])
    if kind in _VECTOR:
        return _vector(request, _VECTOR[kind])
    raise RefusedError(
        INVALID, f"index_type {given!r}: it must be one of {', '.join(sorted({*_SCALAR.values(), *_VECTOR.values(), 'FTS'}))}"
    )


def create_scalar(request: Request) -> dict[str, Any]:
    """CreateTableScalarIndex."""
    given = str(request.get("index_type", ""))
    kind = _SCALAR.get(given.upper().replace("_", ""))
    if kind is None:
        raise RefusedError(INVALID, f"index_type {given!r}: a scalar index is one of {', '.join(sorted(set(_SCALAR.values())))}")
    return _scalar(request, kind)


def _prepare(request: Request) -> tuple[lance.LanceDataset, str, pa.Field]:
    dataset = request.changeable()
    column = str(request.get("column", ""))
    name = request.get("name")
    if name and str(name).startswith(_SYSTEM):
        raise RefusedError(INVALID, f"name {name!r}: names that begin with {_SYSTEM} are the library's own")
    if name and any(i.name == name for i in dataset.describe_indices()):
        raise RefusedError(
            INDEX_EXISTS,
            f"index {name!r} exists already: drop it first, or leave the name out to have the column's index made anew",
        )
    return dataset, column, paths.field(dataset.schema, column)


def _scalar(request: Request, kind: str) -> dict[str, Any]:
    dataset, column, _ = _prepare(request)
    if kind == "INVERTED" and request.get("lance_tokenizer") is not None:
        raise RefusedError(UNSUPPORTED, "lance_tokenizer is not taken: base_tokenizer says how texts are split")
    limits.numbers(request.args, ("max_token_length", "block_size", "min_ngram_length", "max_ngram_length"))
    options = {name: request.get(name) for name in _TEXT if request.get(name) is not None} if kind == "INVERTED" else {}
    index_type: Any = kind
    dataset.create_scalar_index(column, index_type, name=request.get("name"), replace=True, **options)
    request.changed(dataset)
    return {}


def _vector(request: Request, kind: str) -> dict[str, Any]:
    dataset, column, field = _prepare(request)
    if not holds_vectors(field.type):
        raise RefusedError(INVALID, f"column {column!r} is of type {field.type}: a vector index needs vectors")
    options: dict[str, Any] = {}
    limits.numbers(request.args, (*_NUMBERS, "num_sub_vectors"), 1)
    for name in _NUMBERS:
        if request.get(name) is not None:
            options[{"max_iterations": "max_iters"}.get(name, name)] = request.get(name)
    if "num_partitions" not in options and "target_partition_size" not in options:
        options["num_partitions"] = _partitions(kind, int(dataset.count_rows()))
    if kind.endswith("PQ"):
        options["num_sub_vectors"] = request.get("num_sub_vectors") or _sub_vectors(_dimension(field.type))
    dataset.create_index(
        column,
        kind,
        name=request.get("name"),
        metric=metric(request.get("distance_type", request.get("metric_type", "l2"))),
        replace=True,
        **options,
    )
    request.changed(dataset)
    return {}


def _partitions(kind: str, rows: int) -> int:
    """Return how many partitions LanceDB makes where it is told none."""
    if "HNSW" in kind:
        return max(1, rows // (1 << 20))
    return max(1, math.isqrt(rows))


def _sub_vectors(dimension: int) -> int:
    """Return how many sub-vectors LanceDB makes where it is told none."""
    for size in (16, 8):
        if dimension % size == 0:
            return dimension // size
    return 1


def _dimension(kind: pa.DataType) -> int:
    while not pa.types.is_fixed_size_list(kind):
        kind = kind.storage_type if isinstance(kind, pa.ExtensionType) else kind.value_type
    return int(kind.list_size)


def drop(request: Request) -> dict[str, Any]:
    """DropTableIndex."""
    dataset = request.changeable()
    name = str(request.get("index_name", ""))
    if name.startswith(_SYSTEM):
        raise RefusedError(UNSUPPORTED, f"index {name!r} is the library's own and is not dropped by request")
    if all(i.name != name for i in dataset.describe_indices()):
        raise RefusedError(INDEX_NOT_FOUND, f"there is no index {name!r}")
    dataset.drop_index(name)
    request.changed(dataset)
    return {}
