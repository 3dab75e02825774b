#!lua
-- (none) -> pending.
-- KEYS: 1 prefix:{tag}:h:tenant:id  the handoff  2 prefix:{tag}:due:tenant  its tenant's live handoffs (lib/due.lua)
--       3 prefix:{tag}:w:tenant      handoffs that wait for a person; left out, with the next one in its place, if
--                                    no person must approve
--       4 prefix:{tag}:i:tenant:inbox   the inbox that it is for (lib/inbox.lua); left out likewise
-- ARGV: 1 the call's deadline (ms)  2 passed_by, a space, and pass_token, with /traceparent if there is one
--       3 expires_in (ms)
--       4 a plain handoff's payload; of another one its options, in words of a letter and a value (lib/record.lua,
--         "word of pass"), or ? first: was the handoff made before?
--       5 the payload, if the handoff isn't plain; after it the schema, field b and field o, if there are
--         (lib/record.lua)
-- Replies: (now)           it is pending, and can be caught at once; it expires expires_in later
--          {'passed', created, expires, available, blocked}    it is pending, and can be caught later; available and
--                                          blocked are nil if they don't apply; blocked: how many others it waits for
--          {'replayed', created, expires, available, blocked}  the same operation made it before; nothing changed
--          {'inbox_full'}  its inbox has max_pending handoffs; nothing changed
--          {'reused'}      another operation made it: the Idempotency-Key came with another body
--          {'fresh'}       it doesn't exist, and wasn't made now
--          {'ticked'}      it is a schedule's, and its tick has run, or never will (lib/ticks.lua); nothing changed
--          {'newer'}
--@include appending
--@if several
local PAYLOAD = 3
--@include several
if ARGV[5] then advance() end
--@end
local call, key, due, waiting, inbox = redis.call, KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local words, options, payload = ARGV[2], '', ARGV[4]
if ARGV[5] then options, payload = payload, ARGV[5] end
--@include late
-- Its tenant's index, asked for twice, counts for two.
local found = call('EXISTS', key, due, due)
local record = found % 2 == 1 and call('HGET', key, 's')

if record then
  local _, _, created, expires, _, made_by = string.match(record, RECORD)
  if not made_by then return { 'newer' } end
  -- A retry has a trace of its own but is the same operation; the first trace stays.
  local token, others = string.match(words, ' ([^/]+)'), string.match(options, ' k(%S+)')
  if not isAmong(others and token .. ',' .. others or token, string.match(made_by, OPERATION)) then
    return { 'reused' }
  end
  local extra = string.sub(record, 2, 2) == ':' and call('HGET', key, 'x')
  local available = extra and string.match(extra, ' a(%d+)')
  local shown = tonumber(extra and string.match(extra, ' A%l/%d+/([1-9]%d*)') or nil)
  return { 'replayed', tonumber(created), tonumber(expires), available and tonumber(available) or not shown and nil,
    shown }
end

-- Words that are more than field x. Most passes have none, and one search for them all takes less than one for each.
local rare = options ~= '' and string.find(options, ' [aklzACEKM?]')
local kind, making, tick, round, mark, ticked
if rare then
  if string.sub(options, 1, 2) == ' ?' then return { 'fresh' } end
  kind, making, tick, round = string.match(options, ' K(%l)/(%d+)/(%d+)/(%d+)')
  if kind then
    --@include ticks
    mark, ticked = ticksBeside(key, options)
    if hasTicked(due, mark, ticked, kind, making, tick, round) then return { 'ticked' } end
  end
end
local kept = rare and string.match(options, ' l(%d+)')
if not kept then inbox = waiting end
local settings = inbox and call('GET', inbox .. ':settings')
if settings then
  --@include inbox
  local limit = string.match(settings, '^%d %d+ (%d+)') + 0
  if limit > 0 and pendingIn(inbox, now) >= limit then return { 'inbox_full' } end
end
local member, expires = string.sub(key, string.find(key, BEFORE_MEMBER, 1, true) + 4), now + ARGV[3]
local until_expiry = string.format('%d', expires)
local extra, available, blocked, shown, beginning
record = (kept and 'pending waiting ' or 'pending none ') .. formatted .. ' ' .. until_expiry .. ' ' .. words
if options == '' then
  --@if events
  appendPlain(due, due, member, 1, seconds .. micros, 'passed pending ', string.match(words, '%S+'), '-')
  --@end
  call('HSET', key, 's', record, 'p', payload)
else
  --@include events
  local outbox = openOutbox(due, key, member)
  -- This handoff itself isn't there yet.
  if rare and string.find(options, ' M', 1, true) then openTask(due, key, member, options) end
  if kind then
    --@include ticks
    noteTicked(mark, ticked, kind, making, tick, round, now)
  end
  local fields = { 's', record, 'p', payload }
  if rare then
    --@include passing
    beginning = takeParts(fields, options)
    extra, available, blocked, shown = extraOf(options, now, formatted)
  else
    extra = string.gsub(options, ' n%S+', '')
    local title = string.match(options, ' n(%d+)')
    -- A JSON string, which begins with the payload's eighth byte.
    if title then fields[5], fields[6] = 'n', string.sub(payload, 8, 7 + title) end
  end
  if extra ~= '' then
    record = markOf(rare and string.find(options, ' E', 1, true) and '4:' or '2:', blocked) .. record
    fields[2], fields[#fields + 1], fields[#fields + 2] = record, 'x', extra
  end
  if string.find(extra, ' J', 1, true) then
    --@include runs
    beginRuns(openRuns(key, member, extra), member,
      blocked and formatted or available and ms(available) or until_expiry, expires, now, seconds .. micros)
  end
  call('HSET', key, unpack(fields))
  append(outbox, seconds .. micros, 'passed', member, record, extra, '-')
  if kept then
    append(outbox, seconds .. micros, 'approval_requested', member, record, extra, '-', ' e' .. until_expiry)
  end
end
call('PEXPIREAT', key, string.format('%d', expires + RETENTION))
-- A delayed handoff is due at the end of its delay: then the sweep adds it to its inbox, and moves it on. A blocked one
-- is due now: the sweep checks the others again, since one may have ended between the look at them and this pass.
local looked_at = blocked and formatted or available and string.format('%d', available) or until_expiry
if found == 0 then
  call('ZADD', due, looked_at, member, 'inf', '-')
else
  call('ZADD', due, looked_at, member)
end
if found == 0 or (blocked and now or available or expires) < now + LOOK then
  local prefix, tenant = string.match(due, '^([^}]*}:)due:(.*)$')
  call('ZADD', prefix .. 'tenants', 'LT', string.format('%d', math.min(looked_at, now + LOOK)), tenant)
end
if kept then
  call('HSET', key, 't', beginning, 'h', string.match(options, ' h(%S+)'))
  call('ZADD', waiting, formatted, member)
  redis.pcall('SPUBLISH', waiting, 'pending')
  call('ZADD', string.match(waiting, '^[^}]*}:') .. 'inboxes', 0, string.match(member, '^[^:]+:'))
end
if inbox then
  --@include inbox
  enterPart(inbox, member, extra, seconds .. micros, kept and until_expiry, available and ms(available),
    blocked and until_expiry)
end
local reply = (available or shown) and { 'passed', now, expires, available or not shown and nil, shown } or now
--@include reply
