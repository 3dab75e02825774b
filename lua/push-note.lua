#!lua flags=allow-oom
-- Notes which change of an A2A task a push config was sent last, or takes the config away (lib/tasks.lua).
-- KEYS: 1 prefix:{tag}:task:tenant:id   the task
-- ARGV: 1 the call's deadline (ms)  2 the config's number  3 the change's number; empty takes the config away
-- Replies: {'noted'}
--          {'unknown'}   the task has no such config; nothing changed
--@include late
local task, wanted, sent = KEYS[1], ARGV[2], ARGV[3]
local left, known = '', false
for line in string.gmatch(redis.call('HGET', task, 'pushes') or '', '[^\n]+') do
  local number, before, rest = string.match(line, '^(%d+) (%d+) (.*)$')
  if number ~= wanted then
    left = left .. line .. '\n'
  else
    known = true
    if sent ~= '' then left = left .. number .. ' ' .. ms(math.max(before + 0, sent + 0)) .. ' ' .. rest .. '\n' end
  end
end

if not known then return { 'unknown' } end
redis.call('HSET', task, 'pushes', left)
return { 'noted' }
