#!lua flags=no-writes
-- Reads what became of keys since somebody last looked.
-- KEYS: 1 prefix:{tag}:keys:log   what became of keys
-- ARGV: 1 the id of the last entry seen; 0-0 where there was none at all, empty for who hasn't looked yet
-- Replies: {'changed', now, entries}  at most 100, as XRANGE gives them; empty where nothing has changed
--          {'lost', now, last}        the entry isn't there: it was cut off, or another server's log had it. Whatever is remembered
--                                     may be out of date; what comes from now on stands behind last, 0-0 for an empty log
local log, after = KEYS[1], ARGV[1]

if after == '' or after ~= '0-0' and #redis.call('XRANGE', log, after, after) == 0 then
  local newest = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)
  return { 'lost', clock(), newest[1] and newest[1][1] or '0-0' }
end
return { 'changed', clock(), redis.call('XRANGE', log, '(' .. after, '+', 'COUNT', 100) }
