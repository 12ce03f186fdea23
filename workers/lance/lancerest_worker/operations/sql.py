"""SQL as clients write it: what an expression names, and what a view's query consists of.

Lance parses and runs expressions. Here is only what it does not say: which columns an expression reads, that it is one expression
and not a piece that would end another, and the parts of `SELECT columns FROM table [WHERE predicate] [LIMIT n]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from ..errors import INVALID, UNSUPPORTED, RefusedError

WORD, QUOTED, TEXT, NUMBER, SIGN = "word", "quoted", "text", "number", "sign"
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>--|/\*)
    |(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign>::|<=>|<=|>=|<>|!=|\|\||->>|->|=>|.)""",
    re.VERBOSE | re.DOTALL,
)
# Functions that answer differently each time: what they give cannot be brought up to date.
_CHANGING = {
    "random",
    "rand",
    "uuid",
    "now",
    "current_timestamp",
    "current_date",
    "current_time",
    "today",
    "localtimestamp",
    "version",
}
_OPEN, _CLOSE = "([{", ")]}"
# Words that begin what a view's query cannot have.
_BEYOND = {
    "GROUP": "GROUP BY",
    "HAVING": "HAVING",
    "ORDER": "ORDER BY",
    "UNION": "UNION",
    "INTERSECT": "INTERSECT",
    "EXCEPT": "EXCEPT",
    "JOIN": "a join",
    "OFFSET": "OFFSET",
    "QUALIFY": "QUALIFY",
    "WINDOW": "WINDOW",
    "FETCH": "FETCH",
}
_KEYWORDS = {
    "AND",
    "OR",
    "NOT",
    "IS",
    "NULL",
    "IN",
    "LIKE",
    "ILIKE",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "TRUE",
    "FALSE",
}
_KEYWORDS |= {"CAST", "AS", "DISTINCT", "FROM", "ESCAPE", "INTERVAL"}
_MOST = 1 << 16


@dataclass(frozen=True)
class Token:
    """A piece of SQL: its kind, its text, where it begins and ends, and how many brackets are open around it."""

    kind: str
    text: str
    begin: int
    end: int
    depth: int

    @property
    def upper(self) -> str:
        """The text of a bare word in capitals, "" of anything else."""
        return self.text.upper() if self.kind == WORD else ""

    @property
    def name(self) -> str:
        """The name that this writes as an identifier."""
        if self.kind == WORD:
            return self.text
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


def tokens(text: str, what: str) -> list[Token]:
    """Return the pieces of SQL text; `what` names it in errors. Comments and what is not closed are INVALID."""
    if len(text) > _MOST:
        raise RefusedError(INVALID, f"{what} has {len(text)} characters: {_MOST} are the most")
    found: list[Token] = []
    open_: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None  # any character is a sign
        kind, piece = str(match.lastgroup), match.group()
        if kind == "comment":
            raise RefusedError(INVALID, f"{what} has a comment: leave it out")
        if kind == SIGN and piece in "'\"`":
            raise RefusedError(INVALID, f"{what} has a {piece} that is not closed: {text}")
        if kind == SIGN and piece in _CLOSE and (not open_ or open_.pop() != _OPEN[_CLOSE.index(piece)]):
            raise RefusedError(INVALID, f"{what} has a {piece} that closes nothing: {text}")
        if kind != "space":
            found.append(Token(kind, piece, at, match.end(), len(open_)))
        if kind == SIGN and piece in _OPEN:
            open_.append(piece)
        at = match.end()
    if open_:
        raise RefusedError(INVALID, f"{what} has a {open_[-1]} that is not closed: {text}")
    return found


def expression(text: str, what: str) -> list[Token]:
    """Return the pieces of one expression that gives the same value each time; INVALID for anything else."""
    found = tokens(text, what)
    if not found:
        raise RefusedError(INVALID, f"{what} is empty")
    for at, token in enumerate(found):
        if (token.kind == SIGN and token.text == ";") or (token.text == "," and token.depth == 0):
            raise RefusedError(INVALID, f"{what} is not one expression: it has a {token.text!r}: {text}")
        called = found[at + 1 : at + 2] and found[at + 1].text == "("
        if token.text.lower() in _CHANGING and (called or token.upper.startswith(("CURRENT_", "LOCAL"))):
            raise RefusedError(
                INVALID, f"{what}: {token.text!r} is not deterministic, and the value must be the same every time it is computed"
            )
    return found


