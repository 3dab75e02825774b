-- The call's deadline, in Redis's time, comes first. So nothing that was given up happens later.
local now, seconds, micros, formatted = clock()
if now > ARGV[1] + 0 then return { 'late' } end
