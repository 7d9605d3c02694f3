#!/bin/sh
# Sees to a Postgres that is installed on this machine, of the version that is its one argument: Debian's, with apt-get
# where that may be used. Says what is needed and fails where there is none.
set -eu
version="$1"
programs="/usr/lib/postgresql/$version/bin"
log="${TMPDIR:-/tmp}/tailrace-setup-$(id -u).log"

fail() {
    printf 'postgres: %s\n' "$1" >&2
    printf '  hint: %s\n' "$2" >&2
    exit 2
}

for folder in "${TAILRACE_POSTGRES_BIN:-}" "$programs"; do
    case "$("$folder/postgres" --version 2>/dev/null)" in *"PostgreSQL) $version."*) exit 0 ;; esac
done
hint="install PostgreSQL $version, and name its folder of programs in TAILRACE_POSTGRES_BIN"
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "the tests need PostgreSQL $version on this machine" "$hint"
printf 'postgres: installing postgresql-%s with apt-get\n' "$version"
{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "postgresql-$version"; } \
    >"$log" 2>&1 || fail "apt-get could not install postgresql-$version, see $log" "$hint"
