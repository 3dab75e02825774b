-- Questions to people, or to the passer, in the middle of the work (ask.lua). A handoff keeps its latest question: a
-- word of field x, and fields of its hash (lib/record.lua). While the question is open, the handoff is in a list of its
-- partition, prefix:{tag}:a:tenant for people or prefix:{tag}:a:tenant:passer, by when the question was asked (ms). The
-- deadlines of the work and of the heartbeat are set for the case that no answer comes, so scripts that compare only
-- deadlines need to know nothing of questions.
-- The open question by field x: its id, whom it asks (p people, r the passer), when it was asked, when it ends, and how
-- much was left of the work (ms); nil if none is open. Its time may be over already.
local function openQuestion(extra)
  if not extra then return nil end
  return string.match(extra, ' z([^/]+)/(%l)/(%d+)/(%d+)/o(%d+)')
end
-- Field m with the latest question among the earlier ones, for when another one takes its place; nil if there is none.
-- And the id of the question that this operation asked before, when that was and when it ends; nil if it asked none. A
-- request that comes late, when its question was answered and another one asked, must not ask again. Some 32 are kept:
-- each has at most 83 characters.
local EARLIER = 2656
local function askedBefore(key, extra, tokens)
  local latest, asked, ends = string.match(extra or '', ' z([^/]+)/%l/(%d+)/(%d+)/')
  if not latest then return nil end
  local with, earlier = unpack(redis.call('HMGET', key, 'u', 'm'))
  local all = (earlier and earlier .. ' ' or '') ..
    string.match(with or '-', '^%S+') .. '/' .. latest .. '/' .. asked .. '/' .. ends
  for mark, id, at, over in string.gmatch(all, '([^/ ]+)/([^/]+)/(%d+)/(%d+)') do
    if isAmong(tokens, mark) then return all, id, tonumber(at), tonumber(over) end
  end
  return #all > EARLIER and string.match(all, ' (.*)$', #all - EARLIER) or all
end
local function asksList(key, member, of)
  return string.sub(key, 1, #key - #member - 2) .. 'a:' .. string.match(member, '^[^:]+') ..
    (of == 'r' and ':passer' or '')
end
-- Without a Cluster, the pages for people listen to one channel per tenant: the list's name without its partition. A
-- Cluster refuses that channel, and there the pages look again by themselves.
local function announceAsks(list)
  redis.pcall('SPUBLISH', (string.gsub(list, '{[^}]*}:', '', 1)), 'changed')
end
-- The open question, to be closed; nil if none is open. Call it before the first write (isHere).
local function openAsk(key, member, extra)
  local id, of, asked, expires, left = openQuestion(extra)
  if not id then return nil end
  local list = asksList(key, member, of)
  isHere(key, list)
  local words = id .. '/' .. of .. '/' .. asked .. '/' .. expires
  return { list = list, words = words, id = id, expires = tonumber(expires), left = tonumber(left) }
end
-- Closes a question without an answer, since its time or the work is over: perhaps before now, as the sweep comes
-- later. Returns the new field x, which the caller writes, and the words of the event.
local function closeAsk(ask, member, record, extra, now)
  local deadline = string.match(extra, ' h(%d+)') or string.match(record, '^[24]?:?%l+ %S+ %d+ %d+ %S+ %S+ %d+ (%d+)')
  local at = math.min(now, tonumber(deadline))
  local is_over = at >= ask.expires
  if not ask.is_replaced then redis.call('ZREM', ask.list, member) end
  announceAsks(ask.list)
  extra = string.gsub(extra, ' z%S+', ' z' .. ask.words .. (is_over and '/e' .. ms(ask.expires) or '/w' .. ms(at)), 1)
  return extra, ' q' .. ask.id .. ' s' .. (is_over and 'expired' or 'withdrawn')
end
-- The same, with the event. Returns the new field x; without an open question, the given one.
local function endAsk(ask, outbox, micros, member, record, extra, now)
  if not ask then return extra end
  local closed, ended = closeAsk(ask, member, record, extra, now)
  append(outbox, micros, 'ask_ended', member, record, closed, nil, ended)
  return closed
end
-- A caught handoff ends: it leaves its inbox's set of caught ones, and its question is withdrawn. Returns field x, and
-- the question if one was open.
local function leaveWork(outbox, micros, key, member, record, extra, now)
  local ask = openAsk(key, member, extra)
  leaveAllCaught(key, member, extra, micros)
  return endAsk(ask, outbox, micros, member, record, extra, now), ask
end
-- Sets the deadlines of a caught handoff, counted from `from`: the work's after `left`, at most `latest`; and the
-- heartbeat's. Returns both (the second nil if there is none) and the new field x.
local function restFrom(extra, from, left, latest)
  local deadline = math.min(from + left, latest)
  local within, beat = string.match(extra, ' b(%d+)'), nil
  extra = string.gsub(extra, ' h%d+', '')
  if within then
    beat = math.min(from + within, deadline)
    extra = extra .. ' h' .. ms(beat)
  end
  if not string.find(extra, ' f', 1, true) then extra = extra .. ' f1' end
  return deadline, beat, extra
end
