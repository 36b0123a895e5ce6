#!/bin/sh
# Notes, one a line, in the file that NOTES names.
: "${NOTES:=notes.txt}"

case "$1" in
add) printf '%s\n' "$2" >>"$NOTES" ;;
list) cat "$NOTES" ;;
*) echo "usage: notes.sh add TEXT | list" >&2; exit 2 ;;
esac
