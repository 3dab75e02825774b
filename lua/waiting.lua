#!lua flags=no-writes
-- Lists what waits for a person, oldest first, from a place on; moves nothing.
-- KEYS: 1 prefix:{tag}:w:tenant   handoffs that wait for a person, by when they were passed
-- ARGV: 1 when the last one seen was passed (ms); 0 for the start  2 its tenant:id; empty for the start
--       3 how many at most  4 prefix:{tag}:
-- Replies: {'listed', more, member, record, task, member, record, task, …}  more is 1 where the list goes on
-- The handoffs' keys are made here, from the members: all carry the partition's tag, so all lie in the slot of KEYS[1].
local waiting = KEYS[1]
local since, after, limit, prefix = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local now = clock()
local reply = { 'listed', 0 }
-- By place, not by number: those before may have gone, those behind be new. Of one millisecond they stand by name.
local rank = redis.call('ZCOUNT', waiting, '-inf', '(' .. since)
repeat
  local members = redis.call('ZRANGE', waiting, rank, rank + limit, 'WITHSCORES')
  for i = 1, #members, 2 do
    local member = members[i]
    if tonumber(members[i + 1]) > tonumber(since) or member > after then
      local record, task = unpack(redis.call('HMGET', prefix .. 'h:' .. member, 's', 't'))
      local expires = record and select(4, string.match(record, RECORD))
      -- One that is over and not yet swept waits no more.
      if task and now < tonumber(expires) then
        if #reply >= 2 + 3 * limit then
          reply[2] = 1
          return reply
        end
        for _, part in ipairs({ member, record, task }) do reply[#reply + 1] = part end
      end
    end
  end
  rank = rank + limit + 1
until #members == 0
return reply
