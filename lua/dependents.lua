#!lua flags=allow-oom
-- Names some of those that come after a handoff, once it has ended. Each is released by a call of its own
-- (release.lua), and forgotten by the next of these. Names also those that the handoff itself still waited for, which
-- have notes of that (forget.lua). With the last of them the handoff leaves the due index.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:d:tenant:id   its dependents (lib/after.lua)
--       3 prefix:{tag}:due:tenant    its tenant's live handoffs (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 tenant:id
--       3 those that were released, as they stand in the set, separated by spaces
--       4 1 if no notes are left at those that it waited for; else 0
-- Replies: {'dependents', status, waited_for, dependent, …}  how it ended, or gone; the ids that it waited for,
--                        separated by spaces; up to 100 that come after it
--          {'open'}      it hasn't ended; nothing changed
--          {'newer'}
--@include late inbox after
local key, dependents, due, member = KEYS[1], KEYS[2], KEYS[3], ARGV[2]
local record, extra, words = unpack(redis.call('HMGET', key, 's', 'x', 'b'))
local released, waited_for = {}, ''
for dependent in string.gmatch(ARGV[3], '%S+') do released[#released + 1] = dependent end

local status = string.match(record or '', RECORD)
if record and not status then return { 'newer' } end
if status == 'pending' or status == 'caught' then return { 'open' } end
if ARGV[4] == '0' and words and leftOpen(extra, status) > 0 then waited_for = openOnes(words) end
redis.call('EXISTS', dependents, due)
local left = redis.call('SCARD', dependents)
if #released > 0 then left = left - redis.call('SREM', dependents, unpack(released)) end
local found = left > 0 and redis.call('SRANDMEMBER', dependents, 100) or {}
if left == 0 and waited_for == '' then redis.call('ZREM', due, member) end
return { 'dependents', status or 'gone', waited_for, unpack(found) }
