"""Full-text queries: the specification's tree as the library's."""

from __future__ import annotations

from typing import Any

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

from ..errors import INVALID, UNSUPPORTED, RefusedError


def search(asked: dict[str, Any]) -> dict[str, Any] | FullTextQuery:
    """Return what a scanner takes as its full_text_query."""
    plain, tree = asked.get("string_query"), asked.get("structured_query")
    if plain and tree:
        raise RefusedError(INVALID, "full_text_query has string_query and structured_query: give one of them")
    if plain:
        return {"query": plain["query"], "columns": plain.get("columns") or None}
    if tree:
        return _node(tree["query"])
    raise RefusedError(INVALID, "full_text_query is empty: give string_query or structured_query")


def _node(node: dict[str, Any]) -> FullTextQuery:
    kinds = {"match": _match, "phrase": _phrase, "boost": _boost, "multi_match": _multi_match, "boolean": _boolean}
    given = [kind for kind in kinds if node.get(kind) is not None]
    if len(given) != 1:
        raise RefusedError(INVALID, f"a node of the full-text query has {len(given)} kinds: give one of {', '.join(kinds)}")
    return kinds[given[0]](node[given[0]])


def _operator(node: dict[str, Any]) -> FullTextOperator:
    given = str(node.get("operator") or "or")
    try:
        return FullTextOperator(given.upper())
    except ValueError:
        raise RefusedError(INVALID, f"operator {given!r}: it must be And or Or") from None


def _column(node: dict[str, Any]) -> str:
    column = node.get("column")
    if not column:
        raise RefusedError(
            UNSUPPORTED,
            "a node of the full-text query names no column: name it, or use string_query, which searches all indexed columns",
        )
    return str(column)


def _match(node: dict[str, Any]) -> FullTextQuery:
    options = {
        name: node[name] for name in ("boost", "fuzziness", "max_expansions", "prefix_length") if node.get(name) is not None
    }
    return MatchQuery(node["terms"], _column(node), operator=_operator(node), **options)


def _phrase(node: dict[str, Any]) -> FullTextQuery:
    return PhraseQuery(node["terms"], _column(node), slop=node.get("slop") or 0)


def _boost(node: dict[str, Any]) -> FullTextQuery:
    weight = node.get("negative_boost")
    return BoostQuery(_node(node["positive"]), _node(node["negative"]), negative_boost=0.5 if weight is None else weight)


def _multi_match(node: dict[str, Any]) -> FullTextQuery:
    queries = node["match_queries"]
    if not queries:
        raise RefusedError(INVALID, "multi_match has no match_queries")
    alike = {(q["terms"], _operator(q), q.get("fuzziness"), q.get("max_expansions"), q.get("prefix_length")) for q in queries}
    if len(alike) > 1 or any(q.get("fuzziness") for q in queries):
        raise RefusedError(
            UNSUPPORTED,
            "the queries of multi_match must have the same terms and operator and no fuzziness: join others by boolean",
        )
    boosts = [1.0 if q.get("boost") is None else q["boost"] for q in queries]
    return MultiMatchQuery(queries[0]["terms"], [_column(q) for q in queries], boosts=boosts, operator=_operator(queries[0]))


def _boolean(node: dict[str, Any]) -> FullTextQuery:
    occurs = {"must": Occur.MUST, "must_not": Occur.MUST_NOT, "should": Occur.SHOULD}
    return BooleanQuery([(occur, _node(child)) for name, occur in occurs.items() for child in node.get(name) or []])
