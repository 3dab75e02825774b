#!lua
-- Gives an agent's callbacks another secret, which is derived from the next generation.
-- KEYS: 1 prefix:{tag}:secret:tenant:agent   which secret it has: the generation, the token of the operation that made
--         it, and until when the one before signs as well (ms). Without the key it is the first
-- ARGV: 1 the call's deadline (ms)  2 the operation's token  3 for how long the old secret signs as well (ms)
-- Replies: {'rotated', note}  as it is now; also where it was so before
--@include late
local note = redis.call('GET', KEYS[1])
local generation, token = string.match(note or '1 -', '^(%d+) (%S+)')

if token ~= ARGV[2] then
  note = ms(generation + 1) .. ' ' .. ARGV[2] .. ' ' .. ms(now + ARGV[3])
  redis.call('SET', KEYS[1], note)
end
return { 'rotated', note }
