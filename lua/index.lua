#!lua flags=allow-oom
-- Puts handoffs that are live into their tenant's due index and into their runs, and takes those out that have ended
-- (lib/due.lua, lib/ended.lua): replicas of version 0.2.0 don't know these, RUN_LABELS changes, and agents get limits.
-- And puts what waits for a person into the list where it is looked for: data may come from a Cluster to one Redis, or
-- go back. This can be called at any time.
-- KEYS: 1… prefix:{tag}:h:tenant:id   the handoffs; in a Cluster of one partition
-- ARGV: 1 the call's deadline (ms)  2 on one Redis the tags of the tenants' home partitions, as tenant:tag, each
--       between spaces; empty in a Cluster  3… the names of labels that make runs, and the agents whose live handoffs
--       are limited, as tenant:agent
-- Replies: {'indexed'}
--@include late inbox ended runs indexing after due waiting

indexAllWaiting(ARGV[2], now)
indexAll(now)
indexAllEnded(now, seconds .. micros)
return { 'indexed' }
