"""How requests and answers travel: HTTP/1.1 bodies as streams.

A request's body is its head, JSON of `Lancerest-Head` bytes, and after that, for the operations that take rows, an Arrow IPC
stream.
"""

from __future__ import annotations

import io
from typing import Any

from .errors import BrokenStreamError

_LINE_MAX = 4096
_BUFFER = 1 << 20


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
            while self._source.readline(_LINE_MAX) not in (b"\r\n", b"\n"):  # trailers
                pass
            self._ended = True
        return not self._ended

    def _expect_line(self) -> None:
        if self._source.readline(_LINE_MAX) != b"\r\n":
            self._break()

    def _break(self) -> None:
        self.broken = True
        raise BrokenStreamError("the stream of rows broke off before its end")

    def buffered(self) -> io.BufferedReader:
        """Return this stream with a buffer, which libraries read from in small pieces."""
        return io.BufferedReader(self, _BUFFER)

    def discard(self) -> None:
        """Read what is left, so that the connection can be used again."""
        piece = bytearray(_BUFFER)
        while self.readinto(memoryview(piece)):
            pass


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
