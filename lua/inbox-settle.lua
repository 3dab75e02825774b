#!lua flags=allow-oom
-- Gives back the places that a request kept for what it took from an inbox's other partition (lib/taking.lua).
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   the inbox in its own partition
-- ARGV: 1 the call's deadline (ms)  2 the token that the places were kept by
--       3 when it took something (ms, the other partition's clock); empty if it took nothing
-- Replies: {'settled'}
--@include late taking
local inbox, token, at = KEYS[1], ARGV[2], ARGV[3]
local places = inbox .. ':places'

-- An empty inbox's list is looked for on the other node while the slot moves, and the places may not be there yet.
redis.call('EXISTS', inbox, places)
if at ~= '' then
  local _, settled = readPlaces(places, now)
  redis.call('HSET', places, 'settled', '0 ' .. ms(now + PLACES_KEPT) .. ' ' .. ms(math.max(settled, tonumber(at))))
  redis.call('PEXPIREAT', places, ms(now + PLACES_KEPT))
end
-- Last: this may empty the hash (lib/inbox.lua).
redis.call('HDEL', places, token)
-- Who looked meanwhile may have counted them twice.
redis.pcall('SPUBLISH', inbox, 'settled')
return { 'settled' }
