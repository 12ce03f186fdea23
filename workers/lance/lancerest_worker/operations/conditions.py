"""Conditions and values in SQL, as requests bring them.

Lance puts a condition into a query of its own and reads that to the condition's end: what follows, such as `; DROP TABLE t` or
`LIMIT 1`, it leaves unread without a word. In brackets all of it has to belong to the condition.
"""

from __future__ import annotations

import re

from ..errors import INVALID, RefusedError

# Texts and names in quotes, in which brackets mean nothing.
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`")
_BRACKET = re.compile(r"[()]")


def whole(text: str, what: str) -> str:
    """Return SQL that stands for the text and nothing but it; `what` names it in errors.

    Errors: INVALID where a bracket closes none that is open.
    """
    depth = 0
    for bracket in _BRACKET.findall(_QUOTED.sub("", text)):
        depth += 1 if bracket == "(" else -1
        if depth < 0:
            raise RefusedError(INVALID, f"{what} has a bracket that closes none: {text}")
    return f"({text}\n)"  # a comment ends with its line
