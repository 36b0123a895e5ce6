# What all scripts need to know.
LOGS=${LOGS:?say where the logs are}
