#!lua flags=no-writes
-- Lists a tenant's handoffs: live ones, by when the sweep is to look at them; failed ones, by when they ended; ended
-- ones, by when that was written; those that wait for a person, by when they were passed; those with an open question,
-- by when it was asked; or people's decisions, by when (lib/decisions.lua). Reads lists of one partition, or of
-- several if one Redis has them all. Redis serves no other call meanwhile, so a call looks at a limited number of
-- members, reads a limited number of bytes, and says where each list goes on.
-- KEYS: 1… each prefix:{tag}:due:tenant (live handoffs), or prefix:{tag}:f:tenant or
--           prefix:{tag}:i:tenant:inbox:failed (what failed), or prefix:{tag}:ended:tenant (what ended), or the same of
--           one run (lib/runs.lua), or prefix:{tag}:w:tenant (what waits), or prefix:{tag}:a:tenant or
--           prefix:{tag}:a:tenant:passer (those with an open question), or prefix:{tag}:decisions:tenant
-- ARGV: 1 live, failed (the latest first), oldest (what failed, the earliest first), ended (the latest first), all
--       (likewise, and what has a successor), waiting (the earliest first), asked (the earliest question first), or
--       decisions (the latest first)
--       2 how many at most of each list; 0: only where the first is that may be wanted
--       3 at how many handoffs to look in each list  4 the last score to read; empty for all
--       5 of what failed, the lowest score (ms); empty for none  6 and what all scores are below; empty for none
--       7 passed_by  8 caught_by, or who decided  9 statuses, or what was decided, each between spaces
--       10 further words of field x, separated by spaces; 7 to 10 are empty for any
--       11 2 to read titles and tasks, 1 titles alone, else 0
--       12 what all keys begin with, where the lists are in no partition (lib/runs.lua), or have handoffs of all of
--         them (waitingList in lib/inbox.lua); else empty
--       13… three for each list: the score and the member to begin at, empty for the start, and 1 to include that one,
--           else 0
-- Replies: {'listed', now, looked, list, …}  looked: at how many handoffs. Each list: {score, member, is_wanted, item,
--                …}: where it goes on, that member included, nil at its end; is_wanted: 1 if that one is wanted, as far
--                as ARGV says, else 0. An item: {score, member, record, extra, decision, fault, progress, task, title}.
--                Parts that don't exist are nil; fault is the error given to fail or the reason given to decline, or
--                the question; a task and a title are beginnings of JSON strings. Of those that wait: {score, member,
--                record, extra, digest, task, size}, size being the payload's bytes. Of decisions: {score, member,
--                facts, texts, signature}, as lib/decisions.lua has them
--@include inbox listing
local now = clock()
local listing = {
  isLive = ARGV[1] == 'live', isWaiting = ARGV[1] == 'waiting', isAsked = ARGV[1] == 'asked',
  isEnded = ARGV[1] == 'ended' or ARGV[1] == 'all',
  isAll = ARGV[1] == 'all', isOfDecisions = ARGV[1] == 'decisions',
  step = string.find('live waiting asked oldest', ARGV[1], 1, true) and 1 or -1,
  limit = tonumber(ARGV[2]), looks = tonumber(ARGV[3]),
  last = tonumber(ARGV[4]), since = ARGV[5], before = ARGV[6], passed_by = ARGV[7], caught_by = ARGV[8],
  statuses = ARGV[9], words = ARGV[10], with_tasks = ARGV[11] == '2', with_titles = ARGV[11] ~= '0', base = ARGV[12],
  now = now, looked = 0, count = 0,
  -- What the call may still read of agents' texts and of payloads, in bytes. One item always fits.
  texts = 524288, payloads = 2097152
}
listing.field = listing.isWaiting and 't' or listing.isAsked and 'q' or 'e'
listing.isNarrow = listing.passed_by .. listing.caught_by .. listing.statuses .. listing.words ~= ''
listing.isPlain = listing.limit == 0 and not listing.isNarrow and listing.since .. listing.before == ''
local name = listing.passed_by ~= '' and listing.passed_by or listing.caught_by
listing.name = name ~= '' and ' ' .. name .. ' '
local lists = readLists(listing, 13)
return { 'listed', now, listing.looked, unpack(lists) }
