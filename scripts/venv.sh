#!/bin/sh
# Makes an environment beside .venv with other versions: scripts/venv.sh FOLDER PYTHON [PACKAGE==VERSION ...]
# With the Python of .venv it has these packages and all others from there. With another Python it has what
# requirements.lock pins, but for these. Quick when nothing has changed since the last time.
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
pip="$folder/bin/pip --quiet --disable-pip-version-check"
packages() { "$1" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'; }
if [ "$python" = .venv/bin/python ]; then
    $pip install --no-deps "$@"
    # What an environment has itself is found first.
    printf 'import site; site.addsitedir("%s")\n' "$(packages "$python")" >"$(packages "$folder/bin/python")/beside.pth"
else
    changes=""
    for pin in "$@"; do changes="$changes;s/^${pin%%==*}==.*/$pin/"; done
    sed "${changes#;}" requirements.lock >"$folder/requirements.lock"
    $pip install -r "$folder/requirements.lock"
    $pip install --no-deps --editable .
fi
"$folder/bin/python" -m tailrace.source.postgres.rows.copy_text
"$folder/bin/python" -m tailrace.engine.spark.prepared
printf '%s\n' "$wanted" >"$stamp"
