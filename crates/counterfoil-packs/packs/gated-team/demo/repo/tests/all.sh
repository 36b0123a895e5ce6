#!/bin/sh
# Runs every test beside this one.
for test in tests/test-*.sh; do
	sh "$test" || { echo "$test failed"; exit 1; }
done
