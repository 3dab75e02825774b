#!lua flags=allow-oom
-- Puts handoffs that are live into their tenant's due index, and takes those out of it that have ended (lib/due.lua):
-- replicas of version 0.2.0 don't know it. This can be called at any time.
-- KEYS: 1… prefix:{tag}:h:tenant:id   the handoffs; in a Cluster of one partition
-- ARGV: 1 the call's deadline (ms)
-- Replies: {'indexed'}
--@include late inbox after due

indexAll(now)
return { 'indexed' }
