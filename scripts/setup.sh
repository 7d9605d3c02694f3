#!/bin/sh
# Makes .venv with everything pinned, sees to Java and to a browser for the tests, and fetches Delta's jar once.
# Quick when nothing has changed since the last time. Needs no network then.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$1"; }
fail() {
    printf 'setup: %s\n' "$1" >&2
    printf '  hint: %s\n' "$2" >&2
    exit 2
}

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }
apt_install() {
    say "$1 is missing: installing Debian's $2 with apt-get"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$2"; } \
        >"$log" 2>&1 || fail "apt-get could not install $2" "see $log"
}

find_python() {
    for name in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
}

java_major() {
    java="java"
    [ -z "${JAVA_HOME:-}" ] || java="$JAVA_HOME/bin/java"
    "$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1
}

see_to_java() {
    major="$(java_major)"
    [ "${major:-0}" -lt 17 ] || return 0
    hint="install Java 17 or newer (https://adoptium.net), then set JAVA_HOME or put java on the PATH"
    [ -z "${JAVA_HOME:-}" ] || fail "JAVA_HOME ($JAVA_HOME) holds no Java 17 or newer" "$hint"
    can_apt || fail "Spark needs Java 17 or newer; found ${major:-none}" "$hint"
    apt_install "Java 17" openjdk-17-jre-headless
    major="$(java_major)"
    [ "${major:-0}" -ge 17 ] || fail "Spark needs Java 17 or newer; found ${major:-none}" "$hint"
}

# Only the tests of the console need one, so setup does not fail where none can be had.
see_to_chromium() {
    [ -n "${TAILRACE_CHROMIUM:-}" ] || command -v chromium >/dev/null && return 0
    can_apt && (apt_install "a browser for the tests" chromium) && return 0
    say "no Chromium: the tests in tests/browser cannot run, and fail"
    printf '  hint: %s\n' "apt-get install chromium, or name one: TAILRACE_CHROMIUM=/path/to/chromium"
}

make_venv() {
    python="$(find_python)"
    [ -n "$python" ] || fail "Python 3.11 or newer is needed" "set PYTHON to one, for example: PYTHON=python3.12 make setup"
    say "making .venv with $("$python" --version)"
    if ! "$python" -m venv --clear .venv >"$log" 2>&1; then
        can_apt || fail "this Python cannot make virtual environments" "apt-get install python3-venv"
        apt_install "Python's venv module" python3-venv
        "$python" -m venv --clear .venv >"$log" 2>&1 || fail "no virtual environment could be made" "see $log"
    fi
}

stamp=".venv/setup-stamp"
log="${TMPDIR:-/tmp}/tailrace-setup-$(id -u).log"
wanted="$(cat pyproject.toml requirements.lock scripts/setup.sh src/tailrace/server/ui/packages.json | cksum) $(pwd)"

see_to_java
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi
[ -x .venv/bin/pip ] && .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || make_venv
say "installing $(grep -c == requirements.lock) pinned packages (Spark alone is some 400 MB: minutes the first time)"
.venv/bin/pip install --quiet -r requirements.lock
say "installing tailrace from this folder"
.venv/bin/pip install --quiet --no-deps --editable .
see_to_chromium
say "fetching the console's packages"
.venv/bin/python scripts/ui_packages.py || fail "they could not be fetched" "see above"
say "compiling what reads the rows of a copy"
.venv/bin/python -m tailrace.source.postgres.rows.copy_text
say "starting Spark twice, so that Delta's jar is here and later starts take half the time"
.venv/bin/python -m tailrace.engine.spark.prepared || fail "Spark did not start" "see above"
say "fetching the S3 server that tests use"
.venv/bin/python -m tests.s3 >/dev/null || fail "it could not be fetched" "see above"
printf '%s\n' "$wanted" >"$stamp"
say "done"
