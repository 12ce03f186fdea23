"""Operations on branches."""

from __future__ import annotations

import re
from typing import Any

from ..errors import BRANCH_EXISTS, BRANCH_NOT_FOUND, INVALID, RefusedError
from ..request import Request
from ..tables import MAIN

_SEGMENT = re.compile(r"[A-Za-z0-9._-]+")


def create(request: Request) -> dict[str, Any]:
    """CreateTableBranch. The server has said with the table from which version of which branch."""
    name = _name(request)
    dataset = request.changeable()
    if name in dataset.branches.list():
        raise RefusedError(BRANCH_EXISTS, f"branch {name!r} exists already")
    dataset.create_branch(name, request.table.reference)
    return {}


def delete(request: Request) -> dict[str, Any]:
    """DeleteTableBranch."""
    name = _name(request)
    dataset = request.changeable()
    branches = dataset.branches.list()
    if name not in branches:
        raise RefusedError(BRANCH_NOT_FOUND, f"there is no branch {name!r}")
    children = sorted(other for other, at in branches.items() if at.get("parent_branch") == name)
    if children:
        raise RefusedError(INVALID, f"branch {name!r} is where {', '.join(children)} began: delete that first")
    dataset.branches.delete(name)
    return {}


def _name(request: Request) -> str:
    """Return the branch's name, if it is one by Lance's rules."""
    name = str(request.get("name", ""))
    bad = ".." in name or name.endswith(".lock") or name == MAIN or not all(_SEGMENT.fullmatch(s) for s in name.split("/"))
    if bad:
        raise RefusedError(
            INVALID,
            f"name {name!r}: a branch's name is made of letters, digits, '.', '-' and '_', in parts joined by single '/'; "
            f"it is not {MAIN}, has no '..' and does not end with '.lock'",
        )
    return name
