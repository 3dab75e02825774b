#!lua flags=allow-oom
-- A handoff that a blocked one comes after has ended (lib/after.lua). Runs in a full Redis too (allow-oom), since work
-- that is done frees memory.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the blocked one
--       2 prefix:{tag}:due:tenant    its tenant's live handoffs (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 tenant:id  3 the id that it named  4 that one's last attempt
--       5 how it ended, or gone
-- Replies: {'released'} {'blocked'}  by others still
--          {'cancelled', id, …}  the ids of the handoffs that this call cancelled (it, or its dependents) and that
--                       have dependents left, or notes at others
--          {'unchanged'}  it doesn't wait for that handoff (any more)
--@include late appending events inbox due ended runs after
local key, due, member = KEYS[1], KEYS[2], ARGV[2]

local became, extra = release(key, due, member, ARGV[3], ARGV[4], ARGV[5], now, seconds .. micros)
local rest = became == 'cancelled' and leaveDue(key, due, member, extra, 'cancelled', now, seconds .. micros) or {}
local reply = became == 'released' and { 'released' } or became == 'blocked' and { 'blocked' } or
  became and { 'cancelled', unpack(rest) } or { 'unchanged' }
--@include reply
