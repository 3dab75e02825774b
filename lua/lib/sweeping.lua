-- Reads a handoff that is due: its fields s and x, and what succeed needs of it (SET_ASIDE), if that is read along. Those that are due together are
-- often alike, so the sweep reads it along if the handoff before has field x.
local function readDue(key, along)
  if not along then
    local record = redis.call('HGET', key, 's')
    return record, record and string.sub(record, 1, 2) == '2:' and redis.call('HGET', key, 'x')
  end
  local found = redis.call('HMGET', key, 'd', 'h', 'r', 'c', 'g', 's', 'x')
  local record = found[6]
  return record, record and string.sub(record, 1, 2) == '2:' and found[7], found
end
-- Ends an attempt and makes the next one. The table `attempt` is one for the whole batch.
local function tryAgain(attempt, outbox, key, member, record, extra, told, pause, successors)
  attempt.outbox, attempt.key, attempt.member, attempt.record, attempt.extra, attempt.told, attempt.kept = outbox, key, member, record, extra, told, {}
  local next = succeed(attempt, pause)
  endAttempt(attempt, 'expired', '', next)
  successors[#successors + 1], successors[#successors + 2] = next.due, next.member
end
-- Takes the first members off the due index, except those that go on, and adds the successors: scores and members. That comes last, so that none
-- leaves the index unseen, and what is added comes before what is taken off: an index that is empty in between would be looked for on the other
-- node if its slot is moving. All that is added is behind what is due now. Successors can wait until here, since Redis refuses the first RENAME if
-- the slot is moving, and so the whole script.
local function updateDue(due, seen, going_on, successors)
  if #successors > 0 then redis.call('ZADD', due, unpack(successors)) end
  if #going_on > 0 then redis.call('ZADD', due, unpack(going_on)) end
  local over = seen - #going_on / 2
  if over > 0 then redis.call('ZREMRANGEBYRANK', due, 0, over - 1) end
end
