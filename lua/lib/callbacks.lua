-- Callbacks: a handoff that was passed with one notes what its address gets (lib/events.lua).
--@include calls
-- What a callback can send, by its letter in word C of field x: its types, and behind them 1 if it has results.
local CALL_TYPES = ' caught/c done/d failed/f declined/l cancelled/x expired/e rejected/j asked/a reissued/r'
-- Its id is a digest of the handoff and a number that counts the handoff's callbacks, so each has another. `of` is a
-- key of the partition.
local function noteCallback(of, micros, type, member, created, extra, text, result)
  local letter, wanted, results = string.match(CALL_TYPES, ' ' .. type .. '/(%l)'), string.match(extra, ' C(%l+)(1?)')
  if not letter or not string.find(wanted, letter, 1, true) then return end
  local key, time = string.match(of, '^[^}]*}:') .. 'h:' .. member, ms(math.floor(micros / 1000))
  local target, counts, fault = unpack(redis.call('HMGET', key, 'o', 'O', 'e'))
  if not target then return end
  local pending, others, number = string.match(counts or '0 0 0 - - - 0', '^(%d+) (.*) (%d+)$')
  local id = 'cb_' .. redis.sha1hex(member .. ' ' .. created .. ' ' .. number)
  if type == 'failed' then result = fault end
  keepCall(of, member, id, time, { 'o', target, 'e', text, 'c', created, 'x', originOf(extra, member) },
    results == '1' and (type == 'done' or type == 'failed') and result)
  redis.call('HSET', key, 'O', ms(pending + 1) .. ' ' .. others .. ' ' .. ms(number + 1))
end
