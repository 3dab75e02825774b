#!lua flags=allow-oom
-- What a partition counts of a run is in its total (run-merge.lua), unless it changed again meanwhile.
-- KEYS: 1 prefix:{tag}:runs   the runs whose counts changed here (lib/runs.lua)
-- ARGV: 1 the call's deadline (ms)  2 the run, tenant:name:value  3 when it was counted (microseconds)
-- Replies: {'moved'}
--@include late
local at = redis.call('ZSCORE', KEYS[1], ARGV[2])

if at and at - ARGV[3] == 0 then redis.call('ZREM', KEYS[1], ARGV[2]) end
return { 'moved' }
