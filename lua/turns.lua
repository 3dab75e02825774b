#!lua flags=no-writes
-- Reads the positions and lengths of the first handoffs that can be caught from an inbox's list, so that the caller can
-- merge two lists. Entries that can't be caught any more are skipped: the script looks at up to 31 more than ARGV 1.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   what can be caught from the inbox, by position (lib/inbox.lua)
-- ARGV: 1 how many at most  2 prefix:{tag}:h:  3 1 to count the inbox's caught handoffs in this partition; else absent
-- Replies: {'read', more, caught, now, position/bytes, …}  the positions ascending; more: 1 if there may be others
--                        after the entries that were looked at, else 0; caught: their number, nil without ARGV 3
--@include inbox taking
local max, prefix = tonumber(ARGV[1]), ARGV[2]
local now = clock()
local entries = redis.call('ZRANGE', KEYS[1], 0, max + 31, 'WITHSCORES')
local positions = {}
for i = 1, #entries, 2 do
  if #positions == max then break end
  local key = prefix .. entries[i]
  local record = redis.call('HGET', key, 's')
  if not record then isHere(KEYS[1], key) end
  local status, _, _, expires = string.match(record or '', RECORD)
  if status == 'pending' and now < tonumber(expires) then
    local length = lengthOf(redis.call('HSTRLEN', key, 'p'), redis.call('HSTRLEN', key, 'r'),
      redis.call('HSTRLEN', key, 'd'), redis.call('HSTRLEN', key, 'k'))
    positions[#positions + 1] = entries[i + 1] .. '/' .. ms(length)
  end
end
local caught = false
if ARGV[3] then
  -- While the slot moves, this call may run at the other node, which may not have the set of caught handoffs yet.
  isHere(KEYS[1], KEYS[1] .. ':caught')
  caught = redis.call('SCARD', KEYS[1] .. ':caught')
end
return { 'read', #entries == 2 * (max + 32) and 1 or 0, caught, now, unpack(positions) }
