-- What each transition notes of its A2A task (lib/tasks.lua). A script includes this where it needs it: few handoffs
-- have a task, and each call would make these functions.
--@include calls
local TASK_KEPT = 3456000000
local TASK_CHANGES = 200
local TASK_WORDS = 16384
-- The states that others follow, and what leads to a state whatever the handoff is else.
local TASK_OPEN = 'swi'
local TASK_STATES = ' caught/w answered/w ask_ended/w done/c rejected/r cancelled/x expired/f failed/f declined/r'
-- What a transition makes of its task's state. `goes_on`: a successor of the same step goes on with the work.
local function taskState(before, happened, task, id, extra, goes_on)
  if happened == 'passed' then return task == id and 's' or 'w' end
  if happened == 'asked' then return string.find(extra, ' z[^/ ]+/r') and 'i' or 'w' end
  if goes_on then return 'w' end
  if (happened == 'failed' or happened == 'declined') and string.find(extra, ' q', 1, true) then return 'x' end
  return string.match(TASK_STATES, ' ' .. happened .. '/(%l)') or before
end
-- When a transition was due: the sweep may come later than what it notices.
local function dueAt(type, record, extra, now)
  local at = type == 'expired' and expiryIn(record, extra) or
    type == 'ask_ended' and string.match(extra, ' z[^ ]*/[ew](%d+)')
  return math.min(now, tonumber(at or now))
end
-- What an agent or a person said with it: a progress, a question, an error, a reason, a note; and why it expired.
local TASK_SAID = { progress = 'g', asked = 'q', failed = 'e', declined = 'e', rejected = 'd', cancel_requested = 'c' }
local function taskWords(key, type, record, extra)
  if type == 'expired' then return '"' .. select(2, expiryIn(record, extra)) .. '"' end
  local field = TASK_SAID[type]
  local said = field and redis.call('HGET', key, field)
  if field == 'g' then said = string.match(said or '', ' (.*)$') end
  if field == 'd' then said = string.match(said or '', '^%S+ %S+ %S+ (.*)$') end
  return said and lengthOf(said) <= TASK_WORDS and said or '-'
end
-- An old progress goes first: a reader that comes late misses that least.
local function shortenChanges(changes)
  if redis.call('ZCARD', changes) <= TASK_CHANGES then return end
  for from = 0, TASK_CHANGES, 16 do
    for _, change in ipairs(redis.call('ZRANGE', changes, from, from + 15)) do
      if string.find(change, '^%d+ %l %d+ progress ') then return redis.call('ZREM', changes, change) end
    end
  end
  redis.call('ZREMRANGEBYRANK', changes, 0, 0)
end
-- An entry whose task has ended, and is gone, leaves when another one comes.
local function enterTasks(list, before, entry, since, now)
  if before then redis.call('ZREM', list, before) end
  redis.call('ZADD', list, since, entry)
  local oldest = redis.call('ZRANGE', list, 0, 2, 'WITHSCORES')
  for at = 1, #oldest, 2 do
    local isOpen = string.find(TASK_OPEN, string.sub(oldest[at], 1, 1), 1, true)
    if not isOpen and oldest[at + 1] + 0 < now - RETENTION and oldest[at] ~= entry then
      redis.call('ZREM', list, oldest[at])
    end
  end
  redis.call('PEXPIREAT', list, ms(now + TASK_KEPT))
end
-- What a push config is sent of a change: the task's id, who passed it, its context and the change. `entry` is the
-- task's in the list.
local function pushSaid(member, passed_by, entry, change)
  return string.match(member, ':(.*)$') .. ' ' .. passed_by .. ' ' .. string.match(entry, '(%S+)$') .. ' ' .. change
end
-- `line` is a push config's, `member` the task's, `first` the work's first attempt, `result` what it was done with.
local function notePush(of, member, first, line, said, time, result)
  local number, config = string.match(line, '^(%d+) %d+ %S+ (.*)$')
  local id = 'a2a_' .. redis.sha1hex(member .. ' ' .. number .. ' ' .. time .. ' ' .. said)
  keepCall(of, member, id, time, { 'o', config, 'e', 'a2a ' .. number .. ' ' .. said, 'c', '-', 'x', first }, result)
end
-- `of` is a key of the partition, `extra` the handoff's field x as it is now, `result` what done was given.
local function noteTask(of, micros, type, member, record, extra, goes_on, result)
  -- A successor that begins another task says so by its pass.
  if type == 'reissued' or type == 'approval_requested' then return end
  local name, changes, list, task = taskKeys(of, member, extra)
  local id, now = string.match(member, ':(.*)$'), math.floor(micros / 1000)
  local passed_by = string.match(record, '^%S+ %S+ %d+ %d+ (%S+)')
  local stands, number, entry, pushes = unpack(redis.call('HMGET', name, 'state', 'number', 'entry', 'pushes'))
  local before, since = string.match(stands or '', '^(%l) (%d+)$')
  local state = taskState(before or 'w', type, task, id, extra, goes_on)
  if state ~= before then since = ms(dueAt(type, record, extra, now)) end
  number = tonumber(number or 0) + 1
  local context = string.match(extra, ' ja2a%.context:(%S+)') or '-'
  local listed = state .. ' ' .. task .. ' ' .. context
  redis.call('HSET', name, 'latest', id, 'state', state .. ' ' .. since, 'number', ms(number), 'entry', listed)
  local stood = ' ' .. state .. ' ' .. since .. ' '
  local change = ms(number) .. stood .. type .. ' ' .. id .. ' ' .. ms(now) .. ' ' ..
    taskWords(string.match(of, '^[^}]*}:') .. 'h:' .. member, type, record, extra)
  redis.call('ZADD', changes, ms(number), change)
  shortenChanges(changes)
  local ends = ms(now + (string.find(TASK_OPEN, state, 1, true) and TASK_KEPT or RETENTION))
  redis.call('PEXPIREAT', name, ends)
  redis.call('PEXPIREAT', changes, ends)
  if listed ~= entry then enterTasks(list .. passed_by, entry, listed, since, now) end
  if pushes and state ~= before then
    local of_task = string.match(name, ':task:(.*)$')
    for line in string.gmatch(pushes, '[^\n]+') do
      notePush(of, of_task, originOf(extra, member), line, pushSaid(of_task, passed_by, listed, change), ms(now),
        state == 'c' and result)
    end
  end
  redis.pcall('SPUBLISH', name, ms(number))
end
