#!lua
-- Notes where a search ended, so that the next one like it goes on there; or that it came to the list's end.
-- KEYS: 1 prefix:{tag}:search:digest   a place in a list, by a digest of who searches and for what
-- ARGV: 1 the call's deadline (ms)  2 the place; empty at the end  3 how long it is kept (ms)
-- Replies: {'noted'}
--          {'late'}   the call's deadline is over; nothing changed
if clock() > ARGV[1] + 0 then return { 'late' } end

if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return { 'noted' }
