-- Where texts are, by kind of key and field; of the fields of decisions by their last letter, if that is one. A pattern
-- captures a text; or how many bytes a text has, and it with another one behind it. A text that isn't sealed is JSON,
-- so none begins as a sealed one does.
local WHOLE, LAST_WORD = { '^(.*)$' }, { ' (~[%w_-]+)$' }
local PLACES = {
  h = {
    p = WHOLE, r = WHOLE, t = WHOLE, n = WHOLE, e = WHOLE, c = WHOLE, k = WHOLE, q = WHOLE, g = { '^%S+ (.*)$' },
    h = { '^~[^.]*%.(.*)$' }, o = LAST_WORD, a = { '^%S+ (%d+) (.*)$' }, u = { '^%S+ %S+ (%d+) %d+ (.*)$' },
    d = { '^%S+ %S+ %S+ (.*)$', '^%S+ %S+ [^/ ]+/(~[^. ]+)', '^%S+ %S+ [^/ ]+/[^. ]*%.[^. ]*%.(~[^. ]+)' }
  },
  call = { o = LAST_WORD, e = LAST_WORD, r = WHOLE },
  decisions = { [''] = { '^%S+ %S+ %S+ %S+ (~%S+)' }, t = { '^(%d+) (.*)$' }, s = WHOLE },
  schedule = { handoff = WHOLE },
  file = { words = WHOLE },
  task = {},
}
-- In these are push configs, JSON. A secret in them may be anything, so only what names a known key is sealed.
local CONFIGS = { call = 'o', task = 'pushes' }
-- Notes the name of the key that sealed a text, if one did.
local function noteText(found, text)
  local first = string.byte(text)
  if first == 1 or first == 2 or first == 126 and #text > 50 then found[#found + 1] = string.sub(text, 2, 9) end
end
local function noteTexts(found, value, patterns)
  for _, pattern in ipairs(patterns) do
    local first, both = string.match(value, pattern)
    if both then
      noteText(found, string.sub(both, 1, first))
      noteText(found, string.sub(both, first + 1))
    elseif first then
      noteText(found, first)
    end
  end
end
-- The same for the texts in a field of a key of this kind; `known` are the known names, each between spaces.
local function noteField(found, kind, field, value, known)
  noteTexts(found, value, PLACES[kind][kind == 'decisions' and string.match(field, '%l?$') or field] or {})
  if CONFIGS[kind] ~= field then return end
  for word in string.gmatch(value, '"(~[%w_-]+)"') do
    if string.find(known, ' ' .. string.sub(word, 2, 9) .. ' ', 1, true) then noteText(found, word) end
  end
end
