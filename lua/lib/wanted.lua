-- Does field x have all these words? They stand between spaces; the empty text wants nothing.
local function isWanted(extra, words)
  for word in string.gmatch(words, '%S+') do
    if not extra or not string.find(extra .. ' ', ' ' .. word .. ' ', 1, true) then return false end
  end
  return true
end
