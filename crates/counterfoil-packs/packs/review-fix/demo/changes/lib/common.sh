# What all scripts need to know.
LOGS=${LOGS:-/var/log/app}
ARCHIVE=${ARCHIVE:-/var/backups/app}
