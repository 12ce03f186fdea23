"""The worker's own HTTP: what it makes of requests that the server would not send, and of those that break off."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

WORKER = Path(__file__).parents[2] / "workers" / "lance"
STATUS = b"GET /status HTTP/1.1\r\nHost: worker\r\n\r\n"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A worker by itself, with a secret. The path of a socket must be short."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/socket"
        command = [sys.executable, "-m", "lancerest_worker", "--listen", path]
        environment = {**os.environ, "PYTHONPATH": str(WORKER), "LANCEREST_WORKER_SECRET": "s"}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"ready\n"
            yield path
            worker.communicate()
        assert worker.returncode == 0


def exchange(address: str, *pieces: bytes) -> bytes:
    """Send bytes, say that no more come, and return all that is answered."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(address)
        for piece in pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
        return answer


def post(head: object, *, secret: str = "s", body: bytes = b"") -> bytes:
    """Write a request as the server does."""
    text = json.dumps(head).encode()
    lines = f"POST /X HTTP/1.1\r\nHost: w\r\nLancerest-Head: {len(text)}\r\nAuthorization: Bearer {secret}\r\n"
    return f"{lines}Content-Length: {len(text) + len(body)}\r\n\r\n".encode() + text + body


def chunked(text: bytes) -> bytes:
    """Write what precedes the chunks of a request whose head is that text."""
    lines = f"POST /X HTTP/1.1\r\nauthorization: Bearer s\r\nLANCEREST-HEAD: {len(text)}\r\n"
    return f"{lines}Transfer-Encoding: chunked\r\n\r\n".encode()


ANY = {"operation": "Nothing", "catalog": {"uri": "http://127.0.0.1:1"}, "table": {"id": ["t"], "location": "x"}}


def test_requests_on_one_connection(address: str) -> None:
    answer = exchange(address, STATUS * 2, post(ANY), STATUS)
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.count(b"HTTP/1.1 400 Bad Request") == 1
    assert b"Nothing is not offered by this worker" in answer


def test_a_head_in_pieces_and_in_chunks(address: str) -> None:
    text = json.dumps(ANY).encode()
    start = chunked(text)
    chunks = [b"%x;extension=1\r\n%s\r\n" % (len(piece), piece) for piece in (text[:7], text[7:])]
    answer = exchange(address, start[:9], start[9:], *chunks, b"0\r\nTrailer: x\r\n\r\n")
    assert b"Nothing is not offered by this worker" in answer


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET /status HTTP/1.0\r\n\r\n",
        b"GET /status HTTP/1.1\r\nno header\r\n\r\n",
        b"GET /status HTTP/1.1\r\n" + b"a" * 70_000,
        b"GET /status HTTP/1.1\r\nHost: cut o",
        b"POST /X HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST /X HTTP/1.1\r\nAuthorization: Bearer s\r\nContent-Length: 2\r\n\r\n{}",
        post(ANY)[:-3],
        post([]),
    ],
)
def test_what_is_no_request(address: str, sent: bytes) -> None:
    """It is refused, the connection ends, and others are served."""
    answer = exchange(address, sent)
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"Connection: close\r\n" in answer
    assert b"the request cannot be read" in answer
    assert exchange(address, STATUS).startswith(b"HTTP/1.1 200 OK\r\n")


def test_the_secret(address: str) -> None:
    assert exchange(address, post(ANY, secret="other")).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("end", [b"", b"5\r\nab", b"0\r\n", b"x\r\n"])
def test_a_body_that_breaks_off(address: str, end: bytes) -> None:
    text = json.dumps({**ANY, "operation": "InsertIntoTable"}).encode()
    answer = exchange(address, chunked(text), b"%x\r\n%s\r\n" % (len(text), text), end)
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"broke off before its end" in answer


def test_an_unknown_place(address: str) -> None:
    assert exchange(address, b"GET /else HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 404 Not Found\r\n")
