-- How many handoffs a call may take from an inbox; or what it replies instead. max_caught holds for both partitions of
-- an inbox (lib/inbox.lua) together. Where one Redis has both, the script counts in both. In a Cluster the inbox's own
-- partition decides. A request reads first how many are caught in the other. What it will take from there gets places
-- here, in the hash `:places`: for each token how many, and until when. They are given back when that is over, with the
-- time of that catch (inbox-settle.lua): whoever read the other partition before doesn't know of it, and reads again. A
-- place whose request is gone ends after 20 s: its catch happened at most 7 s after it was kept, and what others read
-- before that is used for at most 7 s (handoffs/inboxes.ts).
local PLACES_KEPT = 20000
-- Reads the places: how many there are, and when the latest catch was that gave some back (ms, the other partition's
-- clock). A time that is further ahead than one can be is of a clock that was set back.
local function readPlaces(key, now)
  local kept, settled, all = 0, 0, redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local count, ends, at = string.match(all[i + 1], '^(%d+) (%d+) ?(%d*)$')
    if now < tonumber(ends) and tonumber(ends) <= now + PLACES_KEPT then
      kept, settled = kept + count, math.max(settled, tonumber(at) or 0)
    end
  end
  return kept, settled
end
-- Returns how many of `max` it may take, or what it replies instead; and the key for places, if it has to keep some.
local function roomIn(inbox, other, known, max, now)
  if max == 0 then return 0 end
  local settings = redis.call('GET', inbox .. ':settings')
  if not settings then return max end
  local paused, limit = string.match(settings, '^(%d) (%d+)')
  if paused == '1' then return 'closed' end
  if limit == '0' or known == '!' then return max end
  if known == '?' then return 'limited' end
  local taken, places = redis.call('SCARD', inbox .. ':caught'), nil
  if other then taken = taken + redis.call('SCARD', other .. ':caught') end
  local elsewhere, read = string.match(known, '^(%d+)/(%d+)$')
  if elsewhere then
    places = inbox .. ':places'
    local kept, settled = readPlaces(places, now)
    if tonumber(read) <= settled then return 'limited' end
    taken = taken + elsewhere + kept
  end
  if taken >= tonumber(limit) then return 'closed' end
  return math.min(max, limit - taken), places
end
-- Returns 1 if it kept some, else 0.
local function keepPlaces(key, token, count, now)
  if not key or count == 0 then return 0 end
  redis.call('HSET', key, token, ms(count) .. ' ' .. ms(now + PLACES_KEPT))
  redis.call('PEXPIREAT', key, ms(now + PLACES_KEPT))
  return 1
end
