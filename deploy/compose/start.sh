#!/bin/sh
# Starts a Redis or a Sentinel of compose.yaml: start.sh redis|sentinel LINE…
# At the first start it copies the configuration, plus its own lines, to the volume. Later starts use that copy, which failovers have
# rewritten.
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
