#!/bin/sh
# Each test_ function is a test, in a folder of its own.
tool=$PWD/notes.sh passed=0 failed=0

test_add_keeps_a_note() { sh "$tool" add "buy milk" && [ "$(cat notes.txt)" = "buy milk" ]; }
test_list_prints_all() { sh "$tool" add one && sh "$tool" add two && [ "$(sh "$tool" list | wc -l)" -eq 2 ]; }

for name in $(sed -n 's/^\(test_[a-z_]*\)().*/\1/p' "$0"); do
    folder=$(mktemp -d)
    if (cd "$folder" && $name); then passed=$((passed + 1)); else failed=$((failed + 1)); echo "$name fails"; fi
    rm -r "$folder"
done
echo "test result: $passed passed; $failed failed"
[ "$failed" -eq 0 ]
