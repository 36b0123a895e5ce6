#!/bin/sh
# Keeps notes, one a line, in notes.txt.
usage() {
	echo "usage: notes.sh add TEXT | list"
	exit 2
}

case "$1" in
add) shift; printf '%s\n' "$*" >> notes.txt ;;
list) cat notes.txt ;;
*) usage ;;
esac
