"""Queries that are several searches: by a vector and a text at once, or by a text in several ways."""

from __future__ import annotations

from collections.abc import Iterable

import lance
import pyarrow as pa

# What finds rows by a vector, by a text, or both. All give `_rowid` and the same columns besides what a search adds; those by
# a text give `_score`.
Searches = dict[str, list[lance.LanceScanner]]

SCORE = "_score"
_RELEVANCE = "_relevance_score"
# What a search adds to rows by itself.
_ADDED = ("_distance", SCORE, _RELEVANCE, "_rowid")
# Reciprocal rank fusion: a row's score is the sum of 1 / (rank + 60) over the searches that found it, the first rank being 1.
# This is what LanceDB's clients do by default (RRFReranker).
_CONSTANT = 60


def join(searches: Searches, window: range, with_row_id: bool) -> pa.RecordBatchReader:
    """Return the rows at the places in `window` of those that the searches find, the best first, each once.

    Rows found by a text alone have their best `_score`. Rows found by a vector and by a text have `_relevance_score` instead
    of what the searches add, as in LanceDB; of those with the same one, what the search by vector has found comes first.
    """
    by_text = _best([scanner.to_table() for scanner in searches["text"]], window.stop)
    if "vector" not in searches:
        rows = by_text.slice(window.start, len(window))
    else:
        by_vector = searches["vector"][0].to_table()
        rows = _fused([_without(by_vector, "_distance"), _without(by_text, SCORE)], window)
    if not with_row_id:
        rows = _without(rows, "_rowid")
    return pa.RecordBatchReader.from_batches(rows.schema, rows.combine_chunks().to_batches())


def columns(asked: list[str] | dict[str, str] | None) -> list[str] | dict[str, str] | None:
    """Return the columns that a query asks for without those that its searches add: each of them knows only its own."""
    if isinstance(asked, list):
        return [name for name in asked if name not in _ADDED]
    if isinstance(asked, dict):
        return {name: path for name, path in asked.items() if path not in _ADDED}
    return asked


def _best(found: list[pa.Table], most: int) -> pa.Table:
    """Return the rows of all tables, by score, each at its best."""
    if len(found) == 1:
        return found[0]
    rows = pa.concat_tables(found).sort_by([(SCORE, "descending")])
    places = _first_places(rows["_rowid"].to_pylist())
    return rows.take(pa.array(list(places.values())[:most], pa.int64()))


def _fused(found: list[pa.Table], window: range) -> pa.Table:
    ids = [table["_rowid"].to_pylist() for table in found]
    scores: dict[int, float] = {}
    for ranked in ids:
        for rank, row in enumerate(ranked, 1):
            scores[row] = scores.get(row, 0.0) + 1 / (rank + _CONSTANT)
    places = _first_places(row for ranked in ids for row in ranked)
    # Sorting keeps the order of what is equal.
    order = sorted(places, key=lambda row: -scores[row])[window.start : window.stop]
    rows = pa.concat_tables(found, promote_options="permissive").take(pa.array([places[row] for row in order], pa.int64()))
    return rows.append_column(_RELEVANCE, pa.array([scores[row] for row in order], pa.float32()))


def _without(rows: pa.Table, *names: str) -> pa.Table:
    return rows.drop_columns([name for name in names if name in rows.column_names])


def _first_places(ids: Iterable[int]) -> dict[int, int]:
    places: dict[int, int] = {}
    for place, row in enumerate(ids):
        places.setdefault(row, place)
    return places
