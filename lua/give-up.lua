#!lua
-- caught -> failed: its catcher can't do it. caught -> declined: its catcher will not do it. The payload moves to the
-- next attempt if there is one; else it stays.
-- KEYS: 1 prefix:{tag}:h:tenant:id  the handoff  2 prefix:{tag}:due:tenant  its tenant's live handoffs (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 failed or declined  3 its token, as marks  4 the calling agent
--       5 retention (ms)  6 tenant:id  7 1 if it may be tried again, else 0  8 the error's code; empty for none
--       9 what the worker calls itself; empty if it says nothing
--       10 the error or the reason, JSON text; but where 11 is there, how many of its bytes are that, a space, and
--          what a sealed checkpoint is bound to, as in heartbeat.lua
--       11 the error or the reason, and behind it the checkpoint, JSON text
-- Replies: {'failed', ended, successor} {'declined', …}  it is so now; the successor is nil if there is none
--          {'replayed', now, record, extra}  the same operation ended it before; nothing changed
--          {'not_found'} {'expired', now, record, extra} {'rejected', now, record, extra, decision} {'cancelled', …}
--          {'not_caught', …} {'not_the_catcher', …} {'already_done', …} {'already_failed', …} {'already_declined', …}
--          {'origin', first}  another one is the first attempt; nothing changed
--          {'newer'} {'full'}
--@include late appending events inbox due ended runs after work asking files successor
local key, due = KEYS[1], KEYS[2]
local became, tokens, agent, retention, member, may_retry, code, worker, text =
  ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local checkpoint, first
if ARGV[11] then
  text, first = string.match(text, '^(%d+) (%S+)$')
  checkpoint, text = string.sub(ARGV[11], text + 1), string.sub(ARGV[11], 1, text)
end
micros = seconds .. micros
local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))

local refusal = unheld(key, record, extra, agent, tokens, now)
if refusal then return refusal end
local origin = checkpoint and originOf(extra, member)
if origin and first ~= '-' and origin ~= first then return { 'origin', origin } end
--@if full
if isFull(#text + #(checkpoint or '')) then return { 'full' } end
--@end

if worker ~= '' then extra = withWorker(extra, worker) end
if checkpoint then extra = withCheckpoint(extra, agent, now) end
local attempt = {
  outbox = openOutbox(key, key, member), key = key, member = member, record = record, extra = extra,
  retention = retention, now = now, micros = micros, kept = { 'e', text },
  checkpoint = checkpoint
}
openCalls(key, member, extra)
local pause = may_retry == '1' and pauseBehind(extra)
local successor = pause and succeed(attempt, pause)
local words = ' e' .. ms(now) .. ' y' .. agent .. ' k' .. firstOf(tokens) .. (code == '' and '' or ' l' .. code)
endAttempt(attempt, became, words, successor)
if successor then
  setDue(key, due, successor.due, successor.member, now)
  redis.call('ZREM', due, member)
else
  leaveDue(key, due, member, extra, became, now, micros)
end
local reply = { became == 'failed' and 'failed' or 'declined', now, successor and successor.id or false }
--@include reply
