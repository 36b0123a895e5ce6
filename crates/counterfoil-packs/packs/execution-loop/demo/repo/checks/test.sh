#!/bin/sh
# Runs slug.sh on every case: the title on the left must give the slug on the right.
passed=0 failed=0
while IFS= read -r line; do
	title=${line% = *} expected=${line##* = }
	given=$(sh slug.sh "$title")
	if [ "$given" = "$expected" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "'$title' gives '$given' instead of '$expected'"
	fi
done < cases.txt
echo "Tests: $failed failed, $passed passed, $((passed + failed)) total"
[ "$failed" = 0 ]
