"""Start the reference server that ships in pylance on a free loopback port.

Usage: python reference.py ROOT

Prints one line, the base URL, and serves the directory catalog at ROOT until standard input ends, so that it
never outlives the test that started it.
"""

import sys

import lance.namespace


def main() -> None:
    root = sys.argv[1]
    properties = {"root": root, "manifest_enabled": "true", "table_version_tracking_enabled": "true"}
    with lance.namespace.RestAdapter("dir", properties, host="127.0.0.1", port=0) as adapter:
        print(f"http://127.0.0.1:{adapter.port}", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
