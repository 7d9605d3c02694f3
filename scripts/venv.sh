#!/bin/sh
# Makes an environment beside .venv with other versions: scripts/venv.sh FOLDER PYTHON [PACKAGE==VERSION ...]
# It has what requirements.lock pins, but for these. Quick when nothing has changed since the last time.
set -eu
cd "$(dirname "$0")/.."
folder="$1" python="$2"
shift 2
stamp="$folder/setup-stamp"
wanted="$(cat pyproject.toml requirements.lock scripts/venv.sh | cksum) $(pwd) $python $*"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi
printf 'setup: making %s with %s %s\n' "$folder" "$("$python" --version)" "$*"
"$python" -m venv --clear "$folder"
changes=""
for pin in "$@"; do changes="$changes;s/^${pin%%==*}==.*/$pin/"; done
sed "${changes#;}" requirements.lock >"$folder/requirements.lock"
"$folder/bin/pip" install --quiet --disable-pip-version-check -r "$folder/requirements.lock"
"$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps --editable .
"$folder/bin/python" -m tailrace.source.postgres._copy_text
"$folder/bin/python" -m tailrace.engine.spark.prepared
printf '%s\n' "$wanted" >"$stamp"
