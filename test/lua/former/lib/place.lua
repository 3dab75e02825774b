-- Does one text come behind another by their bytes, as members of one score stand in a sorted set? Lua's own > goes by the locale that
-- the server was started in.
local function isBehind(one, other)
  for i = 1, math.min(#one, #other) do
    local here, there = string.byte(one, i), string.byte(other, i)
    if here ~= there then return here > there end
  end
  return #one > #other
end
-- The rank of a sorted set's first member behind a place: that of a member which is there, has gone or never was. By halves: any number
-- may have one score.
local function rankBehind(set, score, member)
  local low, high = redis.call('ZCOUNT', set, '-inf', '(' .. score), redis.call('ZCOUNT', set, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('ZRANGE', set, middle, middle)
    if isBehind(found[1], member) then high = middle else low = middle + 1 end
  end
  return low
end
