import type { Mutated } from '../mutants.ts'

export const scriptLibraries: readonly Mutated[] = [
  {
    file: 'lua/lib/decisions.lua',
    tests: ['http/decisions'],
    changes: [
      ["for word in string.gmatch(extra or '', ' [Fjt]%S+') do words = words .. word end", ''],
      ['{ decisions.facts, decisions.list }', '{ decisions.facts }'],
      ['math.min(100, over) - 1)', 'math.min(100, over) - 2)'],
      ["redis.call('HDEL', list .. id, moment, moment .. 't')", ''],
      ['count > 0 and redis', 'count > 1 and redis'],
    ],
  },
  {
    file: 'lua/lib/groups.lua',
    tests: ['http/groups'],
    changes: [
      ["redis.call('ZREM', turns, group, isOnly and '' or group)", "redis.call('ZREM', turns, group)"],
      ["redis.call('ZREM', held, group)\n    redis.call('ZREM', turns", "redis.call('ZREM', turns"],
      ['local isBack = place and (limit == 0 or was + 0 < limit)', 'local isBack = false'],
      ['plan.place or endOfTurns(turns, micros)', 'endOfTurns(turns, micros)'],
      ['plan.more = 1\n    return plan', 'return plan'],
      ["if not rank and plan.isMissing then queue[#queue + 1] = '' end", ''],
      ["if isMissing then served[1] = '' end", ''],
      ['if one and size > 0 and size + one.bytes + 700 > MAX_TAKEN then', 'if false then'],
      ['elseif isAtLimit(plan, group) then', 'elseif false then'],
      ['group.caught + group.taken >= plan.limit', 'group.caught + group.taken > plan.limit'],
      ['for at = 1, count do\n    if names[at]', 'for at = count, 1, -1 do\n    if names[at]'],
      ['ms(place + i)', 'ms(place)'],
      ['removeAll(turns, over)', ''],
      ['if one == \'gone\' then group.gone[#group.gone + 1] = { member, position } end', ''],
      ['~= status then\n      strays', '== status then\n      strays'],
      ["redis.call('ZSCORE', turns, '') and 1 or 0", '0'],
      ["redis.call('DEL', groups, grouped, turns, held)", "redis.call('DEL', groups, grouped)"],
    ],
  },
  {
    file: 'lua/lib/asking.lua',
    tests: ['http/asks', 'lua/model', 'web/questions'],
    changes: [
      ['local is_over = at >= ask.expires', 'local is_over = now >= ask.expires'],
      ["if not ask.is_replaced then redis.call('ZREM', ask.list, member) end", ''],
      ['local deadline = math.min(from + left, latest)', 'local deadline = from + left'],
      ['beat = math.min(from + within, deadline)', 'beat = from + within'],
      ["if not string.find(extra, ' f', 1, true) then extra = extra .. ' f1' end", ''],
    ],
  },
  {
    file: 'lua/lib/after.lua',
    tests: ['http/after', 'store/dependents', 'lua/model', 'state-machine', 'client/work'],
    changes: [
      ["if need == 'd' and status ~= 'done' then", "if need == 'd' and status ~= 'done' and status ~= 'gone' then"],
      ['open = open - 1', 'open = 0'],
      ['if now >= tonumber(expires) then return nil end', ''],
      ['if not from then return nil end', 'if not from then from, upto = 1, #words end'],
      ["leaveList(key, inbox .. ':blocked', member)", ''],
      ['setDue(key, due, available or expires, member, now)\n  redis.pcall', 'redis.pcall'],
      ["redis.pcall('SPUBLISH', key, 'released')", ''],
      [
        "if became == 'cancelled' then\n        next.status = 'cancelled'",
        "if became == 'released' then\n        next.status = 'cancelled'",
      ],
      [
        "if #found > 0 then redis.call('SREM', dependents, unpack(found)) end",
        '',
        'the sweep removes them later (store/dependents.ts)',
      ],
      [
        "local ends = status == 'pending' and expires or status == 'caught' and math.max(expires, d" +
          'eadline)',
        "local ends = status == 'pending' and expires",
      ],
      ['and open - 1 or open', 'or open'],
      ['if is_new then keepDependents(dependents, one.ends) end', ''],
      ["redis.call('HSET', key, 's', record, 'x', extra, 'p', '')", "redis.call('HSET', key, 's', record, 'x', extra)"],
      ["if status == 'pending' then leaveInbox(key, member, extra, approval) end", ''],
      ["redis.pcall('SPUBLISH', waiting, 'cancelled')", ''],
    ],
  },
  {
    file: 'lua/lib/successor.lua',
    tests: ['lua/successors', 'http/operate', 'lua/model', 'state-machine', 'http/lists', 'http/after'],
    changes: [
      ["if not number or string.find(extra, ' q', 1, true) then return nil end", 'if not number then return nil end'],
      ['* 2 ^ (number - 1))', '* 2 ^ number)'],
      ['return math.min(3600000,', 'return math.max(0,'],
      ["local from = number > 2 and string.match(extra, ' a(%d+)') or created", 'local from = created'],
      [
        "redis.call('PEXPIREAT', next_key, msOnce(until_expiry + attempt.retention))",
        "redis.call('PEXPIREAT', next_key, msOnce(until_expiry))",
      ],
      ["if has_told then redis.call('HDEL', next_key, 'c', 'g', 'e') end", ''],
      ["redis.call('PEXPIREAT', attempt.key, msOnce(attempt.now + attempt.retention))", ''],
      ["redis.pcall('SPUBLISH', attempt.key, status)", ''],
      ['enterOver(list, member, ms(ended), now)', 'enterOver(list, member, ms(now), now)'],
      ["if waits then\n    redis.call('RENAME', dependents, dependentsOf(next_key, next_member))", 'if waits then'],
      ['return sub(id, 1, 3) .. string.char', "return sub(id, 1, 2) .. 'A' .. string.char"],
      ["status ~= 'cancelled' and reissued_as or nil,", 'reissued_as,'],
    ],
  },
  {
    file: 'lua/lib/ended.lua',
    tests: ['http/lists', 'http/ended'],
    changes: [
      ["if gone > 0 then redis.call('ZREMRANGEBYRANK', list, 0, math.min(gone, 400) - 1) end", ''],
      ["redis.call('PEXPIREAT', list, ms(now + RETENTION + LOOK))", ''],
      ["if redis.call('PEXPIRETIME', list) < now + RETENTION then", 'if true then'],
      ["if string.sub(time, -2) == '00' then", 'if true then'],
    ],
  },
  {
    file: 'lua/lib/sweeping.lua',
    tests: [
      'lua/sweep', 'store/sweeper', 'lua/model', 'state-machine', 'lua/successors', 'http/asks', 'http/after',
    ],
    changes: [
      ['if deadline and tonumber(deadline) > now then', 'if deadline and tonumber(deadline) >= now then'],
      ['record and not status and now + 10000', 'record and not status and now - 10000'],
      ["local pause = status == 'caught' and pauseBehind(extra)", 'local pause = false'],
      ['if isStalled then batch.stalled = batch.stalled + 1 end', ''],
      [
        "local isFreed = status == 'pending' and not inboxOf(key, member, extra)",
        "local isFreed = status == 'pending'",
      ],
      ['if lists then enterFailed(lists, member, deadline, now) end', ''],
      ["if extra and status == 'caught' then redis.call('PEXPIREAT', key, ms(deadline + batch.retention)) end", ''],
      ['has_ended = not pause', 'has_ended = true'],
      [
        'if batch.now < ask.expires then return math.min(ask.expires, tonumber(deadline)) end',
        'if batch.now < ask.expires then return deadline end',
      ],
      ['math.min(300000, math.max(3000, age)))', '300000)'],
      ["redis.pcall('SPUBLISH', waiting, 'expired')", ''],
      ["if record and not inboxOf(key, member, extra) then redis.call('HDEL', key, 't') end", ''],
      ['local pause = 1000 * 2 ^ (score % 1 * 32)', 'local pause = 1000'],
    ],
  },
  {
    file: 'lua/lib/work.lua',
    tests: ['lua/model', 'state-machine', 'http/status', 'http/operate', 'lua/successors', 'lua/waiting'],
    changes: [
      ['or beat and now >= tonumber(beat) then', 'then'],
      ["if caught_by == agent and status ~= 'caught' then", "if status ~= 'caught' then"],
      ["if made_by == token then return { 'replayed', now, record, extra } end", ''],
      [
        "if over and not (isOthers and (status == 'done' or status == 'failed' or status == 'declin" +
          "ed')) then return over end",
        'if over then return over end',
      ],
      ["if isOthers then return { 'not_the_catcher', now, record, extra } end", ''],
      [
        'return max and number < tonumber(max) and number or nil',
        'return max and number <= tonumber(max) and number or nil',
      ],
      ['(attemptBeforeOthers(extra) and UNSWEPT or 0)', '0'],
      [
        "local deadline = now + (extra and string.match(extra, ' w(%d+)') or work_ttl)",
        'local deadline = now + work_ttl',
      ],
      ['looked_at = math.min(now + within, deadline)', 'looked_at = now + within'],
      ['if looked_at < expires + 0 then setDue(', 'if looked_at > expires + 0 then setDue('],
      ["if settings then redis.pcall('SPUBLISH', inbox, 'ended') end", ''],
      ["if redis.call('SREM', inbox .. ':caught', member) == 0 then isHere(key, inbox .. ':caught') end", ''],
    ],
  },
  {
    file: 'lua/lib/passing.lua',
    tests: ['http/approvals', 'http/encryption'],
    changes: [
      ["string.sub(payload, 8, 7 + beginning) .. '\"'", "string.sub(payload, 8, 6 + beginning) .. '\"'"],
      ["return blocked and '5:' or '4:'", "return blocked and '3:' or '2:'"],
      ['isSealed and title, isSealed and beginning', 'false, false'],
    ],
  },
  {
    file: 'lua/lib/record.lua',
    tests: ['lua/full', 'lua/model', 'lua/sweep', 'http/approvals', 'lua/waiting'],
    changes: [
      ['return more > 512', 'return more > 512000'],
      ['return string.sub(payload, 8, 2447)', 'return string.sub(payload, 8, 447)'],
      ["if #micros < 6 then micros = string.rep('0', 6 - #micros) .. micros end", ''],
    ],
  },
  {
    file: 'lua/lib/late.lua',
    tests: ['redis/lane', 'lua/model', 'http/outage', 'lua/keys'],
    changes: [
      ['if now > ARGV[1] + 0 then', 'if now > ARGV[1] + 60000 then'],
    ],
  },
  {
    file: 'lua/lib/due.lua',
    tests: ['lua/due', 'store/sweeper', 'lua/sweep', 'http/indexing', 'lua/versions'],
    changes: [
      ['math.min(time, now + LOOK)', 'math.max(time, now + LOOK)'],
      ['if isMoved and time >= now + LOOK then return end', 'if isMoved then return end'],
      ["redis.call('ZREMRANGEBYRANK', old, 0, #found / 2 - 1)", ''],
      ['return #found == 400', 'return false'],
      [
        'if isThere then lookBy(key, due, now + LOOK, now) else setDue(key, due, now, member, now) ' +
          'end',
        'setDue(key, due, now, member, now)',
      ],
    ],
  },
  {
    file: 'lua/lib/events.lua',
    tests: ['http/events', 'store/events', 'lua/model', 'webhooks/messages'],
    changes: [
      ["caught_by = catcher == '' and '-' or catcher", "caught_by = '-'"],
      ['if more then rest = rest .. more end', ''],
      ["type ~= 'passed' and created)", 'created)'],
    ],
  },
  {
    file: 'lua/lib/tasks.lua',
    tests: ['http/events', 'store/events', 'lua/model', 'webhooks/messages', 'a2a/between'],
    changes: [
      ["if beat and tonumber(beat) < tonumber(deadline) then return beat, 'stalled' end", "if beat then return beat, 'stalled' end"],
    ],
  },
  {
    file: 'lua/lib/task-notes.lua',
    tests: ['a2a/tasks', 'a2a/between'],
    changes: [['since = ms(dueAt(type, record, extra, now))', 'since = ms(now)']],
  },
  {
    file: 'lua/lib/taking.lua',
    tests: [
      'http/inboxes', 'http/inbox-settings', 'http/several-inboxes', 'lua/model', 'http/inboxes-crossings',
    ],
    changes: [
      ["redis.call('HSTRLEN', key, 'p') + #(schema or '') + #(decision or '')", "#(decision or '')"],
      ["if paused == '1' then return 'closed' end", ''],
      ["if limit == '0' then return max end", ''],
      ["if other then taken = taken + redis.call('SCARD', other .. ':caught') end", ''],
      ['return taken < limit + 0 and', 'return taken <= limit + 0 and'],
      ['math.min(max, limit - taken) or', 'max or'],
      ["+ (elsewhere == '' and 0 or elsewhere)", ''],
      ["if elsewhere == '?' then return 'limited' end", "if elsewhere == '?' then elsewhere = 0 end"],
      ["(status ~= 'pending' or approval == 'waiting' or now >= expires + 0)", "(status ~= 'pending' or approval == 'waiting')"],
      ["approval == 'waiting' or now", 'now'],
      ['available and now < available + 0 then', 'false then'],
      [
        "if status == 'caught' and not is_over and by == agent and made_by == token then",
        "if status == 'caught' and by == agent and made_by == token then",
      ],
      ["if before and asked ~= request then return { 'reused' } end", ''],
      ["kept_for == '' and 10000 or ms(math.max(kept_for, work))", "kept_for == '' and 10000 or kept_for"],
      ["if request ~= '-' then redis.pcall('SPUBLISH', remembered, 'taken') end", ''],
      ["if since and now < since + 10000 and now > since - 10000 then return { 'left' } end", ''],
      ["if max_bytes and request ~= '-' and bytesOf(all) > max_bytes then return { 'larger' } end", ''],
    ],
  },
  {
    file: 'lua/lib/inbox.lua',
    tests: [
      'http/inboxes', 'http/inbox-settings', 'lua/model', 'state-machine', 'http/inbox-metrics', 'http/labels', 'http/groups',
    ],
    changes: [
      [
        "return not inbox or string.find(inboxes, ' ' .. inbox .. ' ', 1, true)",
        'return not inbox or string.find(inboxes, inbox, 1, true)',
      ],
      ['+ priority - priority * MINUTE, inbox', '+ priority + priority * MINUTE, inbox'],
      ["'(' .. group .. '!') == 1", "'(' .. group .. '!') > 0"],
      ["redis.call('ZCARD', groups) == 1 and redis.call('EXISTS', inbox) == 1 then", 'false then'],
      ["(group or redis.call('EXISTS', groups) == 1)", 'group'],
      ["redis.pcall('SPUBLISH', inbox, 'passed')", ''],
      ["blocked and ':blocked' or ':delayed')", "':delayed')"],
      ["return open and open ~= '0'", 'return open'],
      ['if math.max(decided or 0, released or 0) >= tonumber(available) then return end', ''],
      ['enterInbox(inbox, member, extra, available * 1000)', 'enterInbox(inbox, member, extra, now * 1000)'],
      ["redis.call('ZREM', inbox .. ':delayed', member)", ''],
      ["if approval == 'waiting' then return leaveList(key, inbox .. ':waiting', member) end", ''],
      ["if isBlocked(extra) then return leaveList(key, inbox .. ':blocked', member) end", ''],
      ["redis.call('ZCARD', inbox .. ':delayed') +", ''],
      ['if oldest and position >= oldest then return oldest end', 'if oldest then return oldest end'],
      [
        "redis.call('ZCOUNT', inbox .. ':failed', ms(now - retention), '+inf')",
        "redis.call('ZCOUNT', inbox .. ':failed', '-inf', '+inf')",
      ],
      [
        "redis.call('ZCOUNT', inbox .. ':waiting', '(' .. ms(now), '+inf'),\n    redis.call('ZCARD'",
        "redis.call('ZCARD', inbox .. ':waiting'),\n    redis.call('ZCARD'",
      ],
    ],
  },
  {
    file: 'lua/lib/listing.lua',
    tests: [
      'http/lists', 'http/labels', 'http/approvals', 'http/asks', 'http/operate', 'lua/waiting', 'cli/list',
    ],
    changes: [
      ['return #one > #other', 'return #one < #other'],
      [
        'if isBehind(found[1], member) then high = middle else low = middle + 1 end',
        'if isBehind(member, found[1]) then low = middle + 1 else high = middle end',
      ],
      ["if listing.words ~= '' and (not extra or not isWanted(extra, listing.words)) then return false end", ''],
      ['if not over or listing.now >= over then return false end', 'if not over then return false end'],
      ['if listing.now >= tonumber(over) then return false end', ''],
      ["elseif extra and string.find(extra, ' i', 1, true) then", 'elseif false then'],
      ["if listing.caught_by ~= '' and listing.caught_by ~= caught_by then return false end", ''],
      ["if listing.passed_by ~= '' and listing.passed_by ~= passed_by then return false end", ''],
      [
        "not string.find(listing.statuses, ' ' .. status .. ' ', 1, true) then return false end",
        'false then return false end',
      ],
      ['if length and length > listing.texts then return nil end', ''],
      ['if not isFirst and (listing.texts < 0 or listing.payloads < 0) then return nil end', ''],
      ["if listing.step == -1 and listing.since ~= '' and score - listing.since < 0 then return true end", ''],
      [
        'return listing.last and (score - listing.last) * listing.step > 0',
        'return listing.last and (score - listing.last) * listing.step >= 0',
      ],
      [
        'if isBehindLast(listing, score) or found.left == 0 then return true end',
        'if isBehindLast(listing, score) then return true end',
      ],
      [
        'return math.min(rank, isThere and not includes and after - 2 or after - 1)',
        'return math.min(rank, isThere and not includes and after - 1 or after - 1)',
      ],
    ],
  },
  {
    file: 'lua/lib/reply.lua',
    tests: ['redis/lane', 'lua/model', 'redis/call', 'http/large-reads'],
    changes: [
      ['if budget <= 0 then break end', ''],
    ],
  },
]
