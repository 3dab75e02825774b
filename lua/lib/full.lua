-- Would this make a full Redis larger by more than what any transition writes? `more` is how many bytes it brings
-- beyond what it frees. Only the second text of a script asks, which runs once Redis has refused the first because it
-- is full (redis/scripts.ts).
local function isFull(more)
  return more > 512
end
