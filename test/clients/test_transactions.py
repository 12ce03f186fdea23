"""The Python package alone: what one transaction does, and what it does when another writer was first."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceOperation
from lance.fragment import write_fragments
from lance_namespace import DescribeTransactionRequest, DropTableRequest

import lancerest
from lake import DIMENSION, SCHEMA, Lake, ids, rows, vectors


def data_files(lake: Lake, name: str) -> set[str]:
    """Return the names of all data files that lie at a table's location, used or not."""
    return lake.files(name, "data")


def test_every_kind_of_change_to_many_tables_at_once(lake: Lake) -> None:
    for name in ("appended", "replaced", "thinned", "updated", "merged"):
        lake.write(name, rows(0, 3), mode="create")

    def change(tx: lancerest.Transaction) -> tuple[int, int, lancerest.MergeStats]:
        tx.append(lake.id("appended"), rows(3))
        tx.overwrite(lake.id("replaced"), pa.table({"id": [7], "other": [1.5]}))
        tx.create(lake.id("new"), rows(20, 2))
        merge = tx.merge_insert(lake.id("merged"), on="id").when_matched_update_all().when_not_matched_insert_all()
        return (
            tx.delete(lake.id("thinned"), "id >= 1"),
            tx.update(lake.id("updated"), {"text": "upper(text)"}, "id = 1"),
            merge.execute(rows(2, 2, text="merged")),
        )

    done = lake.catalog.transaction(change)
    deleted, updated, merged = done.value
    assert (deleted, updated) == (2, 1)
    assert merged == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 0}
    assert done.attempts == 1
    assert {table[-1]: version for (table, _), version in done.versions.items()} == {
        "appended": 2,
        "replaced": 2,
        "thinned": 2,
        "updated": 2,
        "merged": 2,
        "new": 1,
    }
    assert ids(lake.open("appended")) == [0, 1, 2, 3]
    assert lake.open("replaced").to_table().to_pylist() == [{"id": 7, "other": 1.5}]
    assert ids(lake.open("thinned")) == [0]
    assert sorted(lake.open("updated").to_table()["text"].to_pylist()) == ["ROW 1", "row 0", "row 2"]
    assert sorted(lake.open("merged").to_table()["text"].to_pylist()) == ["merged 2", "merged 3", "row 0", "row 1"]
    assert ids(lake.open("new")) == [20, 21]
    for name in ("appended", "replaced", "thinned", "updated", "merged", "new"):
        lake.open(name).validate()


def test_the_catalog_remembers_the_transaction(lake: Lake) -> None:
    lake.write("a", rows(0), mode="create")
    lake.write("b", rows(0), mode="create")
    done = lake.catalog.transaction(
        lambda tx: tx.append(lake.id("a"), rows(1)).append(lake.id("b"), rows(1)), context={"reason": "nightly load"}
    )
    assert done.transaction_id
    described = lake.client.describe_transaction(DescribeTransactionRequest(id=[done.transaction_id]))
    assert described.status.upper() == "SUCCEEDED"
    assert "nightly load" in str(described.properties)


def test_several_changes_of_a_table_are_published_together(lake: Lake) -> None:
    lake.write("t", rows(0, 2), mode="create")
    seen: list[list[int]] = []

    def change(tx: lancerest.Transaction) -> None:
        tx.append(lake.id("t"), rows(2))
        tx.append(lake.id("t"), rows(3))
        seen.append(ids(tx.dataset(lake.id("t"))))
        tx.delete(lake.id("t"), "id = 0")
        tx.update(lake.id("t"), {"id": "id + 10"})
        seen.append(ids(tx.dataset(lake.id("t"))))

    done = lake.catalog.transaction(change)
    assert seen == [[0, 1, 2, 3], [11, 12, 13]]
    assert ids(lake.open("t")) == [11, 12, 13]
    # Both appends are one version; the deletion and the update have their own.
    assert done.versions == {(tuple(lake.id("t")), ""): 4}
    assert [ids(lake.open("t", version=v)) for v in (2, 3)] == [[0, 1, 2, 3], [1, 2, 3]]


def test_a_writer_that_began_earlier_sees_every_change_of_a_transaction(lake: Lake) -> None:
    lake.write("t", rows(0, 4), mode="create")
    stale = lake.open("t")

    def change(tx: lancerest.Transaction) -> None:
        tx.delete(lake.id("t"), "id = 1")
        tx.append(lake.id("t"), rows(9))

    lake.catalog.transaction(change)
    stale.delete("id = 2")
    assert ids(lake.open("t")) == [0, 3, 9], "a row deleted by the transaction must not come back"


