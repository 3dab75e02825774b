#!lua flags=allow-oom
-- Remembers which request an agent's Idempotency-Key came with, and which requester came first: its retry gets the same
-- reply. If the request names several inboxes, a requester chooses an inbox here before it takes from it. No other
-- requester chooses until the first one takes its choice back, or is gone for longer than its calls can take. So all
-- that the key took is from the inbox that was chosen last.
-- KEYS: 1 prefix:{tag}:q:token   the request's digest, and the first requester, or the last one that chose; after a
--                                choice also the inbox and its time (ms). Also the channel that announces choices
-- ARGV: 1 the call's deadline (ms)  2 the request's digest  3 how long to keep it (ms); a longer time isn't shortened
--       4 the requester  5 the inbox that it chooses; empty for none
--       6 `gone` of an earlier reply, if that requester turned out to have taken nothing; else empty
-- Replies: {'claimed', chosen, gone}  the key is new, or this requester's, and the choice is made; both are empty
--          {'known', chosen, gone}  another requester came with the same request before, and chose this inbox, or none:
--                        empty. If that requester is gone, `gone` is what ARGV 6 must be; else empty
--          {'left', chosen, gone}  likewise, so this requester may not choose; nothing changed
--          {'reused'}    it came with another request before; nothing changed
--@include late
local key, request, requester, inbox = KEYS[1], ARGV[2], ARGV[4], ARGV[5]
local before = redis.call('GET', key)

local asked, first, chosen, since = string.match(before or '', '^(%S+) (%S+) ?(%S*) ?(%d*)$')
if before and asked ~= request then return { 'reused' } end
local isKnown = before and first ~= requester and (inbox == '' or chosen ~= '' and before ~= ARGV[6])
-- If the choice's time is so far ahead, the clock was set back since: how long the requester is gone isn't known.
local isThere = isKnown and chosen ~= '' and now < since + 10000 and now > since - 10000
local gone = isKnown and chosen ~= '' and not isThere and before or ''
if isKnown and inbox ~= '' then return { 'left', chosen, gone } end
if not before then redis.call('SET', key, request .. ' ' .. requester, 'PX', ARGV[3]) end
if inbox ~= '' then
  redis.call('SET', key, request .. ' ' .. requester .. ' ' .. inbox .. ' ' .. ms(now), 'KEEPTTL')
elseif chosen and chosen ~= '' and not isKnown then
  redis.call('SET', key, request .. ' ' .. requester, 'KEEPTTL')
end
if before then redis.call('PEXPIREAT', key, ms(now + ARGV[3]), 'GT') end
-- Requests that wait with this key look in the chosen inbox.
if inbox ~= '' then redis.pcall('SPUBLISH', key, 'chosen') end
return { isKnown and 'known' or 'claimed', isKnown and chosen or '', gone }