def inputs(found: list[Token], schema: pa.Schema) -> list[str]:
    """Return the paths of columns that an expression reads, sorted, as LanceDB records them: a nested one with its dots."""
    known = {name.lower(): name for name in schema.names}
    paths: set[str] = set()
    at = 0
    while at < len(found):
        segments, after = _path(found, at)
        if not segments:
            at += 1
            continue
        called = after < len(found) and found[after].text == "(" and found[at].kind == WORD
        typed = at > 0 and (found[at - 1].upper == "AS" or found[at - 1].text == "::")
        root = segments[0] if segments[0] in schema.names else known.get(segments[0].lower())
        if root is not None and not called and not typed:
            paths.add(".".join([root, *segments[1:]]))
        at = after
    return sorted(paths)


def _path(found: list[Token], at: int) -> tuple[list[str], int]:
    """Return the names joined by dots that begin at a place, and where they end."""
    segments: list[str] = []
    while at < len(found) and found[at].kind in (WORD, QUOTED):
        segments.append(found[at].name)
        at += 1
        if not (at + 1 < len(found) and found[at].text == "." and found[at + 1].kind in (WORD, QUOTED)):
            break
        at += 1
    return segments, at


@dataclass(frozen=True)
class Query:
    """What defines a view. No columns stand for all of the source."""

    source: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]  # name and expression
    where: str | None
    limit: int | None

    def text(self) -> str:
        """Return the query in LanceDB's spelling."""
        columns = ", ".join(_column(name, expression) for name, expression in self.columns) or "*"
        text = f"SELECT {columns} FROM {'.'.join(_bare(part) for part in self.source)}"
        if self.where is not None:
            text += f" WHERE {_spaced(self.where)}"
        return text if self.limit is None else f"{text} LIMIT {self.limit}"


def quote(name: str) -> str:
    """Write a name as Lance's SQL takes any."""
    return "`" + name.replace("`", "``") + "`"


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name.upper() not in _KEYWORDS else quote(name)


def _column(name: str, written: str) -> str:
    found = tokens(written, "a column")
    if len(found) == 1 and found[0].kind in (WORD, QUOTED):
        column = _bare(found[0].name)
        return column if found[0].name == name else f"{column} AS {_bare(name)}"
    return f"{_spaced(written)} AS {_bare(name)}"


def _spaced(written: str) -> str:
    """Write an expression with single spaces where they belong, as the parser of LanceDB does."""
    found = tokens(written, "an expression")
    text = ""
    for at, token in enumerate(found):
        before = found[at - 1] if at else None
        piece = token.upper if token.upper in _KEYWORDS else token.text
        piece = "<>" if piece == "!=" else piece
        text += piece if before is None or not _apart(found, at) else " " + piece
    return text


def _apart(found: list[Token], at: int) -> bool:
    """Tell whether there is a space before a piece."""
    token, before = found[at], found[at - 1]
    if token.text in (".", ",", ")", "]", "::", "[") or before.text in (".", "(", "[", "::"):
        return token.text == "[" and before.upper in _KEYWORDS
    if token.text == "(":
        return before.kind not in (WORD, QUOTED) or (before.upper in _KEYWORDS and before.upper != "CAST")
    if token.text[0] in "+-" and before.text in ("-", "+"):
        return True  # two that stand together begin a comment
    return not (before.text in ("-", "+") and (at < 2 or _unary(found[at - 2])))


def _unary(before: Token) -> bool:
    """Tell whether a sign after this piece belongs to what follows."""
    return before.upper in _KEYWORDS or (before.kind == SIGN and before.text not in _CLOSE)


def query(text: str) -> Query:
    """Return the parts of a view's query. What no view here can be is UNSUPPORTED, anything else that is wrong INVALID."""
    found = tokens(text, "the view's query")
    while found and found[-1].text == ";":
        found.pop()
    if not found or found[0].upper != "SELECT":
        raise RefusedError(
            INVALID, f"the view's query must be SELECT columns FROM table [WHERE predicate] [LIMIT n]: {text[:200]}"
        )
    _within(found)
    parts = _clauses(found)
    source = _source(parts["FROM"], text)
    where = _written(parts["WHERE"], text) if "WHERE" in parts else None
    if where is not None:
        expression(where, "the view's WHERE")
    limit = _limit(parts["LIMIT"], text) if "LIMIT" in parts else None
    return Query(source, _selected(parts["SELECT"], text), where, limit)


