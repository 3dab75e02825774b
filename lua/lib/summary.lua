-- What people get in place of messages beyond the limit (webhook-claim.lua). A summary's text: webhook.summary, the
-- webhook's id, and for each type and inbox a space and `type/inbox=count`; from the eleventh on `more/=count`.
local SUMMARY_GROUPS = 10
-- When messages began within the last minute. A time that is ahead is of a clock that was set back.
local function lastMinute(sent, now)
  local times = {}
  for time in string.gmatch(sent or '', '%d+') do
    if time + 0 > now - 60000 and time + 0 <= now then times[#times + 1] = time end
  end
  return times
end
-- The type and the inbox of an event, by its text (lib/events.lua).
local function groupOf(text)
  return string.match(text, '^%S+') .. '/' .. (string.match(text, '^%S+ %S+ %S+ %S+ %S+.- t(%S+)') or '')
end
-- `counts` has the groups in their order, and how many there are of each by its name.
local function countGroup(counts, group, more)
  if not counts[group] and #counts == SUMMARY_GROUPS then group = 'more/' end
  if not counts[group] then
    counts[group] = 0
    if group ~= 'more/' then counts[#counts + 1] = group end
  end
  counts[group] = counts[group] + more
end
local function countsOf(text)
  local counts = {}
  for group, count in string.gmatch(text or '', ' ([%l._]+/%S*)=(%d+)') do countGroup(counts, group, count) end
  return counts
end
local function summaryText(counts)
  local text = ''
  for _, group in ipairs(counts) do text = text .. ' ' .. group .. '=' .. ms(counts[group]) end
  return counts['more/'] and text .. ' more/=' .. ms(counts['more/']) or text
end
