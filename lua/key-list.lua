#!lua flags=no-writes
-- Lists keys, oldest first, from a position on.
-- KEYS: 1 prefix:{tag}:keys   all keys by when they were created
-- ARGV: 1 when the last one seen was created (ms); 0 for the start  2 its id; empty for the start
--       3 how many at most  4 prefix:{tag}:
-- Replies: {'listed', more, id, fields, id, fields, …}  more is 1 if the list goes on
--@include inbox listing
local keys = KEYS[1]
local limit, prefix = tonumber(ARGV[3]), ARGV[4]
local reply = { 'listed', 0 }
-- By position, not by number: earlier keys may be gone.
local rank = rankBehind(keys, ARGV[1], ARGV[2])
repeat
  local ids = redis.call('ZRANGE', keys, rank, rank + limit)
  for _, id in ipairs(ids) do
    local fields = redis.call('HGETALL', prefix .. 'k:' .. id)
    -- A forgotten key stays in the index until the next key is made.
    if #fields > 0 or isHere(keys, prefix .. 'k:' .. id) then
      if #reply >= 2 + 2 * limit then
        reply[2] = 1
        return reply
      end
      reply[#reply + 1] = id
      reply[#reply + 1] = fields
    end
  end
  rank = rank + limit + 1
until #ids == 0
return reply
