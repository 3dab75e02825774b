#!lua flags=allow-oom
-- Names some dependents of a handoff that has ended. A call of its own releases each (release.lua), and the next call
-- of this script forgets it. Names also the handoffs that this one still waited for, which have notes about it
-- (forget.lua). After the last ones the handoff leaves the due index.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:d:tenant:id   its dependents (lib/after.lua)
--       3 prefix:{tag}:due:tenant    its tenant's live handoffs (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 tenant:id
--       3 the dependents that were released, as the set has them, separated by spaces
--       4 1 if no notes are left at the handoffs that it waited for; else 0
-- Replies: {'dependents', status, waited_for, dependent, …}  how it ended, or gone; the ids that it waited for,
--                        separated by spaces; up to 100 dependents
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
