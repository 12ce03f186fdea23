"""A worker's front: HTTP/1.1, one thread a connection.

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
from http.server import BaseHTTPRequestHandler
from typing import Any

import pyarrow as pa

from .errors import INTERNAL, INVALID, RefusedError, translate
from .operations import OPERATIONS
from .request import AbandonedError, Request
from .tables import Tables
from .wire import Body, Chunks

HEAD_HEADER = "Lancerest-Head"
ARROW_FILE = "application/vnd.apache.arrow.file"
_HEAD_MAX = 64 << 20
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


class Handler(BaseHTTPRequestHandler):
    """One connection of the server's."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 18
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the server logs its requests."""

    def address_string(self) -> str:
        return "server"

    def do_GET(self) -> None:
        self._body = Body(self.rfile, 0)
        if self.path == "/status":
            self._answer(200, self.server.running.status())
        else:
            self._answer(404, {"code": INVALID, "error": f"nothing is at {self.path}"})

    def do_POST(self) -> None:
        chunked = "chunked" in (self.headers.get("Transfer-Encoding") or "").lower()
        self._body = Body(self.rfile, None if chunked else int(self.headers.get("Content-Length") or 0))
        if not self.server.admits(self.headers.get("Authorization")):
            self.close_connection = True
            self._answer(401, {"code": INTERNAL, "error": "the server and its worker have different secrets"})
            return
        try:
            request = self._request(self._body)
        except Exception as err:
            traceback.print_exc()
            self.close_connection = True
            self._answer(400, {"code": INTERNAL, "error": f"the request cannot be read: {err}"})
            return
        number = self.server.running.add(request, self.connection)
        try:
            self._perform(request)
        finally:
            self.server.running.forget(number)
        self._settle(self._body)

    def _request(self, body: Body) -> Request:
        length = int(self.headers[HEAD_HEADER])
        if not 0 < length <= _HEAD_MAX:
            raise ValueError(f"a head of {length} bytes")
        head = bytearray()
        while len(head) < length:
            piece = body.read(length - len(head))
            if not piece:
                raise ValueError("the head is cut off")
            head += piece
        return Request(self.server.tables, json.loads(head), body)

    def _perform(self, request: Request) -> None:
        perform = OPERATIONS.get(request.operation)
        try:
            if perform is None:
                raise RefusedError(0, f"{request.operation} is not offered by this worker")
            answer = perform(request)
            if isinstance(answer, pa.RecordBatchReader):
                self._stream(request, answer)
            else:
                self._answer(200, answer)
        except (AbandonedError, BrokenPipeError, ConnectionResetError):
            self.close_connection = True
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
            self.close_connection = True

    def _answer(self, status: int, answer: Any) -> None:
        text = json.dumps(answer).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        if self.close_connection or not self._body.ended:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)
        self.wfile.flush()

    def _stream(self, request: Request, rows: pa.RecordBatchReader) -> None:
        """Send rows as an Arrow IPC file while they are made. What fails before the first is still an error of its own."""
        first = next(rows, None)
        self.send_response_only(200)
        self.send_header("Content-Type", ARROW_FILE)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        body = Chunks(self.wfile)
        try:
            with pa.ipc.new_file(pa.PythonFile(body, mode="w"), rows.schema) as file:
                while first is not None:
                    request.check_abandoned()
                    file.write_batch(first)
                    first = next(rows, None)
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
        if body.ended and not self.close_connection:
            return
        self.close_connection = True
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
