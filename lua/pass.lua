#!lua
-- (none) -> pending.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:due           live handoffs by when the sweep is to look at them
--       3 prefix:{tag}:w:tenant      handoffs that wait for a person, if one must approve; else, for an inbox, its list
--         prefix:{tag}:i:tenant:inbox; else absent
--       4 prefix:{tag}:i:tenant:inbox:waiting   what is for that inbox and waits for a person, by when it expires; only if both apply
-- ARGV: 1 the call's deadline (ms)  2 pass_token, with /traceparent if there is one  3 passed_by  4 expires_in (ms)  5 retention (ms)
--       6 tenant:id                  7 what a plain handoff doesn't have, in words like field x's. But a is a duration: how long it can't be
--                                      caught (ms). And only here: l how much of the task, from its quote on, the waiting list keeps (bytes),
--                                      h the payload's digest, z how many bytes at the payload's end are the result schema. Empty for
--                                      none; ? only asks whether the handoff was made before
--       8 the payload
-- Replies: {'passed', created, expires, available}    it is pending now; available is nil if it can be caught at once
--          {'replayed', created, expires, available}  the same operation made it before; nothing changed
--          {'reused'}                      another operation made it: the Idempotency-Key came with another body
--          {'fresh'}                       it doesn't exist, and wasn't made now
--          {'newer'}                       a newer version made it; nothing changed
--          {'late'}                        the call's deadline is over; nothing changed
local key, due, list, undecided = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, passed_by, expires_in, retention, member = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local options, payload = ARGV[7], ARGV[8]
local now, micros = clock()
local record = redis.call('HGET', key, 's')

if late(ARGV[1], now) then return { 'late' } end
if record then
  local _, _, created, expires, _, made_by = string.match(record, RECORD)
  if not made_by then return { 'newer' } end
  -- A retry has a trace of its own but is the same operation; the first trace stays.
  if string.match(made_by, OPERATION) ~= string.match(token, OPERATION) then return { 'reused' } end
  local extra = string.sub(record, 1, 2) == '2:' and redis.call('HGET', key, 'x')
  local available = extra and string.match(extra, ' a(%d+)')
  return { 'replayed', tonumber(created), tonumber(expires), available and tonumber(available) or nil }
end

if options == ' ?' then return { 'fresh' } end
local outbox = openOutbox(due, key, member)
local expires = now + expires_in
local until_expiry = ms(expires)
local kept = list and string.match(options, ' l(%d+)')
local approval = kept and 'waiting' or 'none'
local words = ms(now) .. ' ' .. until_expiry .. ' ' .. passed_by .. ' ' .. token
local extra, available, schema = '', nil, nil
if options ~= '' then
  extra = string.gsub(options, ' [ahlz]%S+', '')
  local delay, length = string.match(options, ' a(%d+)'), string.match(options, ' z(%d+)')
  if delay then
    available = now + delay
    extra = extra .. ' a' .. ms(available)
  end
  if length then schema, payload = string.sub(payload, -length), string.sub(payload, 1, -length - 1) end
end
record = 'pending ' .. approval .. ' ' .. words
if extra == '' then
  redis.call('HSET', key, 's', record, 'p', payload)
else
  redis.call('HSET', key, 's', '2:' .. record, 'p', payload, 'x', extra, unpack(schema and { 'r', schema } or {}))
end
redis.call('PEXPIREAT', key, ms(expires + retention))
-- A handoff that enters its inbox later is due at that time: then the sweep adds it.
redis.call('ZADD', due, list and available and (undecided or not kept) and ms(available) or until_expiry, member)
if kept then
  -- The payload begins with "task": and the task, a JSON string. The part of it that is kept is a JSON string too.
  redis.call('HSET', key, 't', string.sub(payload, 8, 7 + kept) .. '"', 'h', string.match(options, ' h(%S+)'))
  redis.call('ZADD', list, now, member)
  redis.call('SPUBLISH', list, 'pending')
  if undecided then redis.call('ZADD', undecided, until_expiry, member) end
elseif list and not available then
  enterInbox(list, member, extra, micros)
end
tell(outbox, micros, 'passed', member, record, extra, '-')
return { 'passed', now, expires, available }
