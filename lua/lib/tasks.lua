-- A2A: a task is a work over its attempts. The handoffs that came by A2A have word M, the id of the task: that of its
-- first attempt. Each transition notes what it means for the task, in the same script:
--   prefix:{tag}:task:tenant:id          a hash: the id of its latest attempt; its state, a letter, a space, and since
--                                        when (ms); the number of its last change; its entry in the list; its push
--                                        configs, a line each: a number, which change it was sent last, 0 for none, a
--                                        digest of its id, and the config, JSON; and the number of the newest of them
--   prefix:{tag}:task:tenant:id:changes  its last changes, a sorted set by their number: the number, the state,
--                                        since when (ms), what happened, the attempt's id, when (ms), and what was
--                                        said with it, JSON, or - for none
--   prefix:{tag}:tasks:tenant:inbox:agent  the tasks that an agent sent to an inbox, by when their state began (ms); an
--                                        entry is the state, the id and the context, with spaces between
-- A state is s submitted, w working, i input required, c completed, f failed, r rejected or x canceled. While it goes
-- on they are kept for 40 days more from each change.
--@include calls
local function taskKeys(key, member, extra)
  local task = string.match(extra, ' M(%S+)')
  if not task then return nil end
  local inbox, partition, tenant =
    string.match(extra, ' t(%S+)'), string.match(key, '^[^}]*}:'), string.match(member, '^[^:]+:')
  local name = partition .. 'task:' .. tenant .. task
  return name, name .. ':changes', partition .. 'tasks:' .. tenant .. inbox .. ':', task
end
-- Comes before the first write: while the slot moves, these keys may be on the other node, as callKeys' may.
--@if oneredis
local function openTask() end
local function isTaskHere() return true end
--@else
local function openTask(anchor, key, member, extra)
  local name, changes, list = taskKeys(key, member, extra)
  if name then redis.call('EXISTS', anchor, name, changes, list, callKeys(key, member)) end
end
-- The same for one of several handoffs; once something is written: false if the task can't be written to now.
local function isTaskHere(key, member, extra, is_written)
  if not extra or not string.find(extra, ' M', 1, true) then return true end
  if not is_written then openTask(key, key, member, extra) return true end
  local name, changes, list = taskKeys(key, member, extra)
  return type(redis.pcall('EXISTS', key, name, changes, list, callKeys(key, member))) == 'number'
end
--@end
-- When the time of a handoff was over, text (ms), and of what it ran out.
local function expiryIn(record, extra)
  local approval, expires, deadline = string.match(record, '^[2-5]?:?%l+ (%l+) %d+ (%d+) %S+ %S+ ?%d* ?(%d*)')
  if deadline == '' then return expires, approval == 'waiting' and 'not_decided' or 'not_caught' end
  local beat = extra and string.match(extra, ' h(%d+)')
  if beat and tonumber(beat) < tonumber(deadline) then return beat, 'stalled' end
  return deadline, 'not_done'
end
-- How many copies of its result a handoff keeps for the push configs of its task.
local function pushesOf(key, member, extra)
  local name = taskKeys(key, member, extra)
  local _, lines = string.gsub(name and redis.call('HGET', name, 'pushes') or '', '\n', '')
  return lines
end
