#!lua flags=allow-oom
-- Blocks the tokens of a subject, or no longer. Runs in a full Redis too (allow-oom): who is blocked must be out then.
-- KEYS: 1 prefix:{tag}:blocked   whose tokens are blocked: issuer, space, subject, both percent-encoded; by until when
--                               (ms), or inf
--       2 prefix:{tag}:keys:log  the log of changes of keys, limits and blocked tokens
-- ARGV: 1 the call's deadline (ms)  2 whose  3 for how long (ms); inf for good; empty: no longer
--       4 how many may be blocked  5 the author
-- Replies: {'set', before, until}  from now on; before: until when it was blocked, nil for not; until: likewise
--          {'blocks_full'}         ARGV 4 are blocked; nothing changed
--@include late
local blocked, log = KEYS[1], KEYS[2]
local subject, lasts, max, by = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local before = redis.call('ZSCORE', blocked, subject)
if before and tonumber(before) <= now then before = nil end
local ends = lasts == 'inf' and 'inf' or lasts ~= '' and ms(now + lasts) or nil

if not ends and not before then return { 'set', before, ends } end
if ends and not before and redis.call('ZCOUNT', blocked, '(' .. ms(now), '+inf') >= max then
  return { 'blocks_full' }
end

local over = redis.call('ZRANGE', blocked, '-inf', ms(now), 'BYSCORE', 'LIMIT', 0, 100)
if #over > 0 then redis.call('ZREM', blocked, unpack(over)) end
if ends then redis.call('ZADD', blocked, ends, subject) else redis.call('ZREM', blocked, subject) end
redis.call('XADD', log, 'MAXLEN', '~', 1000, '*', 'action', ends and 'token blocked' or 'token unblocked',
  'tenant', '', 'agent', '', 'subject', subject, 'until', ends or '', 'by', by)
redis.pcall('SPUBLISH', log, 'block')
return { 'set', before, ends }
