-- While a slot moves, a key may be on the other node. It isn't found here then, and a write would make another one. So
-- this asks for two keys together: if only one of them is here, Redis refuses the command, and the service calls the
-- script again. `key` must exist here, and nothing may be written before. Nor may a script use a key again that it
-- emptied: Redis would look for that on the other node too, and the script would break off half done.
local function isHere(key, other)
  return redis.call('EXISTS', key, other) == 2
end
