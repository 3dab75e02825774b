#!lua flags=no-writes
-- Lists whose tokens are blocked.
-- KEYS: 1 prefix:{tag}:blocked  whose tokens are blocked, by until when; there are few
-- ARGV: none
-- Replies: {'listed', now, blocked}  as ZRANGE gives them: whose (lua/token-block.lua), until when (ms), inf for good,
--                                 and so on
local now = clock()
return { 'listed', now, redis.call('ZRANGE', KEYS[1], '(' .. ms(now), '+inf', 'BYSCORE', 'WITHSCORES') }
