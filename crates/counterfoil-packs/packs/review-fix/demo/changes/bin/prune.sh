#!/bin/sh
# Removes logs that are older than a number of days.
. "$(dirname "$0")/../lib/common.sh"
days=$1
for log in $(find $LOGS -name '*.log' -mtime +$days); do
    rm -rf $log
done