def test_nothing_is_published_before_the_end_or_after_an_error(lake: Lake) -> None:
    lake.write("a", rows(0), mode="create")
    lake.write("b", rows(0), mode="create")

    def change(tx: lancerest.Transaction) -> None:
        tx.append(lake.id("a"), rows(1))
        tx.delete(lake.id("b"), "id = 0")
        assert (ids(lake.open("a")), ids(lake.open("b"))) == ([0], [0])
        raise KeyError("changed my mind")

    with pytest.raises(KeyError, match="changed my mind"):
        lake.catalog.transaction(change)
    assert (lake.versions("a"), lake.versions("b")) == ([1], [1])


def test_a_transaction_without_writes_sends_nothing(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")

    def change(tx: lancerest.Transaction) -> list[int]:
        assert tx.delete(lake.id("t"), "id = 77") == 0
        assert tx.update(lake.id("t"), {"text": "'x'"}, "id = 77") == 0
        return ids(tx.dataset(lake.id("t")))

    done = lake.catalog.transaction(change)
    assert (done.value, done.transaction_id, done.versions) == ([0], None, {})
    assert lake.versions("t") == [1]


def test_appends_move_to_the_newer_version_without_rewriting_data(lake: Lake) -> None:
    lake.write("a", rows(0), mode="create")
    lake.write("b", rows(0), mode="create")
    runs: list[int] = []

    def change(tx: lancerest.Transaction) -> None:
        runs.append(1)
        tx.append(lake.id("a"), rows(1))
        tx.append(lake.id("b"), rows(1))
        lake.write("a", rows(100))  # somebody else is faster

    done = lake.catalog.transaction(change)
    assert (len(runs), done.attempts) == (1, 2)
    assert done.versions == {(tuple(lake.id("a")), ""): 3, (tuple(lake.id("b")), ""): 2}
    assert (ids(lake.open("a")), ids(lake.open("b"))) == ([0, 1, 100], [0, 1])
    assert (len(data_files(lake, "a")), len(data_files(lake, "b"))) == (3, 2)
    lake.open("a").validate()


def test_anything_else_runs_again_from_fresh_snapshots(lake: Lake) -> None:
    lake.write("a", rows(0), mode="create")
    lake.write("b", rows(0), mode="create")
    seen: list[list[int]] = []

    def change(tx: lancerest.Transaction) -> None:
        seen.append(ids(tx.dataset(lake.id("a"))))
        tx.update(lake.id("a"), {"id": "id + 1"})
        tx.append(lake.id("b"), rows(1))
        if len(seen) == 1:
            lake.write("a", rows(100))

    done = lake.catalog.transaction(change)
    assert (seen, done.attempts) == ([[0], [0, 100]], 2)
    assert (ids(lake.open("a")), ids(lake.open("b"))) == ([1, 101], [0, 1])
    assert lake.versions("b") == [1, 2]


def test_an_append_that_depends_on_what_was_read_runs_again(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    runs: list[int] = []

    def next_id(tx: lancerest.Transaction) -> int:
        runs.append(1)
        new = ids(tx.dataset(lake.id("t")))[-1] + 1
        tx.append(lake.id("t"), rows(new))
        if len(runs) == 1:
            lake.write("t", rows(1))
        return new

    assert lake.catalog.transaction(next_id).value == 2
    assert ids(lake.open("t")) == [0, 1, 2]


def test_an_append_runs_again_when_the_schema_changed(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    runs: list[int] = []

    def change(tx: lancerest.Transaction) -> None:
        runs.append(1)
        data = rows(1) if len(runs) == 1 else pa.table({"id": [1]})
        tx.append(lake.id("t"), data)
        if len(runs) == 1:
            lake.open("t").drop_columns(["text"])

    lake.catalog.transaction(change)
    assert len(runs) == 2
    assert lake.open("t").to_table().to_pydict() == {"id": [0, 1]}


def test_conflicts_are_bounded_and_named(lake: Lake) -> None:
    lake.write("busy", rows(0), mode="create")
    lake.write("calm", rows(0), mode="create")

    def change(tx: lancerest.Transaction) -> None:
        tx.delete(lake.id("busy"), "id = 0")
        tx.append(lake.id("calm"), rows(1))
        lake.write("busy", rows(0))

    with pytest.raises(lancerest.ConflictError, match="busy") as caught:
        lake.catalog.transaction(change, retries=2)
    assert caught.value.attempts == 3
    assert [(c.table, c.version) for c in caught.value.contended] == [(tuple(lake.id("busy")), 4)]
    assert (lake.versions("busy"), lake.versions("calm")) == ([1, 2, 3, 4], [1])


def test_write_skew_is_closed_by_expect_unchanged(lake: Lake) -> None:
    lake.write("rules", rows(0), mode="create")
    lake.write("facts", rows(0), mode="create")
    runs: list[list[int]] = []

    def change(tx: lancerest.Transaction) -> None:
        tx.expect_unchanged(lake.id("rules"))
        runs.append(ids(tx.dataset(lake.id("rules"))))
        tx.append(lake.id("facts"), rows(len(runs)))
        if len(runs) == 1:
            lake.write("rules", rows(1))

    lake.catalog.transaction(change)
    assert runs == [[0], [0, 1]]
    assert ids(lake.open("facts")) == [0, 2]
    assert ids(lake.open("rules")) == [0, 1]


def test_main_and_branches_move_together(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create").create_branch("exp/one")
    done = lake.catalog.transaction(
        lambda tx: (
            tx.append(lake.id("t"), rows(1))
            .append(lake.id("t"), rows(2), branch="exp/one")
            .update(lake.id("t"), {"text": "'branch'"}, "id = 0", branch="exp/one")
        )
    )
    assert done.versions == {(tuple(lake.id("t")), ""): 2, (tuple(lake.id("t")), "exp/one"): 3}
    assert ids(lake.open("t")) == [0, 1]
    branch = lake.catalog.open(lake.id("t"), branch="exp/one")
    assert ids(branch) == [0, 2]
    assert branch.to_table(filter="id = 0")["text"].to_pylist() == ["branch"]


def test_a_new_table_appears_with_the_rest(lake: Lake) -> None:
    lake.write("old", rows(0), mode="create")
    runs: list[int] = []

    def change(tx: lancerest.Transaction) -> None:
        runs.append(1)
        tx.create(lake.id("new"), rows(5))
        tx.append(lake.id("old"), rows(1))
        if len(runs) == 1:
            raise RuntimeError("fell over")

    with pytest.raises(RuntimeError, match="fell over"):
        lake.catalog.transaction(change)
    assert lake.versions("new") == [], "a failed transaction leaves at most a declared name"
    lake.catalog.transaction(change)
    assert (ids(lake.open("new")), ids(lake.open("old"))) == ([5], [0, 1])

    with pytest.raises(lancerest.RequestError) as caught:
        lake.catalog.transaction(lambda tx: tx.create(lake.id("new"), rows(6)))
    assert caught.value.code == 5
    lake.catalog.transaction(lambda tx: tx.create(lake.id("new"), rows(6), mode="overwrite"))
    assert (lake.versions("new"), ids(lake.open("new"))) == ([1, 2], [6])


def test_tables_without_a_version_are_appended_to_but_not_read(lake: Lake) -> None:
    lake.post(f"/v1/table/{lake.namespace}%24t/declare", {})
    with pytest.raises(LookupError, match="has no version yet"):
        lake.catalog.transaction(lambda tx: tx.dataset(lake.id("t")))
    lake.catalog.transaction(lambda tx: tx.append(lake.id("t"), rows(0)))
    assert ids(lake.open("t")) == [0]


def test_what_is_missing_is_said(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    for code, branch, table in ((4, None, "nowhere"), (22, "nowhere", "t")):
        with pytest.raises(lancerest.RequestError) as caught:
            lake.catalog.transaction(lambda tx, t=table, b=branch: tx.append(lake.id(t), rows(0), branch=b))  # type: ignore[misc]
        assert caught.value.code == code
    with pytest.raises(lancerest.RequestError) as caught:
        lake.catalog.transaction(lambda tx: tx.create(["no such namespace", "t"], rows(0)))
    assert caught.value.code == 1
    with pytest.raises(ValueError, match="empty part"):
        lake.catalog.transaction(lambda tx: tx.append("a$$b", rows(0)))
    with pytest.raises(ValueError, match=r"cannot update \['nowhere'\]"):
        lake.catalog.transaction(lambda tx: tx.update(lake.id("t"), {"nowhere": "1"}))


def test_updates_keep_types(lake: Lake) -> None:
    lake.write("t", vectors(5), mode="create")
    literal = "[" + ", ".join(["0.5"] * DIMENSION) + "]"
    done = lake.catalog.transaction(lambda tx: tx.update(lake.id("t"), {"vector": literal}, "id = 3"))
    assert done.value == 1
    table = lake.open("t").to_table(filter="id = 3")
    assert table.schema == vectors(1).schema
    assert np.allclose(table["vector"].to_pylist()[0], 0.5)


def test_stable_row_ids_stay(lake: Lake) -> None:
    def row_ids() -> dict[str, int]:
        table = lake.open("t").to_table(columns=["text"], with_row_id=True)
        return dict(zip(table["text"].to_pylist(), table["_rowid"].to_pylist(), strict=True))

    lake.write("t", rows(0, 5), mode="create", enable_stable_row_ids=True, max_rows_per_file=2)
    before = row_ids()

    def change(tx: lancerest.Transaction) -> None:
        tx.append(lake.id("t"), rows(5, 2))
        tx.update(lake.id("t"), {"id": "id + 100"}, "id IN (1, 2, 5)")
        tx.delete(lake.id("t"), "id = 3")

    lake.catalog.transaction(change)
    after = row_ids()
    assert ids(lake.open("t")) == [0, 4, 6, 101, 102, 105]
    assert {text: after[text] for text in before if text != "row 3"} == {t: i for t, i in before.items() if t != "row 3"}
    assert len(set(after.values())) == 6
    lake.open("t").validate()


def test_any_lance_operation(lake: Lake) -> None:
    lake.write("t", rows(0, 2), mode="create")
    lake.write("u", rows(0), mode="create")

    def change(tx: lancerest.Transaction) -> None:
        current = tx.dataset(lake.id("t"))
        fragments = write_fragments(rows(8), current)
        tx.operation(lake.id("t"), LanceOperation.Append(fragments))
        tx.operation(lake.id("u"), LanceOperation.Overwrite(SCHEMA, []))

    lake.catalog.transaction(change)
    assert (ids(lake.open("t")), ids(lake.open("u"))) == ([0, 1, 8], [])


def test_v1_manifest_names_are_refused_by_lance(lake: Lake) -> None:
    dataset = lake.write("t", rows(0), mode="create", enable_v2_manifest_paths=False)
    with pytest.raises(OSError, match="v1 manifest paths"):
        lake.catalog.transaction(lambda tx: tx.append(lake.id("t"), rows(1)))
    assert lake.versions("t") == [1]

    # The names can be changed; then it works.
    dataset.migrate_manifest_paths_v2()
    lake.catalog.transaction(lambda tx: tx.append(lake.id("t"), rows(1)))
    assert ids(lake.open("t")) == [0, 1]


def test_indices_stay_right(lake: Lake) -> None:
    lake.write("t", rows(0, 100), mode="create").create_scalar_index("id", "BTREE")

    def change(tx: lancerest.Transaction) -> None:
        tx.append(lake.id("t"), rows(100, 10))
        tx.update(lake.id("t"), {"id": "id + 1000"}, "id < 5")
        tx.delete(lake.id("t"), "id = 50")

    lake.catalog.transaction(change)
    opened = lake.open("t")
    assert "ScalarIndexQuery" in opened.scanner(filter="id = 7").explain_plan()
    for wanted, count in ((3, 0), (1003, 1), (50, 0), (105, 1), (51, 1)):
        assert opened.count_rows(f"id = {wanted}") == count


def test_a_hundred_tables_in_one_batch(lake: Lake) -> None:
    names = [f"t{i:03}" for i in range(100)]
    lake.catalog.transaction(lambda tx: [tx.create(lake.id(n), rows(0)) for n in names])
    done = lake.catalog.transaction(lambda tx: [tx.append(lake.id(n), rows(1)) for n in names])
    assert set(done.versions.values()) == {2}
    assert len(done.versions) == 100
    assert all(ids(lake.open(n)) == [0, 1] for n in names[::17])


def test_open_create_and_latest(lake: Lake) -> None:
    made = lake.catalog.create(lake.id("t"), SCHEMA)
    assert (made.version, made.count_rows(), lake.catalog.latest(lake.id("t"))) == (1, 0, 1)
    lake.catalog.transaction(lambda tx: tx.append(f"{lake.namespace}$t", rows(1)))
    made.tags.create("two", 2)
    assert ids(lake.catalog.open(lake.id("t"))) == [1]
    assert ids(lake.catalog.open(lake.id("t"), version=1)) == []
    assert ids(lake.catalog.open(lake.id("t"), version="two")) == [1]
    assert isinstance(lake.catalog.snapshot([lake.id("t")])[0], lance.LanceDataset)


def test_a_table_that_was_replaced_while_a_transaction_ran_is_not_touched(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    runs: list[int] = []

    def change(tx: lancerest.Transaction) -> None:
        runs.append(1)
        tx.append(lake.id("t"), rows(1))
        if len(runs) == 1:
            lake.client.drop_table(DropTableRequest(id=lake.id("t")))
            lake.write("t", rows(50), mode="create")

    with pytest.raises(lancerest.LancerestError):
        lake.catalog.transaction(change)
    assert (lake.versions("t"), ids(lake.open("t"))) == ([1], [50])


@pytest.mark.parametrize("mode", ["append", "Create", "exist_ok"])
def test_an_unknown_mode_changes_nothing(lake: Lake, mode: str) -> None:
    lake.write("kept", rows(0, 3), mode="create")
    with pytest.raises(ValueError, match=mode):
        lake.catalog.transaction(lambda tx: tx.create(lake.id("kept"), rows(9), mode=mode))  # type: ignore[arg-type]
    assert lake.catalog.open(lake.id("kept")).count_rows() == 3
