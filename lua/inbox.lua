#!lua flags=no-writes
-- Counts what an inbox has in one partition, and tells since when; moves nothing.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox           what can be caught from it, by its turn (lib/entering.lua)
--       2 prefix:{tag}:i:tenant:inbox:waiting   what is for it and waits for a person, by when it expires
-- ARGV: none
-- Replies: {'counted', pending, waiting, oldest}  oldest: when the one entered that has been there longest (microseconds), nil where there is
--                        none; where priorities mix, of the first 1,000 in the order in which they are caught
local pending = redis.call('ZCARD', KEYS[1])
local oldest
local entries = redis.call('ZRANGE', KEYS[1], 0, 999, 'WITHSCORES')
for i = 2, #entries, 2 do
  local turn = tonumber(entries[i])
  -- Whatever comes behind this one entered at its turn or later.
  if oldest and turn >= oldest then break end
  local entered = turn - turn % 10 + turn % 10 * MINUTE
  oldest = math.min(oldest or entered, entered)
end
return { 'counted', pending, redis.call('ZCOUNT', KEYS[2], '(' .. ms(clock()), '+inf'), oldest }
