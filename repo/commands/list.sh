cat "$notes"
