"""Run a worker: python -m lancerest_worker --listen ADDRESS."""

from __future__ import annotations

import argparse
import os
import sys
import threading

from .server import Server
from .tables import Tables


def main() -> None:
    """Serve until the standard input ends, which it does when the server is gone, or for ever with --stay."""
    parser = argparse.ArgumentParser(prog="lancerest_worker", description=__doc__)
    parser.add_argument("--listen", required=True, help="path of a unix socket, or HOST:PORT")
    parser.add_argument("--index-cache", type=int, default=1 << 30, help="bytes for indices (default 1 GiB)")
    parser.add_argument("--metadata-cache", type=int, default=256 << 20, help="bytes for metadata (default 256 MiB)")
    parser.add_argument("--stay", action="store_true", help="do not end with the standard input")
    args = parser.parse_args()
    server = Server(args.listen, Tables(args.index_cache, args.metadata_cache), os.environ.get("LANCEREST_WORKER_SECRET", ""))
    print("ready", flush=True)
    if args.stay:
        server.serve_forever()
        return
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while sys.stdin.buffer.read(1 << 10):
        pass
    os._exit(0)  # threads may be inside the library, which knows no way to stop them


if __name__ == "__main__":
    main()
