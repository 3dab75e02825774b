-- Why this person's decision changes nothing, as a reply, also where the same operation decided before; nil where it counts. The replies are
-- explained in approve.lua and reject.lua.
local function undecidable(record, decision, token, decided_by, seen, now)
  if not record then return { 'not_found' } end
  local status, approval, created, expires, passed_by = string.match(record, RECORD)
  if not status then return { 'newer' } end
  if approval == 'none' then return { 'no_approval_required' } end
  if decision then
    local decided, _, made_by = string.match(decision, DECIDED)
    if made_by == token then return { 'replayed', tonumber(decided) } end
    return { 'already_decided', now, record, decision }
  end
  if status == 'expired' or now >= tonumber(expires) then return { 'expired' } end
  if passed_by == decided_by then return { 'self_approval' } end
  -- An id can come back: a pass whose Idempotency-Key made one that has gone makes that one.
  if seen ~= '' and seen ~= created then return { 'content_changed' } end
end
