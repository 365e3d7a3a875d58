# Put the names of the logs into a list, each ended by a NUL; fetch them where they are elsewhere.
# In: one of LOGS, RUN_ID, JOB_ID, ISSUE, TEXT; REPOSITORY, GH_TOKEN. Out: list, folder (names are relative to it).
set -euo pipefail

refuse() {
  echo "::error::$1"
  exit 2
}

# What gh says may quote anything, and the runner obeys some lines: plain characters alone are shown.
refuse_gh() {
  refuse "$1: $(head -n 1 -- "$work/gh.txt" | LC_ALL=C tr -cd 'A-Za-z0-9 ._/:-' | head -c 300)"
}

given=0
for value in "$LOGS" "$RUN_ID" "$JOB_ID" "$ISSUE" "$TEXT"; do
  [ -z "$value" ] || given=$((given + 1))
done
[ "$given" = 1 ] || refuse "give exactly one of logs, run-id, job-id, issue and text"
for value in "$RUN_ID" "$JOB_ID" "$ISSUE"; do
  [[ "$value" =~ ^[0-9]*$ ]] || refuse "run-id, job-id and issue are numbers"
done

work="$(mktemp -d "$RUNNER_TEMP/oortriage-XXXXXX")" # a job may use the action more than once
fetched="$work/logs"
list="$work/list"
mkdir "$fetched"
: > "$list"

# Before each line gh writes the names of the job and the step, and tabs.
fetch_job() {
  gh run view --repo "$REPOSITORY" --job "$1" --log-failed > "$work/raw" 2> "$work/gh.txt" < /dev/null \
    || refuse_gh "the log of job $1 cannot be fetched"
  cut -f 3- "$work/raw" > "$fetched/job-$1.log"
  printf 'job-%s.log\0' "$1" >> "$list"
}

folder="$fetched"
if [ -n "$LOGS" ]; then
  folder="$PWD"
  shopt -s nullglob
  shopt -s globstar 2> /dev/null || true # not in macOS's own bash
  while IFS= read -r pattern || [ -n "$pattern" ]; do
    pattern="${pattern%$'\r'}"
    [ -n "$pattern" ] || continue
    if [ -e "$pattern" ]; then
      found=("$pattern")
    else
      IFS= && found=($pattern) # expands a glob and nothing else
    fi
    for name in ${found[@]+"${found[@]}"}; do
      [ -e "$name" ] || continue
      case "$name" in -*) name="./$name" ;; esac
      printf '%s\0' "$name" >> "$list"
    done
  done <<< "$LOGS"
  [ -s "$list" ] || refuse "no log matches"
elif [ -n "$JOB_ID" ]; then
  fetch_job "$JOB_ID"
elif [ -n "$RUN_ID" ]; then
  gh run view "$RUN_ID" --repo "$REPOSITORY" --json jobs \
    --jq '.jobs[] | select(.conclusion == "failure") | .databaseId' > "$work/jobs" 2> "$work/gh.txt" \
    || refuse_gh "the run cannot be read"
  [ -s "$work/jobs" ] || refuse "the run has no failed job"
  while read -r job; do
    fetch_job "$job"
  done < "$work/jobs"
elif [ -n "$ISSUE" ]; then
  gh issue view "$ISSUE" --repo "$REPOSITORY" --json title,body --jq '.title + "\n\n" + .body' \
    > "$fetched/issue-$ISSUE.md" 2> "$work/gh.txt" || refuse_gh "the issue cannot be read"
  printf 'issue-%s.md\0' "$ISSUE" >> "$list"
else
  printf '%s\n' "$TEXT" > "$fetched/text.log"
  printf 'text.log\0' >> "$list"
fi

printf 'list=%s\nfolder=%s\n' "$list" "$folder" >> "$GITHUB_OUTPUT"
