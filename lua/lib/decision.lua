-- The reply to a decision that changes nothing, which may be a retry of the one that stands; nil if the decision
-- counts. decide.lua explains the replies.
local function undecidable(key, record, extra, decision, token, decided_by, seen, digest, now)
  if not record then return { 'not_found' } end
  local status, approval, created, expires, passed_by = string.match(record, RECORD)
  if not status then return { 'newer' } end
  if approval == 'none' then return { 'no_approval_required', now, record, extra } end
  if decision then
    local decided, _, made_by = string.match(decision, DECIDED)
    if made_by == token then return { 'replayed', tonumber(decided) } end
    return { 'already_decided', now, record, extra, decision }
  end
  if status == 'cancelled' then return { 'cancelled', now, record, extra } end
  if status == 'expired' or now >= tonumber(expires) then return { 'expired', now, record, extra } end
  if passed_by == decided_by then return { 'self_approval', now, record, extra } end
  -- An id can come back: a pass with the Idempotency-Key of a handoff that is gone makes the same id again.
  if seen ~= '' and seen ~= created or digest ~= '' and digest ~= redis.call('HGET', key, 'h') then
    return { 'content_changed', now, record, extra }
  end
end
-- Keeps a decision for the list of the last ones: the tenant's latest 50, for 7 days, beside what waits for a person.
-- While the slot moves, the list may be on the other node: before the first write, ask isHere for it (lib/here.lua).
local function keepDecided(decided, member, now)
  redis.call('ZADD', decided, now, member)
  redis.call('ZREMRANGEBYRANK', decided, 0, -51)
  redis.call('PEXPIREAT', decided, ms(now + 604800000))
end
