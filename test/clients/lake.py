"""Short ways to say what the tests do with pylance on a managed table, and to check what every table must satisfy."""

from __future__ import annotations

import json
import os
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.fs
from lance_namespace import DescribeTableRequest, LanceNamespace, ListTableVersionsRequest

import lancerest

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
DIMENSION = 16


def rows(first: int, count: int = 1, text: str = "row") -> pa.Table:
    """Return rows with the ids first, first+1 and so on."""
    ids = range(first, first + count)
    return pa.table({"id": list(ids), "text": [f"{text} {i}" for i in ids]}, schema=SCHEMA)


def vectors(count: int) -> pa.Table:
    """Return rows with an id and a random vector, the same ones every time."""
    values = np.random.default_rng(7).random((count, DIMENSION), dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSION)
    return pa.table({"id": pa.array(range(count), pa.int64()), "vector": column})


def ids(dataset: lance.LanceDataset) -> list[int]:
    """Return the ids in the table, sorted."""
    return sorted(dataset.to_table(columns=["id"]).column("id").to_pylist())


class Lake:
    """One namespace of its own on the server under test."""

    def __init__(self, url: str, namespace: str) -> None:
        self.url = url
        self.namespace = namespace
        self.catalog = lancerest.connect(url)

    @property
    def client(self) -> LanceNamespace:
        """pylance's client of the catalog."""
        return self.catalog.namespace_client

    def id(self, name: str) -> list[str]:
        """Return the full id of a table of this namespace."""
        return [self.namespace, name]

    def write(self, name: str, data: pa.Table, mode: str = "append", **options: Any) -> lance.LanceDataset:
        """Write as a pylance user does, through the catalog."""
        return lance.write_dataset(data, mode=mode, namespace_client=self.client, table_id=self.id(name), **options)

    def open(self, name: str, version: int | str | None = None) -> lance.LanceDataset:
        """Open as a pylance user does, through the catalog."""
        return lance.dataset(namespace_client=self.client, table_id=self.id(name), version=version)

    def location(self, name: str) -> str:
        """Return where the catalog says that the table lies."""
        location = self.client.describe_table(DescribeTableRequest(id=self.id(name))).location
        assert location
        return str(location)

    def files(self, name: str, folder: str) -> set[str]:
        """Return the names of the files in a folder of the table, also where that lies on S3."""
        where = urllib.parse.urlparse(self.location(name))
        if where.scheme == "s3":
            endpoint = urllib.parse.urlparse(os.environ["AWS_ENDPOINT_URL"])
            storage: pyarrow.fs.FileSystem = pyarrow.fs.S3FileSystem(endpoint_override=endpoint.netloc, scheme=endpoint.scheme)
        else:
            storage = pyarrow.fs.LocalFileSystem()
        path = f"{where.netloc}{urllib.parse.unquote(where.path)}/{folder}"
        return {info.base_name for info in storage.get_file_info(pyarrow.fs.FileSelector(path))}

    def versions(self, name: str, branch: str | None = None) -> list[int]:
        """Return the numbers that the catalog lists, oldest first."""
        answer = self.client.list_table_versions(ListTableVersionsRequest(id=self.id(name), branch=branch))
        return sorted(v.version for v in answer.versions)

    def describe_version(self, name: str, version: int) -> dict[str, Any]:
        """Return what the catalog knows of one version. pylance takes and gives plain mappings here."""
        request: Any = {"id": self.id(name), "version": version}
        answer: Any = self.client.describe_table_version(request)
        described: dict[str, Any] = answer["version"]
        return described

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Send a request that pylance's client cannot make, and return (status, body)."""
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as err:
            return err.code, json.load(err)


def together(workers: Sequence[Callable[[], None]]) -> None:
    """Run all workers at once, each in a thread of its own, and raise the first error that any of them met."""
    barrier = threading.Barrier(len(workers))
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            barrier.wait(30)
            work()
        except BaseException as err:
            errors.append(err)

    threads = [threading.Thread(target=run, args=(work,)) for work in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
