"""Print the rows of a directory catalog's table, one JSON object a line. Usage: python -c PROGRAM DIRECTORY."""

import json
import sys

try:
    import lance
except ImportError as err:
    print(err, file=sys.stderr)
    sys.exit(3)

dataset = lance.dataset(sys.argv[1])
for batch in dataset.to_batches(columns=["object_id", "object_type", "location", "metadata"]):
    for row in batch.to_pylist():
        print(json.dumps(row))
