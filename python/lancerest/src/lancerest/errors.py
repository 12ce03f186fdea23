"""The errors of this package. Errors of pylance itself (a bad predicate, a missing column) pass through as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

UNSUPPORTED = 0
TABLE_NOT_FOUND = 4
TABLE_ALREADY_EXISTS = 5
VERSION_NOT_FOUND = 11
CONCURRENT_MODIFICATION = 14
SERVICE_UNAVAILABLE = 17
INTERNAL = 18
THROTTLING = 21
BRANCH_NOT_FOUND = 22


class LancerestError(Exception):
    """The root of every error that this package raises itself."""


class RequestError(LancerestError):
    """The catalog refused a request, or could not be reached before anything was sent.

    `code` is the integer error code of the Lance Namespace specification (4 = no such table, 5 = table exists, 13 = bad
    input, 17 = unavailable and so on), `status` the HTTP status (0 where no answer came), `detail` the server's longer text.
    """

    def __init__(self, message: str, *, code: int, status: int = 0, detail: str = "") -> None:
        super().__init__(f"{message} (code {code}, HTTP status {status})")
        self.code = code
        self.status = status
        self.detail = detail


@dataclass(frozen=True)
class Contended:
    """One table that other writers kept winning: its id, its branch ("" = main) and the version that was last tried."""

    table: tuple[str, ...]
    branch: str
    version: int

    def __str__(self) -> str:
        name = "/".join(self.table) + (f" (branch {self.branch})" if self.branch else "")
        return f"version {self.version} of table {name}"


class ConflictError(LancerestError):
    """Other writers won every attempt; nothing of the transaction was applied.

    `contended` names the tables and versions lost in the last attempt (empty where the server's text alone says it),
    `attempts` how often it was tried, `last` is the server's last answer.
    """

    def __init__(self, contended: Sequence[Contended], *, attempts: int, last: str) -> None:
        what = ", ".join(str(c) for c in contended) or "the transaction"
        super().__init__(f"conflict on {what} after {attempts} attempt(s); nothing was applied: {last}")
        self.contended = tuple(contended)
        self.attempts = attempts
        self.last = last


class CommitUnknownError(LancerestError):
    """The commit was sent and its outcome could not be learned in time: it may or may not have been applied, as a whole.

    Do not run the transaction again before looking. `versions` maps (table, branch) to the version that each table has
    if it was applied: compare with the table's transaction at that version (`LanceDataset.read_transaction(version).uuid`)
    and with `uuids`.
    """

    def __init__(
        self,
        message: str,
        *,
        versions: Mapping[tuple[tuple[str, ...], str], int],
        uuids: Mapping[tuple[tuple[str, ...], str], str],
    ) -> None:
        super().__init__(message)
        self.versions = dict(versions)
        self.uuids = dict(uuids)
