"""How requests and answers travel: HTTP/1.1, read and written by hand.

A request's body is its head, JSON of `Lancerest-Head` bytes, and after that, for the operations that take rows, an Arrow IPC
stream. Only what the server sends is understood: the standard library's reader takes as long for a request's headers as a small
query takes in all (docs/performance.md).
"""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa

from .errors import BrokenStreamError

_LINE_MAX = 64 << 10
_END = b"\r\n\r\n"
_BUFFER = 64 << 10
_DISCARDED = 1 << 20
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}


class HeadError(ValueError):
    """What came is not the head of an HTTP/1.1 request."""


class Head:
    """The first line of a request and its headers, whose names are in lower case."""

    def __init__(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.method = method
        self.path = path
        self.headers = headers

    @property
    def length(self) -> int | None:
        """The body's length, None where it comes in chunks. A length that is no number raises HeadError."""
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            return None
        given = self.headers.get("content-length", "0")
        if not given.isdecimal():
            raise HeadError(f"a body of {given!r} bytes")
        return int(given)


def read_head(source: Any) -> Head | None:
    """Read the head of the next request, None where the connection ends before it. What is no head raises HeadError."""
    seen = source.peek()
    if not seen:
        return None
    end = seen.find(_END)
    text = source.read(end + len(_END)) if end >= 0 else _in_pieces(source)
    first, _, rest = text.partition(b"\r\n")
    parts = first.split()
    if len(parts) != 3 or parts[2] != b"HTTP/1.1":
        raise HeadError(f"the request line {first[:100]!r}")
    headers: dict[str, str] = {}
    for line in rest[: -len(_END)].decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(":")
        if line and not colon:
            raise HeadError(f"the header {line[:100]!r}")
        headers[name.lower()] = value.strip()
    return Head(parts[0].decode("latin-1"), parts[1].decode("latin-1"), headers)


def _in_pieces(source: Any) -> bytes:
    """Read a head that has not come at once."""
    text = b""
    while not text.endswith(_END):
        line = source.readline(_LINE_MAX)
        text += line
        if not line or len(text) > _LINE_MAX:
            raise HeadError(f"{len(text)} bytes without the empty line that ends a head")
    return text


def answer_head(status: int, kind: str, length: int | None, close: bool) -> bytes:
    """Return the head of an answer, whose body has that length, or comes in chunks where it is None."""
    body = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    end = "Connection: close\r\n" if close else ""
    return f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n{body}\r\n{end}\r\n".encode("latin-1")


class Body(io.RawIOBase):
    """A request's body as a stream that tells a whole one from one that was cut off: the latter raises BrokenStreamError."""

    def __init__(self, source: Any, length: int | None) -> None:
        """Read `length` bytes of the source, or chunks where it is None."""
        self._source = source
        self._chunked = length is None
        self._left = length or 0
        self._ended = length == 0
        self.broken = False

    @property
    def ended(self) -> bool:
        """Whether the body was read to its end."""
        return self._ended

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        if self._ended:
            return 0
        if self._chunked and self._left == 0 and not self._next_chunk():
            return 0
        view = memoryview(into)[: min(len(into), self._left)]
        n = self._source.readinto(view)
        if not n:
            self._break()
        self._left -= n
        if self._left == 0:
            if self._chunked:
                self._expect_line()
            else:
                self._ended = True
        return int(n)

    def _next_chunk(self) -> bool:
        line = self._source.readline(_LINE_MAX)
        try:
            self._left = int(line.split(b";", 1)[0], 16)
        except ValueError:
            self._break()
        if self._left == 0:
            while (line := self._source.readline(_LINE_MAX)) not in (b"\r\n", b"\n"):  # trailers
                if not line:
                    self._break()
            self._ended = True
        return not self._ended

    def _expect_line(self) -> None:
        if self._source.readline(_LINE_MAX) != b"\r\n":
            self._break()

    def _break(self) -> None:
        self.broken = True
        raise BrokenStreamError("the stream of rows broke off before its end")

    def discard(self) -> None:
        """Read what is left, so that the connection can be used again."""
        piece = bytearray(_DISCARDED)
        while self.readinto(memoryview(piece)):
            pass


class Aligned:
    """A body as the Arrow library reads it: in small pieces, and in large ones that lie where it would otherwise copy them to."""

    closed = False

    def __init__(self, body: Body) -> None:
        self._source = io.BufferedReader(body, _BUFFER)

    def read(self, length: int) -> bytes:
        """Return so many bytes, fewer at the end."""
        return self._source.read(length)

    def read_buffer(self, length: int) -> pa.Buffer:
        """Return so many bytes, fewer at the end, at a multiple of 64."""
        buffer = pa.allocate_buffer(length)
        got = self._source.readinto(memoryview(buffer))
        return buffer if got == length else buffer.slice(0, got)

    def close(self) -> None:
        """Leave the body as it is."""


class Chunks(io.RawIOBase):
    """An answer's body, written as chunks. Closing it leaves it without its end; finish writes that."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: object) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        if view.nbytes:
            self._sink.write(b"%x\r\n" % view.nbytes)
            self._sink.write(view)
            self._sink.write(b"\r\n")
        self._written += view.nbytes
        return view.nbytes

    def finish(self) -> None:
        """Say that the answer is whole."""
        self._sink.write(b"0\r\n\r\n")
