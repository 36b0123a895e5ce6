#!/bin/sh
# Finds what is printed without quotes: a title with a star in it would become a list of files.
places=$(grep -n 'echo [^"]*\$' slug.sh | sed 's/^\([0-9]*\):.*/slug.sh:\1: Q1 printed without quotes/')
if [ -n "$places" ]; then echo "$places"; exit 1; fi
