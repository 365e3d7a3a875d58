# Post the report of the worst log as a comment.
# In: BIN, FOLDER, WORST (a file with the log's name), REPOSITORY, NUMBER, GH_TOKEN.
set -euo pipefail

if [[ ! "$NUMBER" =~ ^[0-9]+$ ]]; then
  echo "::error::comment-on must be the number of an issue or a pull request"
  exit 2
fi
log="$(cat -- "$WORST" && echo x)" # the x keeps line breaks at a name's end
said="${WORST%/*}/comment.txt"
cd -- "$FOLDER"
code=0
"$BIN/oortriage" report --post "$REPOSITORY#$NUMBER" --yes -- "${log%x}" > "$said" 2>&1 || code=$?
if [ "$code" = 2 ]; then
  echo "::error::the comment was not posted: $(tail -n 1 -- "$said" | LC_ALL=C tr -cd 'A-Za-z0-9 ._/:-' | head -c 300)"
  exit 2
fi
