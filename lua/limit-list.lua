#!lua flags=no-writes
-- Lists the limits of agents and tenants.
-- KEYS: 1 prefix:{tag}:limits       the limits in requests a minute (lua/limit-set.lua); there are few
--       2 prefix:{tag}:limits:live  the limits of live handoffs: likewise
-- ARGV: none
-- Replies: {'listed', rates, live}  each as ZRANGE gives them: name, limit, name, limit, …
local rates, live = KEYS[1], KEYS[2]
return { 'listed', redis.call('ZRANGE', rates, 0, -1, 'WITHSCORES'), redis.call('ZRANGE', live, 0, -1, 'WITHSCORES') }
