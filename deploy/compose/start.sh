#!/bin/sh
# Starts a Redis or a Sentinel of compose.yaml: start.sh redis|sentinel LINE…
# At its first start it copies the configuration to its volume, with the lines that are its own; from then on what is there is
# what the failovers since have made of it.
set -eu
kind=$1
shift
conf=/data/$kind.conf
if [ ! -s "$conf" ]; then
  { cat "/config/$kind.conf" && printf '%s\n' "$@"; } > "$conf.new"
  mv "$conf.new" "$conf"
fi
if [ "$kind" = sentinel ]; then exec redis-server "$conf" --sentinel; fi
exec redis-server "$conf"
