#!lua flags=no-writes
-- Lists the A2A tasks that an agent sent to an inbox, in one partition, those first whose state began last
-- (lib/tasks.lua).
-- KEYS: 1 prefix:{tag}:tasks:tenant:inbox:agent
-- ARGV: 1 retention (ms)  2 the letters of the states wanted  3 the context wanted; empty for any
--       4 since when the state must be (ms); empty for any
--       5 behind which place to go on: the time (ms), the state and the id, with spaces between; empty for the start
--       6 how many at most  7 how many are counted at most
-- Replies: {'listed', count, place, …}  count: of all that are wanted, on this page or not; then the page: a place, as
--                        in ARGV 5, for each task
--@include listing
local list, wanted, context, since = KEYS[1], ARGV[2], ARGV[3], ARGV[4]
local from, last = string.match(ARGV[5], '^(%d+) (.*)$')
local limit, most = ARGV[6] + 0, ARGV[7] + 0
local oldest, count, page = clock() - ARGV[1], 0, {}
for place = 0, most, 500 do
  local entries = redis.call('ZRANGE', list, place, place + 499, 'REV', 'WITHSCORES')
  for at = 1, #entries, 2 do
    local state, id, of, time = string.match(entries[at], '^(%l) (%S+) (%S+)$')
    time = entries[at + 1] + 0
    local isThere = string.find('swi', state, 1, true) or time >= oldest
    if isThere and string.find(wanted, state, 1, true) and (context == '' or of == context) and
      (since == '' or time >= since + 0) then
      count = count + 1
      local place = state .. ' ' .. id
      local isBehind = not from or time < from + 0 or time == from + 0 and isBehind(last, place)
      if isBehind and #page < limit then page[#page + 1] = ms(time) .. ' ' .. place end
    end
  end
  if #entries < 1000 then break end
end

return { 'listed', math.min(count, most), unpack(page) }
