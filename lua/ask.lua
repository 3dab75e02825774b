#!lua
-- caught -> caught: its catcher asks a person, or the passer. The work's deadline rests until the answer, or until the
-- question's own end: both are set as if no answer came (lib/asking.lua).
-- KEYS: 1 prefix:{tag}:h:tenant:id  the handoff  2 prefix:{tag}:due:tenant  its tenant's live handoffs (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 the calling agent  3 retention (ms)  4 tenant:id
--       5 the longest work time from its catch (ms)  6 ask_token, as marks  7 ask_id
--       8 p to ask people, r to ask the passer
--       9 how long the question is open (ms)  10 the digest of the answer's schema; - for none
--       11 how many bytes the details have, a space, and how many the schema has; 0 for none
--       12 what the worker calls itself; empty if it says nothing
--       13 the question, JSON text  14 the details and the schema, JSON texts, one after the other
-- Replies: {'asked', ask_id, asked, expires}     it is asked now
--          {'replayed', ask_id, asked, expires}  the same operation asked it before; nothing changed
--          {'not_found'} {'expired', now, record, extra} {'rejected', now, record, extra, decision} {'cancelled', …}
--          {'not_caught', …} {'not_the_catcher', …} {'already_done', …} {'already_failed', …} {'already_declined', …}
--          {'already_asked', …}  the latest question is still open; nothing changed
--          {'newer'} {'full'}
--@include late appending events inbox due work asking
local key, due = KEYS[1], KEYS[2]
local agent, retention, member, max, tokens = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local id, of, open_for, digest, lengths, worker, question, texts =
  ARGV[7], ARGV[8], tonumber(ARGV[9]), ARGV[10], ARGV[11], ARGV[12], ARGV[13], ARGV[14]
micros = seconds .. micros
local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))

local earlier, its_id, asked, until_then = askedBefore(key, extra, tokens)
if its_id and select(8, string.match(record, RECORD)) == agent then
  return { 'replayed', its_id, asked, until_then }
end
local refusal = unheld(key, record, extra, agent, '', now)
if refusal then return refusal end
local ask = openAsk(key, member, extra)
if ask and now < ask.expires then return { 'already_asked', now, record, extra } end
--@if full
if isFull(#question + #texts - redis.call('HSTRLEN', key, 'u')) then return { 'full' } end
--@end

local outbox, list = openOutbox(key, key, member), asksList(key, member, of)
isHere(key, list)
openCalls(key, member, extra)
local before, caught, deadline, rest = string.match(record, '^[24]?:?(%l+ %S+ %d+ %d+ %S+ %S+) (%d+) (%d+)(.*)$')
extra = worker == '' and (extra or '') or withWorker(extra, worker)
-- The new question takes the place of the last one: a list that is empty in between would be looked for on the other
-- node while its slot moves.
if ask then ask.is_replaced = ask.list == list end
extra = endAsk(ask, outbox, micros, member, record, extra, now)
local expires, left = now + open_for, deadline - now
local until_done, beat
until_done, beat, extra = restFrom(extra, expires, left, math.max(tonumber(deadline), caught + max))
extra = string.gsub(extra, ' z%S+', '') ..
  ' z' .. id .. '/' .. of .. '/' .. ms(now) .. '/' .. ms(expires) .. '/o' .. ms(left)
record = markOf(record) .. before .. ' ' .. caught .. ' ' .. ms(until_done) .. rest
redis.call('HSET', key, 's', record, 'x', extra, 'q', question,
  'u', firstOf(tokens) .. ' ' .. digest .. ' ' .. lengths .. ' ' .. texts)
redis.call('HDEL', key, 'a')
if earlier then redis.call('HSET', key, 'm', earlier) end
keepWork(key, until_done, retention, extra)
setDue(key, due, math.min(expires, beat or until_done), member, now)
-- A handoff that an older version of the service ended is still in the list. By this time none of its questions can be
-- open any more, not even if another replica's MAX_WORK_TTL is longer, up to its default.
local longest = math.max(tonumber(max), 604800000)
redis.call('ZADD', list, ms(now), member)
redis.call('PEXPIREAT', list, ms(now + longest + retention))
local gone = redis.call('ZCOUNT', list, '-inf', ms(now - longest))
if gone > 0 then redis.call('ZREMRANGEBYRANK', list, 0, math.min(100, gone) - 1) end
redis.pcall('SPUBLISH', key, 'asked')
announceAsks(list)
local words = ' q' .. id .. ' f' .. (of == 'r' and 'passer' or 'person') .. ' e' .. ms(expires)
append(outbox, micros, 'asked', member, record, extra, agent, words)
local reply = { 'asked', id, now, expires }
--@include reply
