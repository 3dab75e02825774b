#!lua
-- Keeps a push config of an A2A task, in place of the one with its id (lib/tasks.lua).
-- KEYS: 1 prefix:{tag}:task:tenant:id   the task
-- ARGV: 1 the call's deadline (ms)  2 the config's id  3 the config, JSON without line breaks
--       4 how many configs a task may have  5 who passed the task
--       6 the number of a change: a new config is sent what changed the state after that; empty for nothing
-- Replies: {'kept'}
--          {'many'}   the task has as many as it may; nothing changed
--          {'not_found'}
--@include late
local task, id, config, since = KEYS[1], redis.sha1hex(ARGV[2]), ARGV[3], tonumber(ARGV[6])

local latest, lines, newest, entry = unpack(redis.call('HMGET', task, 'latest', 'pushes', 'pushed', 'entry'))
if not latest then return { 'not_found' } end
local others, standing, count = '', nil, 0
for line in string.gmatch(lines or '', '[^\n]+') do
  local found, digest = string.match(line, '^(%d+ %d+) (%S+)')
  if digest == id then standing = found else others, count = others .. line .. '\n', count + 1 end
end
if not standing and count >= ARGV[4] + 0 then return { 'many' } end

--@include tasks task-notes
local partition, member = string.match(task, '^([^}]*}:)task:(.+)$')
-- Comes before the first write (openTask in lib/tasks.lua).
redis.call('EXISTS', task, task .. ':changes', callKeys(task, member))
local changes, result = {}, nil
local handoff = partition .. 'h:' .. string.match(member, '^[^:]+:') .. latest
local first = originOf(since and redis.call('HGET', handoff, 'x'), ':' .. latest)
if since and not standing then
  changes = redis.call('ZRANGE', task .. ':changes', ms(since), '+inf', 'BYSCORE')
  if string.sub(entry, 1, 1) == 'c' then
    result = redis.call('HGET', handoff, 'p')
    -- Without a result it is empty.
    if result == '' then result = nil end
  end
end
if not standing then
  newest = ms((newest or 0) + 1)
  standing = newest .. ' 0'
end
local line = standing .. ' ' .. id .. ' ' .. config
redis.call('HSET', task, 'pushes', others .. line .. '\n', 'pushed', newest)
local before
for _, change in ipairs(changes) do
  local number, state, time = string.match(change, '^(%d+) (%l) %d+ %S+ %S+ (%d+)')
  if number + 0 > since and state ~= before then
    notePush(task, member, first, line, pushSaid(member, ARGV[5], entry, change), time, state == 'c' and result)
  end
  before = state
end
return { 'kept' }
