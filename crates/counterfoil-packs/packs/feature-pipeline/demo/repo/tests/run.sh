#!/bin/sh
# Runs every test with notes of its own, and says which fail.
cd "$(dirname "$0")/.." || exit 1
failed=0
for test in tests/test_*.sh; do
  SHELF=$(mktemp)
  export SHELF
  if sh -e "$test"; then echo "ok      $test"; else echo "FAILED  $test"; failed=1; fi
  rm -f "$SHELF"
done
exit $failed
