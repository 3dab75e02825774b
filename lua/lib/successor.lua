-- Is an attempt that ends now tried again by itself? By field x.
local function isTriedAgain(extra)
  return hasAttemptsLeft(extra) and not string.match(extra, ' q')
end
-- How long the next attempt is delayed (ms): twice as long each time, an hour at most.
local function pauseBefore(extra)
  local attempt = tonumber(string.match(extra, ' n(%d+)') or 1)
  return math.min(3600000, tonumber(string.match(extra, ' d(%d+)') or 1000) * 2 ^ (attempt - 1))
end
-- A successor's id is in its predecessor's partition, and is made of that one's id and creation time. So nothing makes two successors, and an id
-- that comes back has a different one. 128 bits of a SHA-1, in base64url.
local function idBehind(id, created)
  local letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  local hex = redis.sha1hex(id .. ' ' .. created)
  local name = string.sub(id, 1, 3)
  for at = 1, 31, 3 do
    local bits = tonumber(string.sub(hex, at, at + 2), 16)
    local high, low = math.floor(bits / 64), bits % 64
    -- Only two of the last character's bits belong to the 128.
    if at == 31 then low = low - low % 16 end
    name = name .. string.sub(letters, high + 1, high + 1) .. string.sub(letters, low + 1, low + 1)
  end
  return name
end
-- Makes the next attempt from the hash of one that ends, and returns its id and its fields s and x. What the old hash must keep is collected for
-- endAttempt, which writes that one again. RENAME moves the payload along with the hash, so it is in one place at every moment and isn't copied
-- through Lua. RENAME is the first write and both keys are in one slot: if that slot is moving to another node, Redis refuses the command before
-- anything is written.
local function succeed(attempt, pause)
  local key, record, extra, now = attempt.key, attempt.record, attempt.extra or '', attempt.now
  local tenant, id = string.match(attempt.member, '^([^:]+):(.+)$')
  local _, approval, created, expires, passed_by, passed = string.match(record, RECORD)
  local number = tonumber(string.match(extra, ' n(%d+)') or 1) + 1
  -- The time to be caught counts from the pass for a first attempt, and from the end of the delay for later ones.
  local from = number > 2 and string.match(extra, ' a(%d+)') or created
  local until_expiry = ms(now + pause + (expires - from))
  local next = { id = idBehind(id, created), extra = ' n' .. number .. ' o' .. id }
  local next_key = string.sub(key, 1, #key - #id) .. next.id
  local names = { 'd', 'h', 'r', 'c', 'g' }
  for at, value in ipairs(redis.call('HMGET', key, unpack(names))) do
    if value then
      attempt.kept[#attempt.kept + 1] = names[at]
      attempt.kept[#attempt.kept + 1] = value
    end
  end
  if pause > 0 then next.extra = next.extra .. ' a' .. ms(now + pause) end
  for word in string.gmatch(extra, ' [bcdgmprstuw]%S+') do next.extra = next.extra .. word end
  local trace = string.match(passed, TRACE)
  next.record = '2:pending ' .. approval .. ' ' .. ms(now) .. ' ' .. until_expiry .. ' ' .. passed_by .. ' -' .. (trace and '/' .. trace or '')

  redis.call('RENAME', key, next_key)
  redis.call('HSET', next_key, 's', next.record, 'x', next.extra)
  if #attempt.kept > 0 then redis.call('HDEL', next_key, 'c', 'g', 'e') end
  redis.call('PEXPIREAT', next_key, ms(until_expiry + attempt.retention))
  local member = tenant .. ':' .. next.id
  local inbox = inboxOf(next_key, member, next.extra)
  redis.call('ZADD', attempt.due, inbox and pause > 0 and ms(now + pause) or until_expiry, member)
  if inbox and pause == 0 then enterInbox(inbox, member, next.extra, attempt.micros) end
  return next
end
-- Writes an attempt's end: its status and the new words of field x. Its key stays for the retention from now, however long ago it ended, so that a
-- request for it finds the successor. The caller removes it from the due index.
local function endAttempt(attempt, status, words, next)
  local record, extra, member, outbox, micros = attempt.record, (attempt.extra or '') .. words, attempt.member, attempt.outbox, attempt.micros
  local ends_now = string.match(record, '^2?:?(%l+)') == 'caught'
  record = '2:' .. status .. string.match(record, ' .*')
  redis.call('HSET', attempt.key, 's', record, 'x', next and extra .. ' i' .. next.id or extra, unpack(attempt.kept))
  redis.call('PEXPIREAT', attempt.key, ms(attempt.now + attempt.retention))
  redis.call('SPUBLISH', attempt.key, status)
  if ends_now then tell(outbox, micros, status, member, record, extra) end
  if not next then return end
  tell(outbox, micros, 'reissued', member, record, extra, nil, ' i' .. next.id)
  tell(outbox, micros, 'passed', string.match(member, '^[^:]+:') .. next.id, next.record, next.extra)
end
