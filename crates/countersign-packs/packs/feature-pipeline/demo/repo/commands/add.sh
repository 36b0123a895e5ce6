echo "$*" >> "$notes"
