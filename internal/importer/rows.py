"""Print the rows of a directory catalog's table, one JSON object a line, and how many there were. Usage: python -c PROGRAM DIRECTORY."""

import json
import sys

try:
    import lance
except ImportError as err:
    print(err, file=sys.stderr)
    sys.exit(3)

count = 0
dataset = lance.dataset(sys.argv[1])
for batch in dataset.to_batches(columns=["object_id", "object_type", "location", "metadata"]):
    for row in batch.to_pylist():
        print(json.dumps(row))
        count += 1
# Without this line the output is not whole: whatever ran may have been no Python at all.
print(json.dumps({"rows": count}))
