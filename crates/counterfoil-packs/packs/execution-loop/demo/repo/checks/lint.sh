#!/bin/sh
# Finds what is printed without quotes: a title with a star in it would become a list of files.
if grep -n 'echo [^"]*\$' slug.sh; then exit 1; fi
