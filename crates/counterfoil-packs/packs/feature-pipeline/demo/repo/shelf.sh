#!/bin/sh
# Keeps notes, one a line, in the file $SHELF. Each command is a file in commands/.
set -eu
notes=${SHELF:-notes.txt}
command=$(dirname "$0")/commands/${1:-none}.sh
[ -f "$command" ] || { echo "shelf: there is no command '${1:-}'" >&2; exit 2; }
shift
. "$command"
