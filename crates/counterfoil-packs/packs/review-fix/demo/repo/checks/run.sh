#!/bin/sh
# Tries the scripts out. Prints what is wrong, and fails if something is.
here=$(cd "$(dirname "$0")/.." && pwd)
LOGS=$(mktemp -d)
ARCHIVE=$LOGS/packed
export LOGS ARCHIVE
mkdir "$ARCHIVE"
wrong=0
say() { echo "wrong: $1"; wrong=1; }

# A name with a blank, and a file that only looks like half of it.
: > "$LOGS/old day.log"; : > "$LOGS/old"; : > "$LOGS/new.log"
touch -t 202001010000 "$LOGS/old day.log"
sh "$here/bin/prune.sh" 3 > /dev/null 2>&1
[ -e "$LOGS/old" ] || say 'prune removed a file that is no log'
[ -e "$LOGS/new.log" ] || say 'prune removed a new log'
[ ! -e "$LOGS/old day.log" ] || say 'prune left an old log'

# There is nowhere to pack it to, so it must stay.
: > "$LOGS/monday.log"
ARCHIVE=$LOGS/nowhere sh "$here/bin/archive.sh" monday > /dev/null 2>&1
[ -e "$LOGS/monday.log" ] || say 'archive removed a log that it could not pack'

rm -r "$LOGS"
[ "$wrong" -eq 0 ] && echo 'all good'
exit "$wrong"
