#!lua flags=no-writes
-- Says who has handoffs of an inbox caught, in one of its partitions.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   the inbox (lib/inbox.lua)
-- ARGV: 1 how many handoffs to look at, of any number  2 prefix:{tag}:h:
-- Replies: {'working', now, more, caught_by, worker, caught, heard, …}  more: 1 if there are more than it looked at,
--                         else 0; of each handoff who caught it and when (ms, as text), what the worker calls itself,
--                         and when its last heartbeat came, both nil if there is none
local now, caught = clock(), KEYS[1] .. ':caught'
local members, found = redis.call('SRANDMEMBER', caught, ARGV[1]), {}
for _, member in ipairs(members) do
  local record, extra = unpack(redis.call('HMGET', ARGV[2] .. member, 's', 'x'))
  local at, deadline, by = string.match(record or '', '^[24]?:?caught %S+ %d+ %d+ %S+ %S+ (%d+) (%d+) (%S+)')
  local beat = extra and string.match(extra, ' h(%d+)')
  if at and now < tonumber(deadline) and (not beat or now < tonumber(beat)) then
    local parts = {
      by, extra and string.match(extra, ' N(%S+)') or false, at, extra and string.match(extra, ' v(%d+)') or false
    }
    for i = 1, 4 do found[#found + 1] = parts[i] end
  end
end
return { 'working', now, redis.call('SCARD', caught) > #members and 1 or 0, unpack(found) }
