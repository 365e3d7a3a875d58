# Install oortriage from the action's own files into an environment of its own.
# In: PYTHON, SOURCE. Out: bin.
set -euo pipefail

venv="$RUNNER_TEMP/oortriage/venv"
"$PYTHON" -m venv "$venv"
bin="$venv/bin"
[ -d "$bin" ] || bin="$venv/Scripts" # Windows
"$bin/python" -m pip install --quiet --disable-pip-version-check "$SOURCE"
printf 'bin=%s\n' "$bin" >> "$GITHUB_OUTPUT"
