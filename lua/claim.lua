#!lua flags=allow-oom
-- Remembers which request an agent's Idempotency-Key came with, and which asker came first: its retry gets the same
-- reply. Where the request names several inboxes, an asker chooses one here before it takes from it. No other asker
-- chooses until it chooses none, or is gone for longer than it needs. So what the key took is from the inbox that was
-- chosen last.
-- KEYS: 1 prefix:{tag}:q:token   the request's digest, and the first asker, or the one that chose last; if it did, then
--                                also the inbox and when that was (ms). Also the channel that tells of choices
-- ARGV: 1 the call's deadline (ms)  2 the request's digest  3 how long to keep it (ms); a longer time isn't shortened
--       4 the asker  5 the inbox that it chooses; empty for none
--       6 the value that it has looked after: that asker is gone, and took nothing; else empty
-- Replies: {'claimed', chosen, gone}  the key is new, or nobody else's, and the choice is made; both are empty
--          {'known', chosen, gone}  another asker came with the same request before, and chose this inbox, or none:
--                        empty. If that asker is gone, `gone` is what ARGV 6 must be; else empty
--          {'left', chosen, gone}  likewise, so this asker may not choose; nothing changed
--          {'reused'}    it came with another request before; nothing changed
--@include late
local key, request, asker, inbox = KEYS[1], ARGV[2], ARGV[4], ARGV[5]
local before = redis.call('GET', key)

local asked, first, chosen, since = string.match(before or '', '^(%S+) (%S+) ?(%S*) ?(%d*)$')
if before and asked ~= request then return { 'reused' } end
local isKnown = before and first ~= asker and (inbox == '' or chosen ~= '' and before ~= ARGV[6])
-- A time that is as far ahead is of a clock that was set back since, and says nothing of how long the asker is gone.
local isThere = isKnown and chosen ~= '' and now < since + 10000 and now > since - 10000
local gone = isKnown and chosen ~= '' and not isThere and before or ''
if isKnown and inbox ~= '' then return { 'left', chosen, gone } end
if not before then redis.call('SET', key, request .. ' ' .. asker, 'PX', ARGV[3]) end
if inbox ~= '' then
  redis.call('SET', key, request .. ' ' .. asker .. ' ' .. inbox .. ' ' .. ms(now), 'KEEPTTL')
elseif chosen and chosen ~= '' and not isKnown then
  redis.call('SET', key, request .. ' ' .. asker, 'KEEPTTL')
end
if before then redis.call('PEXPIREAT', key, ms(now + ARGV[3]), 'GT') end
-- Who waits with this key looks what comes of it.
if inbox ~= '' then redis.pcall('SPUBLISH', key, 'chosen') end
return { isKnown and 'known' or 'claimed', isKnown and chosen or '', gone }
