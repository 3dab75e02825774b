import type { LuaChange, Mutation } from './world.ts'

/** Safeguards of the scripts, each taken away. */
export const luaMutations: readonly Mutation[] = [
  {
    name: 'no token: a script never recognises its own operation',
    lua: [
      { from: 'return marks == mark or mark and', to: 'return false and' },
      { from: "if by .. ' ' .. made_by ~= words then", to: 'if true then' },
    ],
  },
  { name: 'an operation is known again by the key that writes alone', shows: 'encrypted', lua: [{ from: 'return marks == mark or mark and', to: 'return marks == mark or false and' }] },
  { name: 'no deadline: a script runs however late it is', lua: [{ from: '> ARGV[1] + 0 then', to: '< 0 then' }] },
  { name: 'no expiry check: what is over can still be caught', lua: [{ from: "or status == 'pending' and expires", to: '', of: ['catch'] }] },
  {
    name: 'no from-state: a catch takes what another has',
    lua: [
      { from: "then return { 'already_caught', now, record, extra } end\n    local lock = lockOn(extra, decision, checkpoint)\n    if lock then return { 'locked', lock } end\n    if isLarger then return { 'larger' } end\n    return", to: "then record, status = (extra and '2:pending' or 'pending') .. string.match(record, '^[24]?:?caught( %S+ %d+ %d+ %S+ %S+)'), 'pending' else return" },
      { from: "extra, schema, checkpoint }\n  end\n  if approval == 'waiting'", to: "extra, schema, checkpoint } end\n  end\n  if approval == 'waiting'" },
    ],
  },
  // Attempts.
  { name: 'a heartbeat is heard after its window', lua: [{ from: 'or beat and now >= tonumber(beat) then', to: 'then', of: ['heartbeat'] }] },
  { name: 'the sweep doesn’t look at heartbeats', lua: [{ from: "status == 'caught' and (beat or until_done)", to: "status == 'caught' and until_done" }] },
  { name: 'a successor isn’t noted at its predecessor', lua: [{ from: "extra .. (reissued_as or '')", to: 'extra' }] },
  { name: 'a handoff whose catcher was asked to stop is tried again', lua: [{ from: "or string.find(extra, ' q', 1, true) then", to: 'then' }] },
  { name: 'an attempt beyond the last one', lua: [{ from: 'number < tonumber(max)', to: 'number <= tonumber(max)' }] },
  { name: 'a pass whose tenant the sweep doesn’t look at', lua: [{ from: "call('ZADD', prefix .. 'tenants', 'LT', string.format('%d', math.min(looked_at, now + LOOK)), tenant)", to: '', of: ['pass'] }] },
  { name: 'a sooner time that the sweep doesn’t learn of', lua: [{ from: "redis.call('ZADD', prefix .. 'tenants', 'LT', ms(math.min(time, now + LOOK)), tenant)", to: '' }] },
  { name: 'a tenant that the sweep looks at once', lua: [{ from: "call('ZADD', tenants, string.format('%d', math.min(math.max(at, now), now + LOOK)), tenant)", to: 'gone[#gone + 1] = tenant', of: ['sweep'] }] },
  { name: 'a successor that nobody sweeps', lua: [{ from: 'setDue(key, due, successor.due, successor.member, now)', to: '' }] },
  { name: 'a cancel by force leaves it to its catcher', lua: [{ from: "status == 'caught' and not force", to: "status == 'caught'" }] },
  // Inboxes.
  { name: 'what a catch took stays in the inbox', lua: [{ from: 'caught[#caught + 1], gone[#gone + 1], names = one.member, one.member, names', to: 'caught[#caught + 1], names = one.member, names' }] },
  { name: 'what is caught by its id stays in the inbox', lua: [{ from: 'leavePending(key, inbox, member, extra)\n    enterCaught', to: 'enterCaught' }] },
  { name: 'a catch from an inbox leaves no note', lua: [{ from: "redis.call('SET', remembered, request .. ' 0' .. names, 'PX', lasts)", to: '' }] },
  { name: 'what is approved doesn’t enter its inbox', lua: [{ from: 'enterPart(inbox, member, extra, micros, nil, available and now < tonumber(available) and available,\n    isBlocked(extra) and expires)', to: '', of: ['decide'] }] },
  { name: 'what is delayed doesn’t enter its inbox', lua: [{ from: 'local inbox = available and now >= tonumber(available) and', to: 'local inbox = false and' }] },
  // Questions.
  { name: 'an answer leaves the question open', lua: [{ from: "'/a' .. ms(now) .. '/' .. agent", to: "'/o' .. ms(ask.left)", of: ['answer'] }] },
  { name: 'an answer isn’t recognised when it comes again', lua: [{ from: "if state == 'a' and by == agent and", to: 'if false and', of: ['answer'] }] },
  { name: 'a question is answered after its end', lua: [{ from: "state = math.min(now, over) >= tonumber(expires) and 'e' or", to: 'state =', of: ['answer'] }] },
  { name: 'an answer to another question counts', lua: [{ from: 'if id ~= wanted then', to: 'if false then', of: ['answer'] }] },
  { name: 'an agent answers itself', lua: [{ from: "if of == 'p' and agent == caught_by then", to: 'if false then', of: ['answer'] }] },
  { name: 'the work goes on resting behind an answer', lua: [{ from: 'restFrom(extra, now, ask.left,', to: 'restFrom(extra, expires + 0, ask.left,', of: ['answer'] }] },
  { name: 'what was left of the work is lost with an answer', lua: [{ from: 'restFrom(extra, now, ask.left,', to: 'restFrom(extra, now, 50,', of: ['answer'] }] },
  { name: 'the work lasts beyond the longest time because of a question', lua: [{ from: 'caught + max))\nextra', to: 'caught + 9 * max))\nextra', of: ['ask'] }] },
  { name: 'a second question while one is open', lua: [{ from: 'if ask and now < ask.expires then', to: 'if false then', of: ['ask'] }] },
  { name: 'an answered question stays listed', lua: [{ from: "redis.call('ZREM', ask.list, member)\nredis.call", to: 'redis.call', of: ['answer'] }] },
  { name: 'an answer isn’t told', shows: 'in feeds', lua: [{ from: "append(outbox, micros, 'answered', member, record, extra, caught_by, ' q' .. id .. ' y' .. agent)", to: '', of: ['answer'] }] },
  { name: 'a question that was withdrawn isn’t told', shows: 'in feeds', lua: [{ from: "append(outbox, micros, 'ask_ended', member, record, closed, nil, ended)", to: '' }] },
  // What comes after others.
  ...inOrder([
    { name: 'a release counts though it isn’t what is waited for', from: "string.find(words, ' ' .. named .. ' ', 1, true)", to: "string.find(words, ' [^/ ]+ ')" },
    { name: 'a prerequisite doesn’t know of those behind it', from: "(extra or '') .. ' W1'", to: "extra or ''" },
    { name: 'those behind an attempt don’t go to the next one', from: "redis.call('RENAME', dependents, dependentsOf(next_key, next_member))", to: '' },
    { name: 'what ended leaves the index before those behind it are released', from: '    setDue(key, due, now, member, now)\n    return {', to: "    redis.call('ZREM', due, member)\n    return {" },
    { name: 'what ended isn’t named for those behind it', from: 'local is_named = has_ended and', to: 'local is_named = false and' },
    { name: 'nobody looks what ended while it was passed', from: 'blocked and formatted or available', to: 'available' },
    { name: 'it can be caught while it is blocked', from: "if blocked then return isSealed and '5:' or '3:' end", to: '' },
    { name: 'it is released after its end', from: 'if now >= tonumber(expires) then return nil end', to: '', of: ['release', 'done', 'give-up', 'cancel', 'decide'] },
    { name: 'any end will do', from: "if need == 'd' and status ~= 'done' then", to: 'if false then' },
    { name: 'an attempt that is tried again counts as ended', from: "local successor = record and extra and string.match(extra, ' i(%S+)')", to: 'local successor = nil' },
    { name: 'what is released doesn’t enter its inbox', from: 'enterPart(inbox, member, extra, micros, nil, available)', to: '' },
    { name: 'what is released stays in the index as it was', from: 'setDue(key, due, available or expires, member, now)\n', to: '' },
    { name: 'what others cancelled stays in the index', from: "local rest = became == 'cancelled' and", to: 'local rest = false and' },
    { name: 'on one Redis those behind one that others cancelled aren’t seen to', from: 'queue[#queue + 1] = next', to: '' },
    { name: 'a successor waits again', from: "' A%1/0/%3/' .. msOnce(now))", to: "' A%1/1/%3')" },
    { name: 'a successor is carried past what its attempt before waited for', from: 'local blocked = isBlocked(extra)', to: 'local blocked = false' },
    { name: 'a reissue takes what had ended out of the index', from: "if waited and status == 'pending' then\n  setDue(key, due, now, member, now)\nelseif status == 'caught' or status == 'pending' or not hasDependents(extra) and not waited then", to: 'if true then' },
    { name: 'the next of an attempt that had failed before gets those behind it', from: "and string.find(attempt.record, '^[2-5]?:?[cp][ae]') and", to: 'and' },
  ]),
  // Groups and quotas.
  ...inGroups([
    { name: 'what is passed into a group has none', from: "string.match(extra, ' G(%S+)')\n  local position", to: 'nil\n  local position' },
    { name: 'a next attempt has no group', from: "' [^bcdgjmprstuwACEFGHIJKMPSTUW]%S+'", to: "' [^bcdgjmprstuwACEFHIJKMPSTUW]%S+'" },
    { name: 'a group that has something for the first time takes no turn', from: "if isFirst and (group or redis.call('EXISTS', groups) == 1) then", to: 'if false then' },
    { name: 'what has no group takes no turn', from: "if group and redis.call('ZCARD', groups) == 1 and redis.call('EXISTS', inbox) == 1 then", to: 'if false then' },
    { name: 'a group that comes is the first', from: 'local place, comers = math.max((last or 0) + 1, micros),', to: 'local place, comers = 1,' },
    { name: 'a group that was served is the first again', from: 'ms(place + i), name end', to: 'ms(i), name end' },
    { name: 'a group that was served leaves the turns', from: 'names[group.last] = group.name\n', to: 'over[#over + 1] = group.name\n' },
    { name: 'what was taken stays in its group', from: 'removeAll(groups, entries)', to: '' },
    { name: 'one more of a group is caught than may be', from: 'group.caught + group.taken >= plan.limit', to: 'group.caught + group.taken > plan.limit' },
    { name: 'a take of several counts what it takes as one', from: 'group.caught + group.taken >= plan.limit', to: 'group.caught + math.min(1, group.taken) >= plan.limit' },
    { name: 'what a take caught doesn’t count for its group', from: "if #of_groups > 0 then redis.call('ZADD', inbox .. ':caught-groups', unpack(of_groups)) end", to: '' },
    { name: 'what is caught by its id doesn’t count for its group', from: "if group then redis.call('ZADD', inbox .. ':caught-groups', 0, group .. ' ' .. member) end", to: '' },
    { name: 'what is caught by its id stays in its group', from: 'if leaveGroup(inbox, group, member) then return end', to: 'if true then return end', of: ['catch'] },
    { name: 'what is cancelled stays in its group', from: 'if leaveGroup(inbox, group, member) then return end', to: 'if true then return end', of: ['cancel'] },
    { name: 'what expires stays in its group', from: 'if leaveGroup(inbox, group, member) then return end', to: 'if true then return end', of: ['sweep'] },
    { name: 'what is done counts on for its group', from: 'leaveAllCaught(key, member, extra, seconds .. micros)', to: 'leaveCaught(key, member, extra)', of: ['done'] },
    { name: 'what failed counts on for its group', from: '\n  leaveAllCaught(key, member, extra, micros)', to: '\n  leaveCaught(key, member, extra)', of: ['give-up'] },
    { name: 'what wasn’t done in time counts on for its group', from: 'if group and leaveCaughtGroup(inbox, group, member, micros, limit, place) then', to: 'if false then', of: ['sweep'] },
    { name: 'a group that was held comes back to no turn', from: 'else goToEnd(turns, group, micros) end', to: 'end' },
    { name: 'a group stays held when one of it ends', from: "redis.call('ZREM', held, group)\n  if isBack", to: 'if isBack' },
    { name: 'a limit that was taken away holds on', from: "plan.limit == 0 and '+inf' or", to: "plan.limit == 0 and '-inf' or" },
    { name: 'what a lower limit held comes back to no turn', from: 'scores[2 * i - 1], scores[2 * i] = place, group end', to: "scores[2 * i - 1], scores[2 * i] = place, '' end" },
    { name: 'a group that is empty takes turns', from: "redis.call('ZREM', turns, group, isOnly and '' or group)", to: '' },
    { name: 'what has no group takes turns when all groups have gone', from: "over[#over + 1] = ''\n", to: '\n' },
    { name: 'a group of which all are caught isn’t listed', from: 'groupBehind(groups, after), groupBehind(caught, after)', to: 'groupBehind(groups, after), nil', of: ['groups'] },
    { name: 'the caught of a group are counted for what has none', from: "redis.call('SCARD', inbox .. ':caught') - redis.call('ZCARD', caught)", to: "redis.call('SCARD', inbox .. ':caught')", of: ['groups'] },
    { name: 'what has no group isn’t listed', from: 'if pending + without > 0 then', to: 'if false then', of: ['groups'] },
    { name: 'the list of groups ends with its first page', from: 'more = 1\n    break', to: 'break', of: ['groups'] },
    { name: 'what is passed doesn’t count for its agent', from: "redis.call('ZADD', list, due, member)\n    keepUntil", to: 'keepUntil' },
    { name: 'what ended counts on for its agent', from: "redis.call('ZREM', list, member)\n    if isCounted", to: 'if isCounted' },
    { name: 'a next attempt doesn’t count for its agent', from: "if next then redis.call('ZADD', list, next.due, next.member) end", to: '' },
    { name: 'what was passed before the limit isn’t named', from: "if isLimited and not string.find((extra or '') .. ' ', ' J*:' .. agent .. ' ', 1, true) then", to: 'if false then', of: ['uncounted'] },
    { name: 'what was passed before the limit isn’t counted', from: 'return isLimited and', to: 'return false and', of: ['index'] },
    { name: 'what was passed before the limit counts only for now', from: "if words ~= extra then redis.call('HSET', key, 's'", to: "if false then redis.call('HSET', key, 's'", of: ['index'] },
    { name: 'what a former replica ended counts on for its agent', from: "if #gone > 0 then redis.call('ZREM', list, unpack(gone)) end", to: '', of: ['live-tidy'] },
    { name: 'what is caught is taken for ended', from: "if status ~= 'pending' and status ~= 'caught' then", to: "if status ~= 'pending' then", of: ['live-tidy'] },
  ]),
  // A slot that is between two nodes.
  { name: 'the sweep forgets what is on the other node', shows: 'in a Cluster', lua: [{ from: 'local again = now - math.floor(score) + pause - 1000 < batch.retention and', to: 'local again = false and' }] },
  // Events.
  { name: 'an event names another catcher', shows: 'in feeds', lua: [{ from: "42), string.match(words, '%S+'), created)", to: "42), '-', created)", of: ['catch'] }] },
  // Schedules.
  ...inSchedules([
    { name: 'a change brings back a tick that was noted since it was read', from: "if (is_here and is_here .. ' ' .. next or '') ~= seen then", to: "if (is_here or '') ~= string.match(seen, '^%S*') then" },
    { name: 'a tick is noted as if nothing had changed', from: "if begun ~= '' and version ~= ARGV[5] then return { 'changed' } end", to: '' },
  ]),
  // Callbacks.
  ...inCallbacks([
    { name: 'an end isn’t told to a callback', from: "redis.call('ZADD', due, time, id)", to: '' },
    { name: 'a partition doesn’t know that it has callbacks', from: "redis.call('ZADD', calls, 'LT', time, tenant)", to: '' },
    { name: 'a callback that was taken is not due again', from: 'taken[#taken + 1], taken[#taken + 2] = ms(now + lease), id', to: 'gone[#gone + 1], gone[id] = id, true', of: ['callback-claim'] },
    { name: 'a callback that can’t be noted while a slot moves', from: "if string.find(extra, ' C', 1, true) then redis.call('EXISTS', key, callKeys(key, member)) end", to: '' },
    { name: 'a callback that failed is not tried again', from: "if outcome ~= 'again' then\n  redis.call('ZREM', due, id)", to: "if true then\n  redis.call('ZREM', due, id)", of: ['callback-tried'] },
    { name: 'all that a callback is told has one id', from: "member .. ' ' .. created .. ' ' .. number)", to: "member .. ' ' .. created)" },
    { name: 'handoffs passed at one moment have one callback', from: "redis.sha1hex(member .. ' ' .. created", to: 'redis.sha1hex(created' },
    { name: 'a next attempt has no callback', from: "' [^bcdgjmprstuwACEFGHIJKMPSTUW]%S+'", to: "' [^bcdgjmprstuwAGHJKMPSTUW]%S+'" },
    { name: 'a handoff that was taken from its catcher is told as cancelled', from: 'not next and nil, attempt.begins)', to: 'nil, attempt.begins)' },
    { name: 'a callback is told what it doesn’t want', from: 'if not letter or not string.find(wanted, letter, 1, true) then return end', to: 'if not letter then return end' },
  ]),
  // The relay.
  { name: 'what was moved isn’t noted with the feed', shows: 'in feeds', lua: [{ from: "redis.call('HSET', moved, unpack(words))", to: '' }] },
  { name: 'events are moved although others before them are missing', shows: 'in feeds', lua: [{ from: 'local isMissing = tonumber(befores[at]) > last', to: 'local isMissing = false' }] },
  { name: 'events are moved that were moved before', shows: 'in feeds', lua: [{ from: 'if not isMissing and its + 0 > last then', to: 'if not isMissing then' }] },
]

function inSchedules (all: ReadonlyArray<{ name: string } & LuaChange>): Mutation[] {
  return all.map(({ name, ...change }) => ({ name, shows: 'in schedules', lua: [change] }))
}

function inGroups (all: ReadonlyArray<{ name: string } & LuaChange>): Mutation[] {
  return all.map(({ name, ...change }) => ({ name, shows: 'in groups', lua: [change] }))
}

function inOrder (all: ReadonlyArray<{ name: string } & LuaChange>): Mutation[] {
  return all.map(({ name, ...change }) => ({ name, shows: 'in order', lua: [change] }))
}

function inCallbacks (all: ReadonlyArray<{ name: string } & LuaChange>): Mutation[] {
  return all.map(({ name, ...change }) => ({ name, shows: 'in callbacks', lua: [change] }))
}
