#!lua flags=no-writes
-- Reads the counts of a run (lib/runs.lua).
-- KEYS: 1 prefix:{tag}:total:tenant:name:value   the run's counts; on one Redis without a tag
-- ARGV: none
-- Replies: {'found', live, done, failed, other, first, last}  first and last: when those were passed (ms)
--          {'not_found'}
local total = redis.call('HMGET', KEYS[1], 'live', 'done', 'failed', 'other', 'first', 'last')
if not total[1] then return { 'not_found' } end
return { 'found', unpack(total, 1, 6) }
