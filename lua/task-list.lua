#!lua flags=no-writes
-- Lists the A2A tasks that an agent sent to an inbox, in one partition, those first whose state began last
-- (lib/tasks.lua).
-- KEYS: 1 prefix:{tag}:tasks:tenant:inbox:agent
-- ARGV: 1 retention (ms)  2 the letters of the states wanted  3 the context wanted; empty for any
--       4 since when the state must be (ms); empty for any
--       5 behind which place to go on: the time (ms), the state and the id, with spaces between; empty for the start
--       6 how many at most  7 how many are counted at most, and how many are looked at for the page
-- Replies: {'listed', count, last, place, …}  count: of all that are wanted, on this page or not; last: the place
--                        that was looked at last, empty if the page is full or the list has ended; then the page: a
--                        place, as in ARGV 5, for each task
--@include listing
local list, wanted, context, since = KEYS[1], ARGV[2], ARGV[3], ARGV[4]
local from, behind = string.match(ARGV[5], '^(%d+) (.*)$')
local limit, most = ARGV[6] + 0, ARGV[7] + 0
local oldest, count, page, last = clock() - ARGV[1], 0, {}, ''
-- Of a place, the context is left out: its own entry comes behind it, the others as the place does.
local start = from and redis.call('ZCARD', list) - rankBehind(list, from, behind) or 0
-- First all that is wanted is counted, then the page is taken from where it begins.
for round, rank in ipairs({ 0, start }) do
  for first = rank, rank + most - 1, 500 do
    local wide = math.min(500, rank + most - first)
    local entries = redis.call('ZRANGE', list, first, first + wide - 1, 'REV', 'WITHSCORES')
    for at = 1, #entries, 2 do
      local state, id, of = string.match(entries[at], '^(%l) (%S+) (%S+)$')
      local time = entries[at + 1] + 0
      last = ms(time) .. ' ' .. state .. ' ' .. id
      local isThere = string.find('swi', state, 1, true) or time >= oldest
      if isThere and string.find(wanted, state, 1, true) and (context == '' or of == context) and
        (since == '' or time >= since + 0) then
        if round == 1 then count = count + 1 elseif #page < limit then page[#page + 1] = last end
      end
    end
    if #entries < 2 * wide or round == 2 and #page == limit then
      last = ''
      break
    end
  end
end

return { 'listed', count, last, unpack(page) }
