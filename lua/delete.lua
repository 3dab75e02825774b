#!lua flags=allow-oom
-- Deletes a note: a session ends; a search came to its list's end; a request to an inbox took no handoff, and an answer
-- without one isn't remembered by its Idempotency-Key.
-- KEYS: 1 prefix:{tag}:s:digest or search:digest, q:token, n:token   in the form of get.lua, claim.lua or take.lua
-- ARGV: 1 the call's deadline (ms)  2 how the note must begin; empty for any
--       3 what is published on the channel with the key's name; empty for nothing
-- Replies: {'deleted'}   the note is gone, or a different one is there
--@include late
local key, beginning, message = KEYS[1], ARGV[2], ARGV[3]

if beginning == '' or string.sub(redis.call('GET', key) or '', 1, #beginning) == beginning then
  redis.call('DEL', key)
end
if message ~= '' then redis.pcall('SPUBLISH', key, message) end
return { 'deleted' }
