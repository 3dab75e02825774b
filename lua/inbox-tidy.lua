#!lua flags=allow-oom
-- An inbox that has nothing in a partition any more, or a tenant of which nothing waits, leaves the names. And some of
-- what a replica of an older version ended, moved or decided leaves the set of what is caught, the list of what is
-- delayed and that of what waits for a person, which that version doesn't know, or not here; so do groups.
-- KEYS: 1 prefix:{tag}:inboxes   the names (lib/inbox.lua)
-- ARGV: 1 the call's deadline (ms)  2 tenant:inbox, or tenant:
-- Replies: {'tidied'}
--@include late inbox
local index, name = KEYS[1], ARGV[2]
local partition, tenant = string.sub(index, 1, -8), string.match(name, '^(.*):$')
local list = tenant and partition .. 'w:' .. tenant or partition .. 'i:' .. name

local others = tenant and {} or
  { list .. ':waiting', list .. ':delayed', list .. ':blocked', list .. ':caught', list .. ':failed',
    list .. ':settings', list .. ':per-group', groupKeys(list) }
local isEmpty = redis.call('EXISTS', index, list, unpack(others)) == 1
local caught = tenant and {} or redis.call('SRANDMEMBER', list .. ':caught', 20)
local delayed = tenant and {} or redis.call('ZRANGE', list .. ':delayed', 0, 19)
-- From any place on: the first may all still wait.
local from = tenant and micros % math.max(1, redis.call('ZCARD', list) - 19) or 0
local waiting, decided = tenant and redis.call('ZRANGE', list, from, from + 19) or {}, {}
local ended, left = {}, {}
for _, member in ipairs(waiting) do
  local place = partition
  --@if oneredis
  place = string.gsub(partition, '{.*}', '{' .. string.match(member, ':(...)') .. '}')
  --@end
  local record = redis.call('HGET', place .. 'h:' .. member, 's')
  if not record then isHere(index, place .. 'h:' .. member) end
  if not string.find(record or '', '^[2-5]?:?pending waiting ') then decided[#decided + 1] = member end
end
for at = 1, #caught + #delayed do
  local member = caught[at] or delayed[at - #caught]
  local key = partition .. 'h:' .. member
  local record = redis.call('HGET', key, 's')
  if not record then isHere(index, key) end
  local status = string.match(record or '', '^[2-5]?:?(%l+)')
  if at <= #caught then
    if status ~= 'caught' then ended[#ended + 1] = member end
  elseif status ~= 'pending' or redis.call('ZSCORE', list, member) then
    left[#left + 1] = member
  end
end
local pending = tenant and {} or straysIn(list .. ':groups', partition, 'pending', micros)
local working = tenant and {} or straysIn(list .. ':caught-groups', partition, 'caught', micros)
--@if oneredis
--@else
-- While the slot moves, a second one would look for lists that the first one emptied.
if pending[1] then
  pending, working = { pending[1] }, {}
else
  working = { working[1] }
end
--@end
local limit, place
if #working > 0 then limit, place = perGroupIn(list) end
if isEmpty then redis.call('ZREM', index, name) end
if #decided > 0 then redis.call('ZREM', list, unpack(decided)) end
if #ended > 0 then redis.call('SREM', list .. ':caught', unpack(ended)) end
if #left > 0 then redis.call('ZREM', list .. ':delayed', unpack(left)) end
for _, one in ipairs(pending) do leaveGroup(list, one.group, one.member) end
for _, one in ipairs(working) do
  if leaveCaughtGroup(list, one.group, one.member, seconds .. micros, limit, place) then
    redis.pcall('SPUBLISH', list, 'ended')
  end
end
return { 'tidied' }
