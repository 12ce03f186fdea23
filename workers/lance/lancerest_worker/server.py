"""A worker's front: one thread a connection.

`POST /<Operation>` performs one operation. `GET /status` tells what the supervisor wants to know: the memory that is used, and
which requests are at work although whoever asked has hung up.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import socket
import socketserver
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from .errors import INTERNAL, INVALID, RefusedError, translate
from .operations import OPERATIONS
from .request import AbandonedError, Request
from .tables import Tables
from .wire import Body, Chunks, Head, HeadError, answer_head, read_head

HEAD_HEADER = "lancerest-head"
ARROW_FILE = "application/vnd.apache.arrow.file"
_HEAD_MAX = 64 << 20
# Answers up to this many bytes of rows are sent whole.
_SMALL = 1 << 20
_BUFFER = 64 << 10
_LINGER_SECONDS = 2.0
_WATCH_SECONDS = 0.25


def memory() -> int:
    """Return the bytes of memory that this process has, 0 where that cannot be told."""
    try:
        with open("/proc/self/statm", "rb") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class Running:
    """The requests at work, and whether whoever asked still waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._all: dict[int, tuple[Request, socket.socket]] = {}

    def add(self, request: Request, connection: socket.socket) -> int:
        """Enter a request; forget takes it out again."""
        with self._lock:
            number = next(self._numbers)
            self._all[number] = (request, connection)
            return number

    def forget(self, number: int) -> None:
        with self._lock:
            del self._all[number]

    def watch(self) -> None:
        """Look for callers who hung up, for ever."""
        while True:
            time.sleep(_WATCH_SECONDS)
            with self._lock:
                for request, connection in self._all.values():
                    if not request.abandoned and _hung_up(connection):
                        request.abandoned_at = time.monotonic()

    def status(self) -> dict[str, Any]:
        """Return what `GET /status` answers. Times are in seconds."""
        now = time.monotonic()
        with self._lock:
            requests = [
                {
                    "operation": r.operation,
                    "seconds": now - r.began,
                    "abandoned": 0.0 if r.abandoned_at is None else now - r.abandoned_at,
                }
                for r, _ in self._all.values()
            ]
        return {"memory": memory(), "requests": requests}


def _hung_up(connection: socket.socket) -> bool:
    poll = select.poll()
    closed = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
    try:
        poll.register(connection, closed)
        return any(event & closed for _, event in poll.poll(0))
    except (OSError, ValueError):
        return True


