# expect.sh: what the tests of commands share; they source it first, and end with `exit $failed`.
# shellcheck shell=bash
failed=0
blanks=single  # `none` compares without any blanks: JSON, however it is broken into lines

# fail WORDS…: reports a failure; the test goes on.
fail() { echo "FAILED: $*"; failed=1; }

# Copies standard input with its blanks, line ends among them, as `blanks` says.
with_blanks() { if [ "$blanks" = none ]; then tr -d '[:space:]'; else tr -s '[:space:]' ' '; fi; }

# expect CODE TEXT COMMAND…: the command exits with CODE, and what it prints to both streams contains TEXT.
expect() {
  local code=$1 text=$2 output status
  shift 2
  output=$("$@" 2>&1)
  status=$?
  if [ -z "$text" ]; then
    fail "$*: any output contains an empty text; use \`succeeds\` where a later line compares what was written"
  elif [ "$status" -ne "$code" ] || [[ "$output" == *"terminate called"* ]] ||
    [[ "$(printf '%s' "$output" | with_blanks)" != *"$(printf '%s' "$text" | with_blanks)"* ]]; then
    fail "$*
  wanted exit code $code and '$text', got $status: $output"
  fi
}

# succeeds COMMAND…: the command exits with 0 and writes what a later line compares.
succeeds() {
  local output status
  output=$("$@" 2>&1)
  status=$?
  [ "$status" -eq 0 ] || fail "$*
  wanted exit code 0, got $status: $output"
}
