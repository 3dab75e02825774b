#!lua flags=allow-oom
-- Changes what operators set for an inbox, in one of its two partitions (lib/inbox.lua). An inbox must be paused even
-- when Redis is full (allow-oom).
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   the inbox
-- ARGV: 1 the call's deadline (ms)  2 paused: 1, 0; empty to leave it as it is
--       3 max_caught: a number, 0 for none, empty to leave it  4 max_pending: likewise
--       5 empty in the inbox's own partition. In the other one, the version that the reply from the own one gave: the
--         settings are taken as they were there, unless a later version is here
--       6 max_caught_per_group: a number, 0 for none; empty to leave it
-- Replies: {'set', changed, version, paused, max_caught, max_pending, max_caught_per_group}  changed: 1 if anything
--                         changed, else 0; then what is set now: the version, and each setting as ARGV 2 to 4 and 6
--                         take it
--@include late inbox
local inbox, settings = KEYS[1], KEYS[1] .. ':settings'
local asked, given = { ARGV[2], ARGV[3], ARGV[4] }, tonumber(ARGV[5])
redis.call('EXISTS', settings, inbox, string.match(inbox, '^[^}]*}:') .. 'inboxes', inbox .. ':per-group',
  groupKeys(inbox))
local before = redis.call('GET', settings) or '0 0 0 0'

local was = { string.match(before, '^(%d) (%d+) (%d+) (%d+)$') }
local set, changed = {}, 0
for i = 1, 3 do
  set[i] = asked[i] ~= '' and asked[i] or was[i]
  if set[i] ~= was[i] then changed = 1 end
end
local version = tonumber(was[4])
local per_group, set_at = perGroupIn(inbox)
if given and given <= version then return { 'set', 0, ms(version), was[1], was[2], was[3], per_group } end
-- Also if nothing changed: the other partition may have other settings, and takes those of a later version only.
if given or asked[1] .. asked[2] .. asked[3] ~= '' then
  version = given or math.max(version + 1, tonumber(seconds .. micros))
  redis.call('SET', settings, set[1] .. ' ' .. set[2] .. ' ' .. set[3] .. ' ' .. ms(version))
  if set[1] .. set[2] .. set[3] == '000' then
    -- The version is kept for as long as an earlier call for this partition can be under way.
    redis.call('PEXPIREAT', settings, ms(now + 60000))
  else
    nameInbox(inbox)
  end
end
if ARGV[6] ~= '' and ARGV[6] + 0 ~= per_group then
  per_group, changed = ARGV[6] + 0, 1
  -- The groups that are held back by the old limit come back to this place of the turns (take.lua).
  local at = math.max((set_at or 0) + 1, endOfTurns(inbox .. ':turns', seconds .. micros))
  redis.call('SET', inbox .. ':per-group', ms(per_group) .. ' ' .. ms(at))
  if per_group == 0 then redis.call('PEXPIREAT', inbox .. ':per-group', ms(now + 86400000)) else nameInbox(inbox) end
end
-- One of those who wait looks, and then the next one if there is more.
redis.pcall('SPUBLISH', inbox, 'set')
return { 'set', changed, ms(version), set[1], set[2], set[3], per_group }
