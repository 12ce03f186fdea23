"""A worker of Lancerest's engine: data operations on Lance tables, by the official library.

A worker is a client of the catalog. It opens tables and commits versions through the catalog's operations, with the identity of
whoever asked, so that there is no second way in. It serves one server, over HTTP/1.1 on a unix socket (see `server`).

What does not live here: names, versions, permissions. The catalog has said where a table is before a worker is asked.
"""

import os

# Lance says of each backfill's commit that its kind is not stable yet, which decision 24 knows.
os.environ.setdefault("LANCE_LOG", "warn,lance_table::transaction::manifest_build=error")
