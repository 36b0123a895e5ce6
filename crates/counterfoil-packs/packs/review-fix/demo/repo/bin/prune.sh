#!/bin/sh
# Lists logs that are older than a number of days.
. "$(dirname "$0")/../lib/common.sh"
days=${1:?usage: prune.sh DAYS}
find "$LOGS" -name '*.log' -mtime +"$days" -print
