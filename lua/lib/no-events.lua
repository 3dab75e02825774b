-- In place of lib/events.lua, and of lib/direct.lua or lib/relayed.lua, where events are off.
local function openOutbox() end
local function append() end
