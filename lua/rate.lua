#!lua flags=allow-oom
-- Takes requests out of what an agent may make in its window, which begins with the first of them. Asked twice it takes twice: what
-- is lost so is refused to the agent, and never is more given than the limit. Who may finish a handoff when Redis is full may do this (allow-oom).
-- KEYS: 1 prefix:{tag}:r:tenant:agent   the window: when it ends (ms) and how many are taken of it, parted by one space
-- ARGV: 1 the call's deadline (ms)  2 the limit (requests a window)  3 the window (ms)  4 how many are needed now
--       5 how many more to hold for later, at the most; a tenth of what is left then is the most that is given
-- Replies: {'taken', given, left, now, ends}  so many are the asker's until the window ends, and so many are left in it for whoever asks next
--          {'late'}                          the call's deadline is over; nothing changed
local key = KEYS[1]
local limit, window, needed, spare = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local now = clock()
local ends, taken = string.match(redis.call('GET', key) or '', '^(%d+) (%d+)$')

if late(ARGV[1], now) then return { 'late' } end

ends, taken = tonumber(ends or 0), tonumber(taken or 0)
-- Over, or begun by a clock that has been set back since, which would make it last for as long as that.
if ends <= now or ends > now + window then ends, taken = now + window, 0 end
-- Another key of the same agent may have a higher limit, and have taken more than this one's.
local left = math.max(0, limit - taken)
local given = math.min(needed, left)
given = given + math.min(spare, math.floor((left - given) / 10))
if given > 0 then redis.call('SET', key, ms(ends) .. ' ' .. ms(taken + given), 'PX', ms(ends - now)) end
return { 'taken', given, left - given, now, ends }
