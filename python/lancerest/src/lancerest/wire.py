"""The few HTTP calls of the catalog that a transaction needs, with errors told apart.

pylance's own REST client reports every failure as one kind of error; a commit has to know whether an answer was a
refusal, whether it was lost, and whether the request ever left. Everything else (creating namespaces, listing,
renaming) goes through pylance's client, `Catalog.namespace_client`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import urllib3

from .errors import BRANCH_NOT_FOUND, INTERNAL, SERVICE_UNAVAILABLE, RequestError

CONNECT_TIMEOUT: Final = 5.0
# The longest wait for one answer, whatever time the caller has: then the request is lost, and can be sent again.
ANSWER_TIMEOUT: Final = 30.0

TableID = tuple[str, ...]


class AnswerLostError(Exception):
    """The request was (or may have been) received, and no usable answer came back. Only the commit meets it."""


@dataclass(frozen=True)
class TableInfo:
    """What describe says of a table: where it lies and how its storage is reached."""

    location: str
    storage_options: dict[str, str] | None


@dataclass(frozen=True)
class Head:
    """The latest version of a chain and the store-relative path of its manifest."""

    version: int
    manifest_path: str


class Wire:
    """A connection pool to one catalog. Safe for use by many threads."""

    def __init__(self, uri: str, headers: Mapping[str, str], delimiter: str) -> None:
        self._uri = uri.rstrip("/")
        self._headers = dict(headers)
        self._delimiter = delimiter
        self._pool = urllib3.PoolManager(maxsize=16, retries=False)

    def describe(self, table: TableID, timeout: float) -> TableInfo:
        """Return where the table lies. RequestError with code 4 if there is none."""
        answer = self._read(self._table_path(table, "describe"), {"id": list(table)}, timeout)
        return TableInfo(location=answer["location"], storage_options=answer.get("storage_options"))

    def head(self, table: TableID, branch: str, timeout: float) -> Head | None:
        """Return the latest version of the table's branch ("" = main), None for a table declared but never written.

        RequestError with code 22 if the branch does not exist, 4 if the table does not.
        """
        query = {"limit": "1", "descending": "true"}
        if branch:
            query["branch"] = branch
        answer = self._read(self._table_path(table, "version/list", query), None, timeout)
        versions = answer["versions"]
        if not versions and branch:
            raise RequestError(f"table {'/'.join(table)} has no branch {branch}", code=BRANCH_NOT_FOUND, status=404)
        return Head(versions[0]["version"], versions[0]["manifest_path"]) if versions else None

    def declare(self, table: TableID, timeout: float) -> None:
        """Reserve a name for a table to come. RequestError with code 5 if it is taken."""
        self._read(self._table_path(table, "declare"), {"id": list(table)}, timeout)

    def batch_create(self, body: Mapping[str, Any], timeout: float) -> tuple[int, dict[str, Any]]:
        """Send one batch of versions and return (status, decoded body) as answered, refusals included.

        AnswerLostError if the request may have arrived and no answer came; RequestError (code 17) if it never left.
        """
        return self._send("/v1/table/version/batch-create", body, timeout)

    def _read(self, path: str, body: Mapping[str, Any] | None, timeout: float) -> dict[str, Any]:
        try:
            status, answer = self._send(path, body, timeout)
        except AnswerLostError as err:
            raise RequestError(f"no answer from the catalog to {path}: {err}", code=SERVICE_UNAVAILABLE) from err
        if status // 100 != 2:
            raise refusal(status, answer)
        return answer

    def _send(self, path: str, body: Mapping[str, Any] | None, timeout: float) -> tuple[int, dict[str, Any]]:
        url = self._uri + path + ("&" if "?" in path else "?") + "delimiter=" + quote(self._delimiter, safe="")
        try:
            response = self._pool.request(
                "POST",
                url,
                body=None if body is None else json.dumps(body).encode(),
                headers=self._headers if body is None else {**self._headers, "Content-Type": "application/json"},
                timeout=urllib3.Timeout(connect=min(CONNECT_TIMEOUT, timeout), read=min(ANSWER_TIMEOUT, timeout)),
                redirect=False,
            )
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as err:
            raise RequestError(f"cannot reach the catalog at {self._uri}: {err}", code=SERVICE_UNAVAILABLE) from err
        except urllib3.exceptions.HTTPError as err:
            raise AnswerLostError(str(err)) from err
        try:
            decoded = json.loads(response.data)
        except ValueError:
            decoded = None
        if isinstance(decoded, dict):
            return response.status, decoded
        if response.status // 100 == 2:
            raise AnswerLostError(f"answer of {path} is not a JSON object")
        return response.status, {"error": f"answer of {path} is not a JSON object", "code": INTERNAL}

    def _table_path(self, table: TableID, verb: str, query: Mapping[str, str] | None = None) -> str:
        joined = quote(self._delimiter, safe="").join(quote(part, safe="") for part in table)
        suffix = "?" + "&".join(f"{k}={quote(v, safe='')}" for k, v in query.items()) if query else ""
        return f"/v1/table/{joined}/{verb}{suffix}"


def refusal(status: int, answer: Mapping[str, Any]) -> RequestError:
    """Return the error that a refusing answer stands for."""
    code = answer.get("code")
    return RequestError(
        str(answer.get("error") or "the catalog gave no reason"),
        code=code if isinstance(code, int) else INTERNAL,
        status=status,
        detail=str(answer.get("detail") or ""),
    )


def split_id(table: str | Sequence[str], delimiter: str) -> TableID:
    """Return a table id as its parts: "ns$t" and ["ns", "t"] are the same table. ValueError for an empty part."""
    parts = tuple(table.split(delimiter)) if isinstance(table, str) else tuple(table)
    if not parts or not all(parts):
        raise ValueError(f"table id {table!r} has an empty part: give it as {delimiter!r}-joined names or as a list of names")
    return parts
