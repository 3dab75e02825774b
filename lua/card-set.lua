#!lua
-- Sets or removes the A2A card of an inbox.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox:card   when it was set (ms), a space, and the card, JSON
-- ARGV: 1 the call's deadline (ms)  2 the card; empty to remove it
-- Replies: {'set', changed}   changed: 1 if it was another before, else 0
--@include late
local key, card = KEYS[1], ARGV[2]
local before = string.match(redis.call('GET', key) or '', ' (.*)$') or ''

if before == card then return { 'set', 0 } end
if card == '' then redis.call('DEL', key) else redis.call('SET', key, formatted .. ' ' .. card) end
return { 'set', 1 }