def _within(found: list[Token]) -> None:
    """Refuse what a view's query cannot have."""
    for at, token in enumerate(found):
        beyond = _BEYOND.get(token.upper) if token.depth == 0 else None
        following = found[at + 1].text if at + 1 < len(found) else ""
        if token.depth == 0 and token.upper == "DISTINCT" and at == 1:
            beyond = "DISTINCT"
        if token.upper in ("UNNEST", "EXPLODE") and following == "(":
            beyond = token.upper
        if token.upper == "SELECT" and at:
            beyond = "a query within the query"
        if beyond:
            raise RefusedError(
                UNSUPPORTED,
                f"the view's query has {beyond}: this engine keeps views of the form SELECT columns FROM table [WHERE predicate] "
                "[LIMIT n], a row of the view for a row of the table",
            )


def _clauses(found: list[Token]) -> dict[str, list[Token]]:
    """Return the pieces of each clause."""
    order = ["SELECT", "FROM", "WHERE", "LIMIT"]
    parts: dict[str, list[Token]] = {}
    last = ""
    for at, token in enumerate(found):
        distinct = token.upper == "FROM" and at > 1 and found[at - 1].upper == "DISTINCT"  # IS DISTINCT FROM
        if token.depth == 0 and token.upper in order and not distinct:
            if token.upper in parts or (last and order.index(token.upper) < order.index(last)):
                raise RefusedError(INVALID, f"the view's query has {token.upper} where it does not belong")
            last = token.upper
            parts[last] = []
        else:
            parts[last].append(token)
    for name in ("SELECT", "FROM"):
        if name not in parts:
            raise RefusedError(INVALID, f"the view's query has no {name}")
    for name, pieces in parts.items():
        if not pieces:
            raise RefusedError(INVALID, f"the view's query has nothing after {name}")
    return parts


def _written(pieces: list[Token], text: str) -> str:
    return text[pieces[0].begin : pieces[-1].end]


def _source(pieces: list[Token], text: str) -> tuple[str, ...]:
    written = _written(pieces, text)
    if any(p.text == "(" for p in pieces):
        raise RefusedError(UNSUPPORTED, f"FROM {written}: this engine makes views of tables, not of functions")
    if any(p.text == "," for p in pieces):
        raise RefusedError(UNSUPPORTED, f"FROM {written}: a view here has one source")
    names = pieces[0::2]
    named = all(p.kind in (WORD, QUOTED) or p.text.startswith('"') for p in names) and len(pieces) % 2 == 1
    if not named or any(p.text != "." for p in pieces[1::2]) or not all(p.name for p in names):
        raise RefusedError(
            INVALID, f"FROM {written}: it must be the name of a table, names of namespaces before it with dots between"
        )
    return tuple(p.name for p in names)


def _limit(pieces: list[Token], text: str) -> int:
    written = _written(pieces, text)
    if len(pieces) != 1 or not written.isdecimal() or int(written) >= 1 << 63:
        raise RefusedError(INVALID, f"LIMIT {written}: it must be a whole number")
    return int(written)


def _selected(pieces: list[Token], text: str) -> tuple[tuple[str, str], ...]:
    if len(pieces) == 1 and pieces[0].text == "*":
        return ()
    columns: list[tuple[str, str]] = []
    item: list[Token] = []
    for token in [*pieces, None]:
        if token is not None and not (token.text == "," and token.depth == 0):
            item.append(token)
            continue
        if not item:
            raise RefusedError(INVALID, f"the view's query has an empty column: {text[:200]}")
        columns.append(_named(item, text))
        item = []
    return tuple(columns)


def _named(item: list[Token], text: str) -> tuple[str, str]:
    """Return a column's name and its expression."""
    if len(item) > 2 and item[-2].upper == "AS" and item[-2].depth == 0:
        name, rest = item[-1], item[:-2]
        if (name.kind not in (WORD, QUOTED) and not name.text.startswith('"')) or not name.name:
            raise RefusedError(INVALID, f"{_written(item, text)}: what follows AS must be a name")
        written = _written(rest, text)
        if written.startswith('"') and len(rest) == 1:
            written = quote(rest[0].name)
        expression(written, f"column {name.name!r}")
        return name.name, written
    if len(item) == 1 and (item[0].kind in (WORD, QUOTED) or item[0].text.startswith('"')):
        return item[0].name, quote(item[0].name)
    raise RefusedError(INVALID, f"{_written(item, text)}: give it a name, by AS, or name a column alone")
