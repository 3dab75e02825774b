#!lua
-- Forgets the texts of a handoff's decisions and answers (lib/decisions.lua): that they were made stays.
-- KEYS: 1 prefix:{tag}:decisions:tenant:id   what is known of them
-- ARGV: 1 the call's deadline (ms)
-- Replies: {'forgotten', decisions, texts}   how many there are, and how many of them had texts until now
--          {'not_found'}   there are none
--@include late
local facts = KEYS[1]
local fields = redis.call('HGETALL', facts)
local decisions, texts = 0, 0
if #fields == 0 then return { 'not_found' } end
for at = 1, #fields, 2 do
  local kind = string.sub(fields[at], -1)
  if kind == 't' then
    texts = texts + redis.call('HDEL', facts, fields[at])
  elseif kind == 's' then
    redis.call('HDEL', facts, fields[at])
  else
    decisions = decisions + 1
  end
end
return { 'forgotten', decisions, texts }
