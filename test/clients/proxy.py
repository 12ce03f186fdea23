"""A proxy that loses, delays nothing and lies about nothing: it forwards requests, or answers, or neither, as told."""

from __future__ import annotations

import http.client
import http.server
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto


class Fate(Enum):
    """What becomes of one request."""

    PASS = auto()
    LOSE_REQUEST = auto()  # the connection ends before the server has seen anything
    LOSE_ANSWER = auto()  # the server does its work, and the connection ends
    HIDE_ANSWER = auto()  # the server does its work, and a gateway answers 504 with a page of its own
    REFUSE = auto()  # a busy server: 503 with code 17, nothing done


class Proxy:
    """Forwards to one server. `decide` is asked for the fate of each batch; everything else passes."""

    def __init__(self, url: str, port: int) -> None:
        self.target = url
        self.url = f"http://127.0.0.1:{port}"
        self.batches = 0
        self.decide: Callable[[int], Fate] = lambda _: Fate.PASS


@contextmanager
def proxy_to(url: str) -> Iterator[Proxy]:
    """Run a proxy before a server for as long as the block runs."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.daemon_threads = True
    proxy = Proxy(url, server.server_address[1])
    server.RequestHandlerClass = _handler(proxy)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(proxy: Proxy) -> type[http.server.BaseHTTPRequestHandler]:
    address = urllib.parse.urlsplit(proxy.target).netloc

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fate = Fate.PASS
            if "/version/batch-create" in self.path:
                proxy.batches += 1
                fate = proxy.decide(proxy.batches)
            if fate is Fate.LOSE_REQUEST:
                self.close_connection = True
            elif fate is Fate.REFUSE:
                self._answer(503, b'{"error": "stopping", "code": 17}', "application/json")
            else:
                self._forward(body, fate)

        do_GET = do_POST  # noqa: N815

        def _forward(self, body: bytes, fate: Fate) -> None:
            upstream = http.client.HTTPConnection(address, timeout=60)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "accept-encoding")}
            upstream.request(self.command, self.path, body, headers)
            answer = upstream.getresponse()
            content = answer.read()
            upstream.close()
            if fate is Fate.LOSE_ANSWER:
                self.close_connection = True
            elif fate is Fate.HIDE_ANSWER:
                self._answer(504, b"<html>gateway timeout</html>", "text/html")
            else:
                self._answer(answer.status, content, answer.headers.get("Content-Type", "application/json"))

        def _answer(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    return Handler
