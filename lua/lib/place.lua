-- Does one text come after another in byte order, the order of a sorted set's members with the same score? Lua's own >
-- uses the locale that the server was started in.
local function isBehind(one, other)
  for i = 1, math.min(#one, #other) do
    local here, there = string.byte(one, i), string.byte(other, i)
    if here ~= there then return here > there end
  end
  return #one > #other
end
-- The rank of a sorted set's first member after a position. The member at that position may exist, be gone, or never
-- have existed. A binary search, since any number of members may have the same score.
local function rankBehind(set, score, member)
  local low, high = redis.call('ZCOUNT', set, '-inf', '(' .. score), redis.call('ZCOUNT', set, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('ZRANGE', set, middle, middle)
    if isBehind(found[1], member) then high = middle else low = middle + 1 end
  end
  return low
end
