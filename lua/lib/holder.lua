-- The reply that refuses an agent's report about its work, or {'replayed'} if the same operation was carried out
-- before; nil if the report is allowed. The order of the checks is that of docs/api.md, "Order". A refusal has what it
-- was judged by: now record extra, and the decision if that ended the handoff.
local function unheld(key, record, extra, agent, token, now)
  if not record then return { 'not_found' } end
  local status, _, _, expires, _, _, deadline, caught_by, _, finished = string.match(record, RECORD)
  if not status then return { 'newer' } end
  if caught_by == agent and status ~= 'caught' then
    local made_by = status == 'done' and string.match(finished, '%S+$') or extra and string.match(extra, ' k(%S+)')
    if made_by == token then return { 'replayed', now, record, extra } end
  end
  local over = status == 'caught' and deadline or status == 'pending' and expires
  local beat = extra and status == 'caught' and string.match(extra, ' h(%d+)')
  if status == 'expired' or over and now >= tonumber(over) or beat and now >= tonumber(beat) then
    return { 'expired', now, record, extra }
  end
  if status == 'rejected' then return { 'rejected', now, record, extra, redis.call('HGET', key, 'd') } end
  if status == 'cancelled' then return { 'cancelled', now, record, extra } end
  if status == 'pending' then return { 'not_caught', now, record, extra } end
  if caught_by ~= agent then return { 'not_the_catcher', now, record, extra } end
  if status == 'done' then return { 'already_done', now, record, extra } end
  if status == 'failed' then return { 'already_failed', now, record, extra } end
  if status == 'declined' then return { 'already_declined', now, record, extra } end
end
