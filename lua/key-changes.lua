#!lua flags=no-writes
-- Reads the changes of keys since the caller last looked.
-- KEYS: 1 prefix:{tag}:keys:log   the log of what became of keys
-- ARGV: 1 the id of the last entry seen; 0-0 if the log was empty; empty at the first call
-- Replies: {'changed', now, entries}  at most 100, as XRANGE gives them; empty if nothing has changed
--          {'lost', now, last}  the entry isn't in the log: it was trimmed, or it was in another server's log. All that
--                               the caller remembers may be out of date; new entries come after last: 0-0 for none
local log, after = KEYS[1], ARGV[1]

if after == '' or after ~= '0-0' and #redis.call('XRANGE', log, after, after) == 0 then
  local newest = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)
  return { 'lost', clock(), newest[1] and newest[1][1] or '0-0' }
end
return { 'changed', clock(), redis.call('XRANGE', log, '(' .. after, '+', 'COUNT', 100) }
