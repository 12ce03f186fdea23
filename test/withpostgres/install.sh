#!/bin/sh
# Makes sure that the PostgreSQL server that the tests start is installed: with apt-get where that is possible, otherwise it says what
# to do. It does not start a server.
set -eu

installed() {
    for initdb in /usr/lib/postgresql/*/bin/initdb "$(command -v initdb || true)"; do
        [ -x "$initdb" ] || continue
        major=$("$initdb" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
        [ "$major" -lt 15 ] || return 0
    done
    return 1
}

installed && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing PostgreSQL, whose server the tests start."
    # Debian's package makes and starts a cluster of its own unless it is told not to.
    mkdir -p /etc/postgresql-common/createcluster.d
    echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/lancerest-tests.conf
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null
    installed && exit 0
fi
echo "The tests need the server of PostgreSQL 15 or newer: install it, on Debian and Ubuntu with: apt-get install postgresql" >&2
exit 1
