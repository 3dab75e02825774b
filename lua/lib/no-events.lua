-- In place of lib/events.lua where events are off.
local function openOutbox() end
local function append() end
