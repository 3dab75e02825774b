#!lua flags=no-writes
-- What an outbox has after a number, in order.
-- KEYS: 1 prefix:{tag}:o:tenant   the outbox
-- ARGV: 1 the number  2 how many at most
-- Replies: {'outbox', event, …}   as they stand there; none where it has none
local outbox, after, max = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local found, from = { 'outbox' }, 0
repeat
  local events = redis.call('LRANGE', outbox, from, from + 99)
  for _, event in ipairs(events) do
    if #found <= max and tonumber(string.match(event, '^%d+')) > after then found[#found + 1] = event end
  end
  from = from + 100
until #events < 100 or #found > max
return found
