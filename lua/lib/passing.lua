-- What a pass's last argument has: the payload, and behind it, as long as the words of pass say, the schema, fields b
-- and o, and the beginning and the title of the task if they are sealed. Else those are the task's own: it is a JSON
-- string, and begins with the payload's eighth byte. `fields` are for HSET, and end with all of the argument; this
-- leaves the payload there, and adds the others. Returns the beginning, which is a field only while a person decides.
local function takeParts(fields, options)
  local match, sub, payload = string.match, string.sub, fields[#fields]
  local at = #fields
  local function cut(bytes)
    local part = sub(payload, -bytes)
    payload = sub(payload, 1, -bytes - 1)
    return part
  end
  local function add(name, part)
    fields[#fields + 1], fields[#fields + 2] = name, part
  end
  local isSealed = string.find(options, ' E', 1, true)
  local title, beginning = match(options, ' n(%d+)'), match(options, ' l(%d+)')
  if title then add('n', isSealed and cut(title) or sub(payload, 8, 7 + title)) end
  if beginning then beginning = isSealed and cut(beginning) or sub(payload, 8, 7 + beginning) .. '"' end
  local target, after = match(options, ' C%l+1?/(%d+)'), match(options, ' A%l/%d+/%d+/(%d+)')
  local schema = match(options, ' z(%d+)')
  if target then add('o', cut(target)) end
  if after then add('b', cut(after)) end
  if schema then add('r', cut(schema)) end
  fields[at] = payload
  return beginning
end
-- Field x: some words' values become times and counts, and all other words go into it as they are. Returns field x;
-- when the handoff can be caught, nil for at once; is it blocked; and how many others it waits for, nil for none.
local function extraOf(options, now, formatted)
  local extra, available = string.gsub(options, ' [ahklnzACK]%S+', ''), string.match(options, ' a(%d+)')
  available = available and now + available
  if available then extra = extra .. ' a' .. ms(available) end
  extra = extra .. (string.match(options, ' C%l+1?') or '')
  local need, open, waits_for = string.match(options, ' A(%l)/(%d+)/(%d+)/')
  if not need then return extra, available end
  local blocked = open ~= '0'
  extra = extra .. ' A' .. need .. '/' .. open .. '/' .. waits_for .. (blocked and '' or '/' .. formatted)
  return extra, available, blocked, waits_for ~= '0' and tonumber(waits_for) or nil
end
