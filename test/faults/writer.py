"""A client that the fault suite starts and kills: it appends the same row to two tables in one transaction, again and again.

writer.py create URL        make the two tables
writer.py write URL SEED    write until standard input ends; print each number once it is acknowledged
writer.py read URL          print the numbers in both tables, as two lists of JSON
"""

from __future__ import annotations

import json
import sys
import threading

import pyarrow as pa

import lancerest

TABLES = ("left", "right")
SCHEMA = pa.schema([("n", pa.int64())])
MAX_WRITES = 1_000_000  # numbers of two writers never meet


def create(catalog: lancerest.Catalog) -> None:
    """Make both tables, empty."""
    for name in TABLES:
        catalog.create(name, SCHEMA)


def write(catalog: lancerest.Catalog, seed: int) -> None:
    """Append numbers that nobody else appends."""
    stop = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    for n in range(seed * MAX_WRITES, (seed + 1) * MAX_WRITES):
        if stop.is_set():
            return
        row = pa.table({"n": [n]}, schema=SCHEMA)

        def append(tx: lancerest.Transaction, row: pa.Table = row) -> None:
            for name in TABLES:
                tx.append(name, row)

        try:
            catalog.transaction(append)
        except (lancerest.LancerestError, OSError, RuntimeError) as error:  # servers and databases are being killed
            print(f"not acknowledged: {n}: {error}", file=sys.stderr, flush=True)
            continue
        print(n, flush=True)


def read(catalog: lancerest.Catalog) -> None:
    """Print what is there."""
    for table in catalog.snapshot(TABLES):
        print(json.dumps(sorted(table.to_table().column("n").to_pylist())))


def main() -> None:
    """Do what the arguments say."""
    job, url, *rest = sys.argv[1:]
    catalog = lancerest.connect(url)
    if job == "create":
        create(catalog)
    elif job == "write":
        write(catalog, int(rest[0]))
    else:
        read(catalog)


if __name__ == "__main__":
    main()
