"""What `make quickstart` does: serve on the defaults, run multi_table.py against the server, and keep serving until Ctrl-C.

Usage: python examples/quickstart.py BINARY        (needs what multi_table.py needs)
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

EXAMPLE = Path(__file__).with_name("multi_table.py")
STARTED = re.compile(r"listening on (http://\S+); tables live under (.+)\nconnect from Python: .+\n")
STOP_SECONDS = 60


def main(binary: str) -> None:
    server = subprocess.Popen(
        [binary, "serve", "--log-level", "warn"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        url, tables = await_ready(server)
        print(f"The server runs at {url}. Now {EXAMPLE.name} runs against it:\n", flush=True)
        quiet = {"LANCE_LOG": "error", **os.environ}  # Lance warns of every table that is new
        subprocess.run([sys.executable, str(EXAMPLE), url], check=True, env=quiet)
        print(summary(url, tables), flush=True)
        if server.wait() != 0:
            sys.exit("The server ended by itself; its last words stand above.")
    except subprocess.CalledProcessError as failed:
        sys.exit(f"{EXAMPLE.name} ended with exit code {failed.returncode}; its words stand above.")
    except KeyboardInterrupt:
        print("\nStopping the server.", flush=True)
    finally:
        stop(server)


def await_ready(server: subprocess.Popen[str]) -> tuple[str, str]:
    """Return the server's address and where its tables live, as soon as it says so."""
    assert server.stdout is not None
    said = ""
    for line in server.stdout:
        said += line
        started = STARTED.search(said)
        if started:
            threading.Thread(target=show, args=(server,), daemon=True).start()
            return started[1], started[2]
    explain(said)


def show(server: subprocess.Popen[str]) -> None:
    """Pass on what the server says from here on."""
    assert server.stdout is not None
    for line in server.stdout:
        print("server:", line, end="", flush=True)


def explain(said: str) -> NoReturn:
    """End with the reason why the server did not start."""
    if "address already in use" in said:
        listen = os.environ.get("LANCEREST_LISTEN", "127.0.0.1:2333")
        sys.exit(
            f"The address {listen} is taken: another program, perhaps another Lancerest, listens there.\n"
            "End it, or choose another port: LANCEREST_LISTEN=127.0.0.1:2334 make quickstart"
        )
    if "is held by process" in said:
        sys.exit(
            f"A server already runs on this folder's catalog:\n{said}"
            "End it, or choose another folder and port: LANCEREST_DATA=other LANCEREST_LISTEN=127.0.0.1:2334 make quickstart"
        )
    sys.exit(f"The server did not start. It said:\n{said}")


def summary(url: str, tables: str) -> str:
    """What happened and what to do next, in plain words."""
    return f"""
What happened: three Lance tables were filled and then corrected by four writers at once. Every change touched all three
tables and was one commit: all three got their new version, or none did. Where two writers met, one of them tried again.
A reader compared the three tables all the while and never found one of them ahead of the others.

The files are ordinary Lance tables under {tables}
From Python: lancedb.connect_namespace("rest", {{"uri": "{url}"}}).open_table("digits_labels")

The server keeps running at {url}. Ctrl-C ends it; the tables stay until `make quickstart`
is run again, which fills them anew."""


def stop(server: subprocess.Popen[str]) -> None:
    """End the server: gently, so that commits under way end first, then by force."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


if __name__ == "__main__":
    for other_end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(other_end, signal.default_int_handler)
    main(sys.argv[1])
