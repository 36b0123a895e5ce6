#!/bin/sh
# Every note is listed.
[ "$(sh notes.sh list | wc -l)" -eq 3 ] || { echo "there are three notes"; exit 1; }
