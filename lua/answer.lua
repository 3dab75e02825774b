#!lua
-- caught -> caught: the question of its catcher is answered. The rest of the work's time counts from now.
-- KEYS: 1 prefix:{tag}:h:tenant:id  the handoff  2 prefix:{tag}:due:tenant  its tenant's live handoffs (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 the answering agent  3 retention (ms)  4 tenant:id
--       5 answer_token, as marks  6 the ask_id that is answered
--       7 in whose name the key may answer: p for people, r for the passer
--       8 the digest of the schema that the answer satisfies; empty if it wasn't checked
--       9 who signed in by an issuer, as in decide.lua  10 the note, JSON text; null for none
--       11 the answer, JSON text
-- Replies: {'answered', at}  from now on
--          {'replayed', at}  the same operation answered before; nothing changed
--          {'unchecked', digest, schema}  it could be answered once the answer has been checked against this schema
--          {'not_found'}
--          {'not_asked', now, record, extra} {'content_changed', …} {'already_answered', …} {'expired', …}
--          {'withdrawn', …} {'no_scope', …} {'self_approval', …} {'not_the_passer', …}  no_scope: see ARGV 7
--          {'newer'} {'full'}
--@include late appending events inbox due work asking decisions
local key, due = KEYS[1], KEYS[2]
local agent, retention, member, tokens, wanted = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local letters, satisfied, person, note, answer = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
micros = seconds .. micros
local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))

if not record then return { 'not_found' } end
local status, _, _, _, passed_by, _, deadline, caught_by = string.match(record, RECORD)
if not status then return { 'newer' } end
local id, of, asked, expires, state, at, by = string.match(
  extra or '', ' z([^/]+)/(%l)/(%d+)/(%d+)/(%l)(%d+)/?(%S*)')
if not id then return { 'not_asked', now, record, extra } end
if state == 'a' and by == agent and isAmong(tokens, string.match(redis.call('HGET', key, 'a') or '', '^%S+')) then
  return { 'replayed', tonumber(at) }
end
if id ~= wanted then return { 'content_changed', now, record, extra } end
if state == 'a' then return { 'already_answered', now, record, extra } end
if state == 'o' and status == 'caught' then
  -- Its own end or that of the work may be over, and the sweep not have been there.
  local over = tonumber(string.match(extra, ' h(%d+)') or deadline)
  state = math.min(now, over) >= tonumber(expires) and 'e' or now >= over and 'w' or 'o'
elseif state == 'o' then
  -- An older version of the service ended the work.
  state = 'w'
end
if state == 'e' then return { 'expired', now, record, extra } end
if state == 'w' then return { 'withdrawn', now, record, extra } end
if not string.find(letters, of, 1, true) then return { 'no_scope', now, record, extra } end
if of == 'p' and agent == caught_by then return { 'self_approval', now, record, extra } end
if of == 'r' and agent ~= passed_by then return { 'not_the_passer', now, record, extra } end
local _, digest, details_length, schema_length, texts = string.match(
  redis.call('HGET', key, 'u'), '^(%S+) (%S+) (%d+) (%d+) (.*)$')
if digest ~= '-' and digest ~= satisfied then
  return { 'unchecked', digest, string.sub(texts, details_length + 1, details_length + schema_length) }
end
--@if full
if isFull(#note + #answer) then return { 'full' } end
--@end

local outbox, ask = openOutbox(key, key, member), openAsk(key, member, extra)
local decisions = of == 'p' and openDecisions(key, member)
openCalls(key, member, extra)
local before, rest = string.match(record, '^[24]?:?(%l+ %S+ %d+ %d+ %S+ %S+ %d+) %d+(.*)$')
local until_done, beat
-- The question set the latest deadline, by the longest work time that held then. A shorter one now doesn't count: an
-- answer that is taken never ends the work.
until_done, beat, extra = restFrom(extra, now, ask.left, tonumber(deadline))
extra = string.gsub(extra, ' z%S+', '') .. ' z' .. ask.words .. '/a' .. ms(now) .. '/' .. agent
record = markOf(record) .. before .. ' ' .. ms(until_done) .. rest
redis.call('ZREM', ask.list, member)
redis.call('HSET', key, 's', record, 'x', extra, 'a', firstOf(tokens) .. ' ' .. #note .. ' ' .. note .. answer)
keepWork(key, until_done, retention, extra)
setDue(key, due, beat or until_done, member, now)
redis.pcall('SPUBLISH', key, 'answered')
announceAsks(ask.list)
noteDecision(decisions, now, micros, 'answered ' .. agent .. ' ' .. passed_by .. ' ' .. id .. ' -', person, extra, note,
  decisions and redis.call('HGET', key, 'q') or '', '')
append(outbox, micros, 'answered', member, record, extra, caught_by, ' q' .. id .. ' y' .. agent)
local reply = { 'answered', now }
--@include reply
