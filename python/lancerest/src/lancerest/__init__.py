"""Atomic commits over many Lance tables, through a Lancerest catalog.

    import lancerest

    catalog = lancerest.connect("http://127.0.0.1:2333")

    def move(tx: lancerest.Transaction) -> None:
        tx.append("images", images)
        tx.append("labels", labels)
        tx.update("progress", {"done": "done + 1"})

    catalog.transaction(move)

All three tables get their new version together, or none does. See `Catalog.transaction` for what happens when other
writers get in between.
"""

from .catalog import Catalog, connect
from .commit import Committed
from .errors import CommitUnknownError, ConflictError, Contended, LancerestError, RequestError
from .transaction import MergeInsert, MergeStats, TableName, Transaction

__all__ = [
    "Catalog",
    "CommitUnknownError",
    "Committed",
    "ConflictError",
    "Contended",
    "LancerestError",
    "MergeInsert",
    "MergeStats",
    "RequestError",
    "TableName",
    "Transaction",
    "connect",
]
