"""Indices, compaction and cleanup: versions that clients make, and versions that they take away behind the catalog's back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from lance_namespace.errors import LanceNamespaceError

from lake import DIMENSION, Lake, ids, rows, vectors


def test_scalar_index(lake: Lake) -> None:
    dataset = lake.write("t", rows(0, 200), mode="create")
    dataset.create_scalar_index("id", "BTREE")
    assert lake.versions("t") == [1, 2]

    opened = lake.open("t")
    assert [index.name for index in opened.describe_indices()] == ["id_idx"]
    assert "ScalarIndexQuery" in opened.scanner(filter="id = 77").explain_plan()
    assert opened.to_table(filter="id = 77").column("id").to_pylist() == [77]

    # Rows that came after the index are found too.
    lake.write("t", rows(1000))
    assert lake.open("t").to_table(filter="id = 1000").num_rows == 1
    opened.checkout_latest()
    opened.optimize.optimize_indices()
    assert lake.open("t").stats.index_stats("id_idx")["num_unindexed_rows"] == 0


def test_vector_index(lake: Lake) -> None:
    data = vectors(300)
    dataset = lake.write("t", data, mode="create")
    dataset.create_index("vector", "IVF_FLAT", num_partitions=2, metric="l2")
    opened = lake.open("t")
    assert opened.describe_indices()[0].field_names == ["vector"]

    wanted = data.column("vector")[42].values.to_numpy()
    assert len(wanted) == DIMENSION
    found = opened.to_table(nearest={"column": "vector", "q": wanted, "k": 1, "nprobes": 2})
    assert found.column("id").to_pylist() == [42]


def test_compaction(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    for i in range(1, 5):
        lake.write("t", rows(i))
    dataset = lake.open("t")
    assert len(dataset.get_fragments()) == 5
    dataset.optimize.compact_files()

    compacted = lake.open("t")
    assert (len(compacted.get_fragments()), ids(compacted)) == (1, [0, 1, 2, 3, 4])
    assert lake.versions("t")[:5] == [1, 2, 3, 4, 5]
    assert compacted.version == lake.versions("t")[-1]


def test_versions_that_cleanup_removed_are_not_described(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    for i in range(1, 4):
        lake.write("t", rows(i))
    assert lake.describe_version("t", 2)["version"] == 2
    dataset = lake.open("t")
    dataset.tags.create("kept", 1)
    dataset.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)

    for gone in (2, 3):
        with pytest.raises(LanceNamespaceError, match=str(gone)):
            lake.describe_version("t", gone)
    assert lake.versions("t") == [1, 4], "a listing must not offer versions that are gone"
    assert ids(lake.open("t", version="kept")) == [0]

    # Their numbers are not given again.
    assert lake.write("t", rows(9)).version == 5
    assert ids(lake.open("t")) == [0, 1, 2, 3, 9]
