"""Full-text queries: the specification's tree as the library's."""

from __future__ import annotations

from typing import Any

import lance
from lance.query import (
    BooleanQuery,
    BoostQuery,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)

from ..errors import INVALID, RefusedError
from . import limits


class Search:
    """Full-text queries of one table."""

    def __init__(self, dataset: lance.LanceDataset) -> None:
        self._dataset = dataset

    def queries(self, asked: dict[str, Any]) -> list[dict[str, Any] | FullTextQuery]:
        """Return what scanners take as their full_text_query: one, or several of which a row has the best score.

        The library has the latter as MultiMatchQuery, for words that are spelt right.
        """
        plain, tree = asked.get("string_query"), asked.get("structured_query")
        if plain and tree:
            raise RefusedError(INVALID, "full_text_query has string_query and structured_query: give one of them")
        if plain:
            return [{"query": plain["query"], "columns": plain.get("columns") or None}]
        if tree:
            return list(self._nodes(tree["query"]))
        raise RefusedError(INVALID, "full_text_query is empty: give string_query or structured_query")

    def _node(self, node: dict[str, Any]) -> FullTextQuery:
        """Return a node inside another.

        Where a row should have the best score of several it has their sum: the library knows no other way.
        """
        nodes = self._nodes(node)
        return nodes[0] if len(nodes) == 1 else BooleanQuery([(Occur.SHOULD, one) for one in nodes])

    def _nodes(self, node: dict[str, Any]) -> list[FullTextQuery]:
        kinds = {
            "match": self._match,
            "phrase": self._phrase,
            "boost": self._boost,
            "multi_match": self._multi_match,
            "boolean": self._boolean,
        }
        given = [kind for kind in kinds if node.get(kind) is not None]
        if len(given) != 1:
            raise RefusedError(INVALID, f"a node of the full-text query has {len(given)} kinds: give one of {', '.join(kinds)}")
        return kinds[given[0]](node[given[0]])

    def _columns(self, node: dict[str, Any]) -> list[str]:
        """Return the column that a node names, or all that have a full-text index."""
        if node.get("column"):
            return [str(node["column"])]
        indices = self._dataset.describe_indices()
        columns = sorted({name for i in indices if i.index_type.upper() in ("INVERTED", "FTS") for name in i.field_names})
        if not columns:
            raise RefusedError(INVALID, "no column has a full-text index: make one, or name the column to search in")
        return columns

    def _match(self, node: dict[str, Any]) -> list[FullTextQuery]:
        columns = self._columns(node)
        limits.numbers(node, ("fuzziness", "max_expansions", "prefix_length"))
        options = {name: node[name] for name in ("boost", "fuzziness", "max_expansions", "prefix_length") if node.get(name)}
        if len(columns) == 1 or options.get("fuzziness"):
            return [MatchQuery(node["terms"], column, operator=_operator(node), **options) for column in columns]
        boosts = [options.get("boost", 1.0)] * len(columns)
        return [MultiMatchQuery(node["terms"], columns, boosts=boosts, operator=_operator(node))]

    def _phrase(self, node: dict[str, Any]) -> list[FullTextQuery]:
        limits.numbers(node, ("slop",))
        return [PhraseQuery(node["terms"], column, slop=node.get("slop") or 0) for column in self._columns(node)]

    def _boost(self, node: dict[str, Any]) -> list[FullTextQuery]:
        weight = node.get("negative_boost")
        positive, negative = self._node(node["positive"]), self._node(node["negative"])
        return [BoostQuery(positive, negative, negative_boost=0.5 if weight is None else weight)]

    def _multi_match(self, node: dict[str, Any]) -> list[FullTextQuery]:
        queries = node["match_queries"]
        if not queries:
            raise RefusedError(INVALID, "multi_match has no match_queries")
        if not all(q.get("column") for q in queries):
            raise RefusedError(INVALID, "the queries of multi_match must name their columns")
        alike = {(q["terms"], _operator(q), q.get("max_expansions"), q.get("prefix_length")) for q in queries}
        if len(alike) > 1 or any(q.get("fuzziness") for q in queries):
            return [one for query in queries for one in self._match(query)]
        boosts = [1.0 if q.get("boost") is None else q["boost"] for q in queries]
        columns = [q["column"] for q in queries]
        return [MultiMatchQuery(queries[0]["terms"], columns, boosts=boosts, operator=_operator(queries[0]))]

    def _boolean(self, node: dict[str, Any]) -> list[FullTextQuery]:
        occurs = {"must": Occur.MUST, "must_not": Occur.MUST_NOT, "should": Occur.SHOULD}
        parts = [(occur, self._node(child)) for name, occur in occurs.items() for child in node.get(name) or []]
        if not any(occur is not Occur.MUST_NOT for occur, _ in parts):
            raise RefusedError(INVALID, "boolean needs a query in must or should")
        return [BooleanQuery(parts)]


def _operator(node: dict[str, Any]) -> FullTextOperator:
    given = str(node.get("operator") or "or")
    try:
        return FullTextOperator(given.upper())
    except ValueError:
        raise RefusedError(INVALID, f"operator {given!r}: it must be And or Or") from None
