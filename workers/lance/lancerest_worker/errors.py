"""Errors of the Lance library, as errors of the specification."""

from __future__ import annotations

import re

from lance_namespace.errors import LanceNamespaceError

UNSUPPORTED = 0
TABLE_NOT_FOUND = 4
INDEX_NOT_FOUND = 6
INDEX_EXISTS = 7
TABLE_EXISTS = 5
VERSION_NOT_FOUND = 11
COLUMN_NOT_FOUND = 12
INVALID = 13
CONFLICT = 14
INTERNAL = 18
BAD_STATE = 19
SCHEMA = 20
BRANCH_NOT_FOUND = 22
BRANCH_EXISTS = 23


class RefusedError(Exception):
    """An answer that is an error of the specification."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class BrokenStreamError(OSError):
    """The rows that a caller sends cannot be read to their end."""


# Where in Lance's source an error arose. Callers have no use for it.
_PLACE = re.compile(r",?\s*(?:location: )?(?:[A-Za-z]:)?[\w./\\@+~-]*\.rs:\d+(?::\d+)?")
_TRACE = re.compile(r"\.? ?(?:Detail: )?Python exception: Traceback.*", re.DOTALL)
_DUMP = re.compile(r" in schema:\s+Schema \{.*", re.DOTALL)
_PREFIX = re.compile(
    r"^(?:LanceError\(\w+\): |Invalid user input: |Schema error: |Encountered internal error\. .*?: |External error: "
    r"|C Data interface error: )+"
)

_PANIC = re.compile(r"^not (?:yet )?implemented|^task was aborted$", re.I)
# What the library says, by what it means. The first that fits counts; Lance has no error codes in Python.
_KINDS: list[tuple[re.Pattern[str], int]] = [
    (re.compile(r"commit status unknown|commit result unknown", re.I), INTERNAL),
    (
        re.compile(
            r"commit conflict|concurrent (?:modification|commit)|too many concurrent writers|incompatible transaction", re.I
        ),
        CONFLICT,
    ),
    (re.compile(r"dataset already exists|table already exists", re.I), TABLE_EXISTS),
    (re.compile(r"index name .* already exists", re.I), INDEX_EXISTS),
    (re.compile(r"lance index not found|index not found", re.I), INDEX_NOT_FOUND),
    (re.compile(r"branch .*(?:already exists)|refconflict.*branch.*exists", re.I), BRANCH_EXISTS),
    (re.compile(r"table version not found", re.I), VERSION_NOT_FOUND),
    (
        re.compile(
            r"append with different schema|schema mismatch|different schema|schema .*does not match"
            r"|should have type .* but type was|column \S+ already exists in the dataset"
            r"|cannot (?:cast|convert|coerce)|contains? null values|non-null|duplicate field name",
            re.I,
        ),
        SCHEMA,
    ),
    (
        re.compile(
            r"invalid user input|schema error|sql parser|parsing statement|invalid argument|not supported|notsupported"
            r"|does not exist|no field named|field \S* ?not found"
            r"|not enough rows|unsupported|type_coercion|dimension|query vector|must be|cannot be"
            r"|divide by zero|arithmetic overflow|cast error|not conforming to|query execution error: error applying filter",
            re.I,
        ),
        INVALID,
    ),
    # A panic, here or in one of the library's threads: what it can say is for the log.
    (_PANIC, UNSUPPORTED),
]


def clean(text: str) -> str:
    """Take out of a message of Lance's what only its developers can use."""
    text = _TRACE.sub("", text)
    text = _PLACE.sub("", text)
    text = _DUMP.sub("", text)
    text = _PREFIX.sub("", text.strip())
    return text.strip().rstrip(",").strip() or "the Lance library refused the request"


def translate(err: BaseException) -> tuple[int, str]:
    """Return the code of an error and what to say of it. What nobody foresaw is INTERNAL; its text is for the log."""
    if isinstance(err, RefusedError):
        return err.code, err.text
    if isinstance(err, BrokenStreamError):
        return INVALID, str(err)
    if isinstance(err, LanceNamespaceError):
        return int(err.code), clean(str(err))
    pieces = all(isinstance(arg, str) for arg in err.args)  # pylance has a comma too many here and there
    text = "".join(err.args) if pieces and isinstance(err, TypeError) else str(err)
    if isinstance(err, KeyError):
        return COLUMN_NOT_FOUND, clean(str(err.args[0]) if err.args else text)
    for pattern, code in _KINDS:
        if pattern.search(text):
            return code, clean(text) if pattern is not _PANIC else "the Lance library has not implemented what is asked"
    if isinstance(err, OverflowError):
        return INVALID, f"a number is out of range: {clean(text)}"
    if isinstance(err, (ValueError, TypeError, NotImplementedError)):
        return INVALID, clean(text)
    return INTERNAL, clean(text)
