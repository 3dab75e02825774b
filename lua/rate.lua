#!lua flags=allow-oom
-- Takes requests out of the window of an agent, or (with * as the agent) of all agents of a tenant together. A window
-- begins with its first request. A retried call takes twice: then agents get less than the limit, never more. Runs in a
-- full Redis too (allow-oom), since agents may finish handoffs then.
-- KEYS: 1 prefix:{tag}:r:tenant:agent   the window: when it ends (ms), a space, and how many are taken of it
-- ARGV: 1 the call's deadline (ms)  2 the limit (requests a window)  3 the window (ms)  4 how many are needed now
--       5 how many more to hold for later, at most; a tenth of what is left is the most that is given
-- Replies: {'taken', given, left, now, ends}  given: how many requests the caller may spend until the window ends;
--                                             left: how many remain in the window
--@include late
local key = KEYS[1]
local limit, window, needed, spare = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local ends, taken = string.match(redis.call('GET', key) or '', '^(%d+) (%d+)$')

ends, taken = tonumber(ends or 0), tonumber(taken or 0)
-- The window is over; or it began by a clock that was set back since, and would last too long.
if ends <= now or ends > now + window then ends, taken = now + window, 0 end
-- Another key of the same agent may have a higher limit, and may have taken more than this key's limit.
local left = math.max(0, limit - taken)
local given = math.min(needed, left)
given = given + math.min(spare, math.floor((left - given) / 10))
if given > 0 then redis.call('SET', key, ms(ends) .. ' ' .. ms(taken + given), 'PX', ms(ends - now)) end
return { 'taken', given, left - given, now, ends }
