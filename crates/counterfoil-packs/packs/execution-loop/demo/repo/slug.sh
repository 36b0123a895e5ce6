#!/bin/sh
# Prints a title as it stands in an address.
usage() {
	echo usage: $0 TITLE
}

slug() {
	printf '%s\n' "$1"
}

if [ $# = 0 ]; then usage; else slug "$1"; fi
