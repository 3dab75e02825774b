#!lua
-- caught -> caught: its catcher is still at work.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: 1 the call's deadline (ms)  2 the calling agent  3 retention (ms)  4 extend_by (ms); empty to keep the deadline
--       5 the longest work time from its catch (ms)  6 what the worker calls itself; empty if it says nothing
--       7 the progress, JSON text; empty for none; but where 8 is there, how many of its bytes are the progress, a
--         space, and what a sealed checkpoint is bound to: the id of the first attempt, as far as the call knows; -
--         for one that isn't sealed
--       8 the progress, and behind it the checkpoint, JSON text
-- Replies: {'caught', deadline, beat, requested, cancel_reason, record, extra, now}  it is this agent's. deadline: by
--                        when it must be done; beat: by when the next heartbeat must come, nil if none must; requested:
--                        1 if its passer asked to cancel it, else 0; the reason is nil if none was given; the parts
--                        after it are there only once its catcher has asked something
--          {'not_found'} {'replayed'}  the latter never: a heartbeat has no token, and may be sent again
--          {'expired', now, record, extra} {'rejected', now, record, extra, decision} {'cancelled', …}
--          {'not_caught', …} {'not_the_catcher', …} {'already_done', …} {'already_failed', …} {'already_declined', …}
--          {'origin', first}  another one is the first attempt; nothing changed
--          {'newer'} {'full'}
--@include appending inbox work asking
--@if several
local PAYLOAD = 3
--@include several
--@end
local key = KEYS[1]
local agent, retention, extend_by, max, worker, progress = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local checkpoint, first
if ARGV[8] then
  progress, first = string.match(progress, '^(%d+) (%S+)$')
  checkpoint, progress = string.sub(ARGV[8], progress + 1), string.sub(ARGV[8], 1, progress)
end
--@include late
local record, extra, reason = unpack(redis.call('HMGET', key, 's', 'x', 'c'))

local refusal = unheld(key, record, extra, agent, '', now)
if refusal then return refusal end
local origin = checkpoint and originOf(extra, string.match(key, MEMBER))
if origin and first ~= '-' and origin ~= first then return { 'origin', origin } end
--@if full
if isFull(#progress - redis.call('HSTRLEN', key, 'g') +
  (checkpoint and #checkpoint - redis.call('HSTRLEN', key, 'k') or 0)) then return { 'full' } end
--@end

-- While its question is open, no deadline is near: what is left of the work's is only counted from the question's end.
local asked = string.find(extra or '', ' z', 1, true)
local id, of, when, expires, left = openQuestion(asked and extra)
local is_open = id and now < tonumber(expires)
local before, caught, deadline, rest = string.match(record, '^[24]?:?(%l+ %S+ %d+ %d+ %S+ %S+) (%d+) (%d+)(.*)$')
local plain, changed = not extra, false
extra = extra or ''
if progress ~= '' and string.find(extra, ' M', 1, true) then
  --@include tasks
  openTask(key, key, string.match(key, MEMBER), extra)
end
if extend_by ~= '' then
  local extended = math.min(is_open and expires + left + extend_by or now + extend_by, caught + max)
  if is_open then
    extra = string.gsub(extra, ' z%S+',
      ' z' .. id .. '/' .. of .. '/' .. when .. '/' .. expires .. '/o' .. ms(left + extend_by))
  end
  if extended > tonumber(deadline) then
    deadline, changed = ms(extended), true
    if not string.match(extra, ' f') then extra = extra .. ' f1' end
    keepWork(key, extended, retention, extra)
  end
end
local within, beat = string.match(extra, ' b(%d+)'), false
if within then
  beat = math.min((is_open and expires or now) + within, tonumber(deadline))
  extra = string.gsub(extra, ' h%d+', '') .. ' h' .. ms(beat)
end
extra = string.gsub(extra, ' v%d+', '') .. ' v' .. ms(now)
if worker ~= '' then extra = withWorker(extra, worker) end
if checkpoint then extra = withCheckpoint(extra, agent, now) end
-- The due index stays as it is: the sweep comes too early, looks at the record, and moves the entry on.
if changed or plain then
  redis.call('HSET', key, 's', markOf(record) .. before .. ' ' .. caught .. ' ' .. deadline .. rest, 'x', extra)
else
  redis.call('HSET', key, 'x', extra)
end
if progress ~= '' then
  redis.call('HSET', key, 'g', ms(now) .. ' ' .. progress)
  if string.find(extra, ' M', 1, true) then
    --@include tasks task-notes
    noteTask(key, seconds .. micros, 'progress', string.match(key, MEMBER), record, extra)
  end
end
if checkpoint then redis.call('HSET', key, 'k', checkpoint) end
local reply = { 'caught', tonumber(deadline), beat, string.match(extra, ' q') and 1 or 0, reason,
  unpack(asked and { record, extra, now } or {}) }
--@include reply
