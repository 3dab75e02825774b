-- The failed lists have the handoffs that ended without being done and get no successor by themselves: in a partition a
-- list for each tenant (prefix:{tag}:f:tenant) and each inbox (prefix:{tag}:i:tenant:inbox:failed), by when they ended
-- (ms). An entry leaves when the handoff is reissued, or gone.
local function failedLists(key, member, extra)
  local partition, inbox = string.sub(key, 1, #key - #member - 2), inboxOf(key, member, extra)
  return { partition .. 'f:' .. string.match(member, '^[^:]+'), inbox and inbox .. ':failed' or nil }
end
-- Comes before the first write (isHere).
local function openFailed(key, member, extra)
  local lists = failedLists(key, member, extra)
  for _, list in ipairs(lists) do isHere(key, list) end
  return lists
end
local function enterFailed(lists, member, ended, now)
  for _, list in ipairs(lists) do enterOver(list, member, ms(ended), now) end
end
local function leaveFailed(key, member, extra)
  for _, list in ipairs(failedLists(key, member, extra)) do redis.call('ZREM', list, member) end
end
-- How long the next attempt is delayed (ms), twice as long each time, an hour at most; nil if there is none. By field
-- x.
local function pauseBehind(extra)
  local number = attemptBeforeOthers(extra)
  if not number or string.find(extra, ' q', 1, true) then return nil end
  return math.min(3600000, tonumber(string.match(extra, ' d(%d+)') or 1000) * 2 ^ (number - 1))
end
-- Formats a time. The successors of one batch share most of theirs.
local formatted = {}
local function msOnce(time)
  local text = formatted[time]
  if not text then
    text = ms(time)
    formatted[time] = text
  end
  return text
end
-- The characters of base64url by what they stand for, and those of the last id: made once in a script.
local letters, characters
-- A successor's id is in its predecessor's partition, and is made of the predecessor's id and creation time. So a
-- handoff has one successor at most, and an id that comes back has a different one. 128 bits of a SHA-1, in base64url.
local function idBehind(id, created)
  if not letters then
    letters = {
      [0] = string.byte('A'),
      string.byte('BCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_', 1, 63)
    }
    characters = {}
  end
  -- 24 bits at a time, as many as any server's tonumber takes: six hex digits, which are four characters. The last two
  -- are too many.
  local digest, count = string.sub(redis.sha1hex(id .. ' ' .. created), 1, 32) .. '0000', 0
  local sub, tonumber, letters, characters = string.sub, tonumber, letters, characters
  for at = 1, 31, 6 do
    local bits = tonumber(sub(digest, at, at + 5), 16)
    local fourth = bits % 64
    bits = (bits - fourth) / 64
    local third = bits % 64
    bits = (bits - third) / 64
    local second = bits % 64
    characters[count + 1], characters[count + 2], characters[count + 3], characters[count + 4] =
      letters[(bits - second) / 64], letters[second], letters[third], letters[fourth]
    count = count + 4
  end
  return sub(id, 1, 3) .. string.char(unpack(characters, 1, 22))
end
-- The fields that an ended handoff's hash keeps besides s and x: title, decision, digest, schema, and two of its own.
local SET_ASIDE = { 'n', 'd', 'h', 'r', 'c', 'g' }
-- The fields of its questions, which it keeps as well.
local QUESTION = { 'q', 'u', 'a', 'm' }
-- Makes the next attempt from an ending handoff's hash, and returns the attempt's id, its member and score for the due
-- index (the caller's to write), its fields s and x, and until when it waits for a person, if it does. RENAME moves the
-- hash with its payload, which is in one place at every moment and isn't copied through Lua; endAttempt writes the
-- fields that the ending handoff must keep. RENAME is the first write, and both keys are in one slot: if the slot is
-- moving, Redis refuses the command before anything is written.
local function succeed(attempt, pause)
  local key, extra, now, member, kept = attempt.key, attempt.extra or '', attempt.now, attempt.member, attempt.kept
  local colon = string.find(member, ':', 1, true)
  local id = string.sub(member, colon + 1)
  local approval, created, expires, passed_by, passed =
    string.match(attempt.record, '^[2-5]?:?%l+ (%S+) (%d+) (%d+) (%S+) (%S+)')
  local number = tonumber(string.match(extra, ' n(%d+)') or 1) + 1
  -- The time to be caught counts from the pass for a first attempt, and from the end of the delay for later ones.
  local from = number > 2 and string.match(extra, ' a(%d+)') or created
  local available = msOnce(now + pause)
  local until_expiry = msOnce(now + pause + (expires - from))
  local next_id = idBehind(id, created)
  local next_member, next_key = string.sub(member, 1, colon) .. next_id, string.sub(key, 1, #key - #id) .. next_id
  local has_told = #kept > 0
  local aside = attempt.aside or redis.call('HMGET', key, unpack(SET_ASIDE))
  for at = 1, #SET_ASIDE do
    local value = aside[at]
    if value then
      kept[#kept + 1], kept[#kept + 2] = SET_ASIDE[at], value
      has_told = has_told or at > 4
    end
  end
  local next_extra = ' n' .. number .. ' o' .. id .. (pause > 0 and ' a' .. available or '') ..
    string.gsub(extra, ' [^bcdgjmprstuwACEFGHIJKMPSTUW]%S+', '') ..
    (string.find(extra, ' F', 1, true) and '' or ' F' .. id)
  -- An A2A task that has ended stays so: what comes after it is another.
  if attempt.begins then next_extra = string.gsub(next_extra, ' M%S+', ' M' .. next_id) end
  -- The next attempt keeps field b, and is blocked by the handoffs that this one still waited for: they may have ended
  -- since, so the sweep checks at once. Dependents of this one wait for the next attempt, unless this one had ended for
  -- good before.
  local blocked = isBlocked(extra)
  -- This one's own notes at those are removed by its field b.
  if blocked then kept[#kept + 1], kept[#kept + 2] = 'b', redis.call('HGET', key, 'b') end
  next_extra = string.gsub(next_extra, ' A(%l)/(%d+)/(%d+)%S*',
    blocked and ' A%1/%2/%2' or ' A%1/0/%3/' .. msOnce(now))
  local dependents = hasDependents(extra) and string.find(attempt.record, '^[2-5]?:?[cp][ae]') and
    dependentsOf(key, member)
  local waits = dependents and isHere(key, dependents)
  if not waits then next_extra = string.gsub(next_extra, ' W1', '') end
  local was_asked = string.find(extra, ' z', 1, true)
  if was_asked then
    for _, field in ipairs(QUESTION) do
      local text = redis.call('HGET', key, field)
      if text then kept[#kept + 1], kept[#kept + 2] = field, text end
    end
  end
  -- Each attempt has the callback, and counts its own.
  local calls = string.find(extra, ' C', 1, true) and redis.call('HMGET', key, 'o', 'O')
  if calls then kept[#kept + 1], kept[#kept + 2] = 'o', calls[1] end
  if calls and calls[2] then kept[#kept + 1], kept[#kept + 2] = 'O', calls[2] end
  local trace = string.match(passed, TRACE)
  local next_record = markOf(attempt.record, blocked) .. 'pending ' .. approval .. ' ' .. msOnce(now) .. ' ' ..
    until_expiry .. ' ' .. passed_by .. ' -' .. (trace and '/' .. trace or '')

  -- Its uploads are kept for the next attempt before this one can go.
  local uploads = string.match(extra, ' I(%S+)')
  if uploads then openFiles(key, next_key, uploads) end
  redis.call('RENAME', key, next_key)
  if uploads then noteFiles(next_key, uploads, 'i', now, 0) end
  if waits then
    redis.call('RENAME', dependents, dependentsOf(next_key, next_member))
    keepDependents(dependentsOf(next_key, next_member), until_expiry)
  end
  redis.call('HSET', next_key, 's', next_record, 'x', next_extra)
  if attempt.checkpoint then redis.call('HSET', next_key, 'k', attempt.checkpoint) end
  if has_told then redis.call('HDEL', next_key, 'c', 'g', 'e') end
  if was_asked then redis.call('HDEL', next_key, unpack(QUESTION)) end
  if calls then redis.call('HDEL', next_key, 'O') end
  redis.call('PEXPIREAT', next_key, msOnce(until_expiry + attempt.retention))
  local inbox = inboxOf(next_key, next_member, next_extra)
  if approval == 'waiting' then
    -- No person decided on an attempt that was for an inbox. They may decide on this one.
    local waiting = waitingList(next_key, next_member, next_extra)
    redis.call('ZADD', waiting, msOnce(now), next_member)
    redis.call('ZADD', string.match(waiting, '^[^}]*}:') .. 'inboxes', 0, string.sub(member, 1, colon))
    redis.pcall('SPUBLISH', waiting, 'pending')
  end
  if inbox then
    enterPart(inbox, next_member, next_extra, attempt.micros, approval == 'waiting' and until_expiry,
      pause > 0 and available, blocked and until_expiry)
  end
  return {
    id = next_id, member = next_member, due = blocked and msOnce(now) or pause > 0 and available or until_expiry,
    record = next_record, extra = next_extra, waits_until = approval == 'waiting' and until_expiry
  }
end
-- Writes an attempt's end: its status and the new words of field x. Its key stays for the retention from now, however
-- long ago it ended, so that a request for it finds the successor. Without one it enters the failed lists. The caller
-- removes it from the due index.
local function endAttempt(attempt, status, words, next)
  local record, extra, member, outbox, micros =
    attempt.record, (attempt.extra or '') .. words, attempt.member, attempt.outbox, attempt.micros
  local space = string.find(record, ' ', 1, true)
  local before = string.match(record, '^[2-5]?:?(%l+)')
  local ends_now = before == 'caught' or before == 'pending'
  local lists = not next and openFailed(attempt.key, member, extra)
  local ended, runs = openEnded(attempt.key, member, extra), openRuns(attempt.key, member, extra)
  if before == 'caught' then
    extra = leaveWork(outbox, micros, attempt.key, member, record, extra, attempt.now)
  end
  if lists then enterFailed(lists, member, attempt.now, attempt.now) end
  if ended and ends_now then enterOver(ended, member, msOnce(attempt.now), attempt.now) end
  if runs and ends_now then
    endRuns(runs, member, not next and 'failed', next, attempt.now, micros)
  elseif runs then
    resumeRuns(runs, member, next, attempt.now, micros)
  end
  if next then
    -- It moved on with the payload.
    extra = string.gsub(extra, ' K%S+', '')
  elseif attempt.checkpoint then
    redis.call('HSET', attempt.key, 'k', attempt.checkpoint)
  end
  record = markOf(record) .. status .. string.sub(record, space)
  local reissued_as = next and ' i' .. next.id
  redis.call('HSET', attempt.key, 's', record, 'x', extra .. (reissued_as or ''), unpack(attempt.kept))
  redis.call('PEXPIREAT', attempt.key, msOnce(attempt.now + attempt.retention))
  redis.pcall('SPUBLISH', attempt.key, status)
  -- A reissue that took the handoff from its catcher is about the next attempt, so `cancelled` names no agent.
  if ends_now then
    append(outbox, micros, status, member, record, extra, nil, status ~= 'cancelled' and reissued_as or nil,
      not next and nil, attempt.begins)
  end
  if not next then return end
  append(outbox, micros, 'reissued', member, record, extra, nil, reissued_as)
  append(outbox, micros, 'passed', next.member, next.record, next.extra)
  if next.waits_until then
    append(outbox, micros, 'approval_requested', next.member, next.record, next.extra, '-', ' e' .. next.waits_until)
  end
end
