#!lua flags=allow-oom
-- Takes schedules that are due, for a while: then another replica may take them. Two that have the same one at once do
-- no harm (lib/ticks.lua), and only the one that took it last notes what became of it.
-- KEYS: 1 prefix:{tag}:schedules   the schedules of this partition, by when each is looked at next
-- ARGV: 1 the call's deadline (ms)  2 how many at most  3 for how long (ms)  4 which replica asks
--       5 what their keys begin with: prefix:{tag}:schedule:
-- Replies: {'due', now, first, lock, {tenant:name, fields, is_fresh}, …}  first: when the first of the others is looked
--                   at (ms), empty for none; the fields as schedule-put.lua has them; is_fresh: 1 if its tick begins
--                   now, 0 if it was begun before; lock: the name of a key that this replica lacks and that sealed
--                   one that is due, empty for none. Such ones are left to other replicas
--@include late locks
local due, limit, lease, who, prefix = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local taken, room = {}, 1048576
-- So many that are locked stay where they are; others are looked at so much later (ms), so that no look is long.
local left, most_left, pause, lock = 0, 32, 60000, ''
while #taken < limit and room > 0 do
  local head = redis.call('ZRANGE', due, left, left, 'WITHSCORES')
  local member = head[1]
  if not member or tonumber(head[2]) > now then break end
  local schedule = prefix .. member
  redis.call('EXISTS', due, schedule)
  local next, home, claim, round, key = unpack(redis.call('HMGET', schedule, 'next', 'home', 'claim', 'round', 'lock'))
  if not home or (next == '' and claim == '') then
    redis.call('ZREM', due, member)
  elseif key and key ~= '' and isMissing(key) then
    lock = key
    if left < most_left then left = left + 1 else redis.call('ZADD', due, ms(now + pause), member) end
  else
    local is_fresh = claim == ''
    local tick, count, begun = next .. ' ' .. home .. ' ', 1, round and ' ' .. round or ''
    -- What the one that took it before found out says nothing any more: its note is refused.
    if not is_fresh then
      tick, count, begun = string.match(claim, '^(%S+ %S+ )%S+/(%d+)(.*)$')
      count = ms(count + 1)
    end
    redis.call('HSET', schedule, 'claim', tick .. who .. '/' .. count .. begun)
    redis.call('ZADD', due, ms(now + lease), member)
    local fields = redis.call('HGETALL', schedule)
    for at = 2, #fields, 2 do room = room - #fields[at] end
    taken[#taken + 1] = { member, fields, is_fresh and 1 or 0 }
  end
end
local head = redis.call('ZRANGE', due, left, left, 'WITHSCORES')
return { 'due', now, head[2] or '', lock, unpack(taken) }
