#!lua flags=no-writes
-- Reads a handoff. Changes nothing: Redis itself refuses a write by this script.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: 1 how many bytes of the result the reply may have; absent for any
--       2 how many bytes of the error or the reason; absent for any
-- Replies: {'found', now, record, result, decision, extra, fault, cancel_reason, progress, after, target, counts}
--                         parts that don't exist are nil; fault is the error given to fail or the reason given to
--                         decline; result and fault are how many bytes they have if those are more than may be; after
--                         is field b (lib/after.lua), target o and counts O; the parts after decision are there only
--                         with an extra
--          {'not_found'}
local record, decision = unpack(redis.call('HMGET', KEYS[1], 's', 'd'))

if not record then return { 'not_found' } end
-- Before the handoff is done, field p is the payload, which status doesn't show and shouldn't copy through Lua.
local isExtended = string.sub(record, 2, 2) == ':'
local result = string.sub(record, isExtended and 3 or 1, isExtended and 7 or 5) == 'done '
local length = result and ARGV[1] and redis.call('HSTRLEN', KEYS[1], 'p')
if length and length > ARGV[1] + 0 then result = length else result = result and redis.call('HGET', KEYS[1], 'p') end
if result == '' then result = false end
if not isExtended then return { 'found', clock(), record, result, decision } end
-- An error may have as much as a result. What agents say besides has 4,000 characters at most.
local longer = ARGV[2] and redis.call('HSTRLEN', KEYS[1], 'e')
if longer and longer <= ARGV[2] + 0 then longer = false end
local extra, cancel_reason, progress, fault =
  unpack(redis.call('HMGET', KEYS[1], 'x', 'c', 'g', longer and 'x' or 'e'))
fault = longer or fault
local after = extra and string.find(extra, ' A', 1, true) and redis.call('HGET', KEYS[1], 'b') or nil
if extra and string.find(extra, ' C', 1, true) then
  return { 'found', clock(), record, result, decision, extra, fault, cancel_reason, progress, after or false,
    unpack(redis.call('HMGET', KEYS[1], 'o', 'O')) }
end
return { 'found', clock(), record, result, decision, extra, fault, cancel_reason, progress, after }
