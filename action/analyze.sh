# Diagnose the logs of a list; write the report, the SARIF file and the job's summary.
# In: SOURCE, BIN, LIST, FOLDER, FORMAT, SUMMARY. Out: see outputs.py.
set -euo pipefail

case "$FORMAT" in
  text) ending=txt ;;
  json | jsonl) ending="$FORMAT" ;;
  markdown) ending=md ;;
  *)
    echo "::error::format must be text, json, jsonl or markdown"
    exit 2
    ;;
esac

out="${LIST%/*}/out"
mkdir "$out"
logs=()
while IFS= read -r -d '' name; do
  logs+=("$name")
done < "$LIST"

cd -- "$FOLDER"
analyze() {
  local code=0
  "$BIN/oortriage" analyze "${@:3}" --format "$1" --output "$2" -- "${logs[@]}" 2> "$out/problems.txt" || code=$?
  return "$code"
}

code=0
analyze jsonl "$out/as-read.jsonl" || code=$? # with the names of the logs as they are; stays here
case "$code" in
  0 | 1 | 3) ;;
  *)
    # Names of files may hold what the runner takes for a command: plain characters alone are shown.
    echo "::error::$(head -n 1 -- "$out/problems.txt" | LC_ALL=C tr -cd 'A-Za-z0-9 ._/:-' | head -c 300)"
    exit 2
    ;;
esac
# What others can read is redacted.
analyze jsonl "$out/diagnoses.jsonl" --redact || true
analyze sarif "$out/oortriage.sarif" --redact || true
analyze "$FORMAT" "$out/report.$ending" --redact || true
if [ "$SUMMARY" = true ]; then
  analyze markdown "$out/summary.md" --redact || true
fi

"$BIN/python" "$SOURCE/action/outputs.py" "$out" "$out/report.$ending" "$code"
