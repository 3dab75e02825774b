#!lua flags=no-writes
-- Lists the limits of agents and tenants.
-- KEYS: 1 prefix:{tag}:limits  the limits (lua/limit-set.lua); there are few
-- ARGV: none
-- Replies: {'listed', limits}  as ZRANGE gives them: name, requests a minute, name, requests a minute, …
return { 'listed', redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES') }
