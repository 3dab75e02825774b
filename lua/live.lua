#!lua flags=no-writes
-- Counts the live handoffs of a tenant, or those that an agent with a limit passed.
-- KEYS: 1… each prefix:{tag}:due:tenant, or each prefix:{tag}:run:tenant:*:agent (lib/live.lua); in a Cluster one
-- ARGV: none
-- Replies: {'counted', count}
--@include live
return { 'counted', countLive() }