class Handler(socketserver.StreamRequestHandler):
    """One connection of the server's."""

    rbufsize = _BUFFER
    wbufsize = _BUFFER
    server: Server

    def handle(self) -> None:
        """Serve requests until one of both sides closes the connection."""
        self._closing = False
        if self.connection.family != socket.AF_UNIX:
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        while not self._closing:
            try:
                head = read_head(self.rfile)
                if head is None:
                    return
                self._body = Body(self.rfile, head.length)
            except HeadError as err:
                self._body = Body(self.rfile, 0)
                self._closing = True
                self._answer(400, {"code": INTERNAL, "error": f"the request cannot be read: {err}"})
                return
            self._closing = head.headers.get("connection", "").lower() == "close"
            if head.method == "POST":
                self._post(head)
            elif (head.method, head.path) == ("GET", "/status"):
                self._answer(200, self.server.running.status())
            else:
                self._closing = True
                self._answer(404, {"code": INVALID, "error": f"nothing is at {head.method} {head.path}"})

    def _post(self, head: Head) -> None:
        if not self.server.admits(head.headers.get("authorization")):
            self._closing = True
            self._answer(401, {"code": INTERNAL, "error": "the server and its worker have different secrets"})
            self._settle(self._body)
            return
        try:
            request = self._request(head, self._body)
        except Exception as err:
            traceback.print_exc()
            self._closing = True
            self._answer(400, {"code": INTERNAL, "error": f"the request cannot be read: {err}"})
            return
        number = self.server.running.add(request, self.connection)
        try:
            self._perform(request)
        finally:
            self.server.running.forget(number)
        self._settle(self._body)

    def _request(self, head: Head, body: Body) -> Request:
        length = int(head.headers[HEAD_HEADER])
        if not 0 < length <= _HEAD_MAX:
            raise ValueError(f"a head of {length} bytes")
        text = bytearray()
        while len(text) < length:
            piece = body.read(length - len(text))
            if not piece:
                raise ValueError("the head is cut off")
            text += piece
        return Request(self.server.tables, json.loads(text), body)

    def _perform(self, request: Request) -> None:
        perform = OPERATIONS.get(request.operation)
        try:
            if perform is None:
                raise RefusedError(0, f"{request.operation} is not offered by this worker")
            answer = perform(request)
            if isinstance(answer, pa.RecordBatchReader):
                self._rows(request, answer)
            else:
                self._answer(200, answer)
        except (AbandonedError, BrokenPipeError, ConnectionResetError):
            self._closing = True
        except BaseException as err:
            self._fail(request, request.failure(err))

    def _fail(self, request: Request, err: BaseException) -> None:
        code, text = translate(err)
        if code == INTERNAL:
            print(f"{request.operation} failed", file=sys.stderr)
            traceback.print_exception(err)
        try:
            self._answer(400, {"code": code, "error": text})
        except OSError:
            self._closing = True

    def _answer(self, status: int, answer: Any) -> None:
        self._send(status, "application/json", json.dumps(answer).encode())

    def _send(self, status: int, kind: str, body: Any) -> None:
        """Send an answer that is there as a whole, head and body at once."""
        head = answer_head(status, kind, len(body), self._closing or not self._body.ended)
        self.wfile.write(head)
        self.wfile.write(body)
        self.wfile.flush()

    def _rows(self, request: Request, rows: pa.RecordBatchReader) -> None:
        """Send rows as an Arrow IPC file: at once where they are few, while they are made otherwise.

        What fails before the first rows are there is still an error of its own.
        """
        first = next(rows, None)
        second = None if first is None else next(rows, None)
        if second is not None or (first is not None and first.nbytes > _SMALL):
            self._stream(request, rows.schema, itertools.chain((first,), () if second is None else (second,), rows))
            return
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, rows.schema) as file:
            if first is not None:
                file.write_batch(first)
        self._send(200, ARROW_FILE, sink.getvalue())

    def _stream(self, request: Request, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.wfile.write(answer_head(200, ARROW_FILE, None, self._closing))
        body = Chunks(self.wfile)
        try:
            with pa.ipc.new_file(pa.PythonFile(body, mode="w"), schema) as file:
                for batch in batches:
                    request.check_abandoned()
                    file.write_batch(batch)
            body.finish()
            self.wfile.flush()
        except (AbandonedError, BrokenPipeError, ConnectionResetError):
            raise
        except Exception:
            # The answer has begun: that it ends without its end is how the server sees that it is not whole.
            traceback.print_exc()
            raise AbandonedError from None

    def _settle(self, body: Body) -> None:
        """Leave the connection ready for the next request, or close it so that the answer arrives before the end does."""
        if body.ended and not self._closing:
            return
        self._closing = True
        try:
            self.wfile.flush()
            self.connection.settimeout(_LINGER_SECONDS)
            until = time.monotonic() + _LINGER_SECONDS
            while time.monotonic() < until and self.connection.recv(1 << 16):
                pass
        except OSError:
            pass


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Listens on a unix socket, or on HOST:PORT."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, address: str, tables: Tables, secret: str) -> None:
        """Listen. A secret, if there is one, must come with every request as a bearer token."""
        host, colon, port = address.rpartition(":")
        unix = address.startswith("/") or not colon
        self.address_family = socket.AF_UNIX if unix else socket.AF_INET
        self.tables = tables
        self.running = Running()
        self._secret = secret
        super().__init__(address if unix else (host, int(port)), Handler)  # type: ignore[arg-type]
        threading.Thread(target=self.running.watch, daemon=True).start()

    def admits(self, authorization: str | None) -> bool:
        """Tell whether a request may be served."""
        return not self._secret or authorization == f"Bearer {self._secret}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that ended: the other side knows."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
