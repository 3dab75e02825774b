#!lua flags=no-writes
-- What an outbox has after a number, in order.
-- KEYS: 1 prefix:{tag}:o:tenant   the outbox
-- ARGV: 1 the number  2 how many at most
-- Replies: {'outbox', event, …}   the events, as the outbox has them
local outbox, after, max = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
-- Numbers ascend (lib/appending.lua), so the place is found by steps that double, and then by halves: an outbox may get
-- a million events while its tenant's feed can't be written, and the relay moves some at a time.
local found, from, upto, ahead = { 'outbox' }, 0, 0, true
repeat
  local place = ahead and upto or math.floor((from + upto) / 2)
  local event = redis.call('LRANGE', outbox, place, place)[1]
  local is_before = event and tonumber(string.match(event, '^%d+')) <= after
  if is_before then from = place + 1 end
  if ahead and is_before then
    upto = 2 * upto + 1
  elseif not is_before then
    ahead, upto = false, place
  end
until not ahead and from >= upto
for at, event in ipairs(redis.call('LRANGE', outbox, from, from + max - 1)) do found[at + 1] = event end
return found
