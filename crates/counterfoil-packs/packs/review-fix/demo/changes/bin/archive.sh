#!/bin/sh
# Packs the log of a day and removes it.
. "$(dirname "$0")/../lib/common.sh"
day=${1:?usage: archive.sh DAY}
tar -czf "$ARCHIVE/$day.tar.gz" -C "$LOGS" "$day.log"
rm "$LOGS/$day.log"
