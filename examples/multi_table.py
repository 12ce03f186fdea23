"""Handwritten digits in three tables that must move together, filled and corrected by several writers at once.

Usage: python examples/multi_table.py [URL]        (needs a running server, lancerest and scikit-learn)
"""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_digits

import lancerest

WRITERS, BATCH = 4, 100
IMAGES, LABELS, SPLIT = TABLES = ["digits_images", "digits_labels", "digits_split"]
catalog = lancerest.connect(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:2333")
pixels, digits = load_digits(return_X_y=True)


def rows(ids: np.ndarray, edit: int, brightest: int = 16) -> dict[str, pa.Table]:
    """The rows of some digits for each table. `edit` counts the corrections of a digit and must agree across all three."""
    images = pa.FixedSizeListArray.from_arrays(pa.array((pixels[ids] * brightest / 16).ravel(), pa.float32()), 64)
    columns = {IMAGES: images, LABELS: pa.array(digits[ids]), SPLIT: pa.array(["train"] * len(ids), pa.string())}
    return {t: pa.table({"id": ids, "edit": np.full(len(ids), edit), t[7:]: values}) for t, values in columns.items()}


def fill(tx: lancerest.Transaction, ids: np.ndarray) -> None:
    for table, data in rows(ids, edit=0).items():
        tx.append(table, data)


def correct(tx: lancerest.Transaction, ids: np.ndarray) -> None:
    these = f"id BETWEEN {ids[0]} AND {ids[-1]}"
    tx.merge_insert(IMAGES, on="id").when_matched_update_all().execute(rows(ids, edit=1, brightest=1)[IMAGES])  # to 0..1
    tx.update(LABELS, {"edit": "edit + 1"}, where=these)
    tx.update(SPLIT, {"edit": "edit + 1"}, where=these)
    tx.update(SPLIT, {"split": "'test'"}, where=f"{these} AND id % 5 = 0")


def look() -> int:
    """Open all three tables as of one moment and compare them digit by digit; return how many digits they hold."""
    states = [t.to_table(columns=["id", "edit"]).sort_by("id").combine_chunks() for t in catalog.snapshot(TABLES)]
    if not all(state.equals(states[0]) for state in states):
        sys.exit("The three tables are out of step.")
    return len(states[0])


def work(change: Callable[[lancerest.Transaction, np.ndarray], None], ids: np.ndarray) -> int:
    return catalog.transaction(lambda tx: change(tx, ids), retries=200).attempts


empty = rows(np.arange(0), edit=0)
catalog.transaction(lambda tx: [tx.create(table, data, mode="overwrite") for table, data in empty.items()])
print(f"Three empty tables stand at {catalog.uri}: {', '.join(TABLES)}.")
batches, looks = np.split(np.arange(len(digits)), range(BATCH, len(digits), BATCH)), 0
with ThreadPoolExecutor(WRITERS) as writers:
    for change, did in ((fill, "filled"), (correct, "corrected")):
        jobs = [writers.submit(work, change, ids) for ids in batches]
        while not all(job.done() for job in jobs):
            looks += look() >= 0
        tries = sum(job.result() for job in jobs)
        print(f"{WRITERS} writers {did} them in {len(jobs)} transactions of three tables each, in {tries} tries.")
print(f"A reader looked {looks} times meanwhile and never saw the three out of step.")
parts = catalog.open(SPLIT).to_table(columns=["split"])["split"].value_counts().to_pylist()
print(f"They hold {look():,} digits now: " + ", ".join(f"{p['counts']:,} to {p['values']}" for p in parts) + ".")
