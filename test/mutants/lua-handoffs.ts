import type { Mutated } from '../mutants.ts'

export const handoffScripts: readonly Mutated[] = [
  {
    file: 'lua/pass.lua',
    tests: [
      'lua/model', 'http/traces', 'state-machine', 'http/pass', 'http/idempotency', 'http/approvals', 'http/inboxes',
      'http/after', 'lua/due',
    ],
    changes: [
      [
        "if string.match(made_by, OPERATION) ~= string.match(words, ' ([^/]+)') then",
        "if made_by ~= string.match(words, ' (%S+)') then",
      ],
      [
        "local found = call('EXISTS', key, due, due)\nlocal record = found % 2 == 1 and call('HGET'," +
          " key, 's')",
        "local found = call('EXISTS', key, due, due)\nlocal record = false",
      ],
      [
        "call('PEXPIREAT', key, string.format('%d', expires + RETENTION))",
        "call('PEXPIREAT', key, string.format('%d', expires))",
      ],
      [
        "record = (kept and 'pending waiting ' or 'pending none ')",
        "record = (kept and 'pending none ' or 'pending none ')",
      ],
      ['if not kept then inbox = waiting end', 'inbox = waiting'],
      ['available = available and now + available\n', 'available = available and available + 0\n'],
      ["if options == ' ?' then return { 'fresh' } end", ''],
      ['if limit > 0 and pendingIn(inbox, now) >= limit then', 'if limit > 0 and pendingIn(inbox, now) > limit then'],
      ["blocked, shown = open ~= '0',", 'blocked, shown = true,'],
      [
        "local looked_at = blocked and formatted or available and string.format('%d', available) or" +
          ' until_expiry',
        'local looked_at = blocked and formatted or until_expiry',
      ],
      ["call('ZADD', due, looked_at, member, 'inf', '-')", "call('ZADD', due, looked_at, member)"],
      ['if found == 0 or (blocked', 'if (blocked'],
      ["call('ZADD', waiting, formatted, member)", "call('ZADD', waiting, until_expiry, member)"],
      ["redis.pcall('SPUBLISH', waiting, 'pending')", ''],
      ["(blocked and '' or '/' .. formatted)", "''"],
    ],
  },
  {
    file: 'lua/catch.lua',
    tests: [
      'lua/model', 'state-machine', 'http/status', 'http/approvals', 'lua/waiting', 'http/after', 'http/inboxes',
      'http/large-reads',
    ],
    changes: [
      ["if not record then return { 'not_found' } end", ''],
      ["if isPlain and isLarger then return { 'larger' } end", ''],
      [
        "if not isAddressed(extra, ARGV[3] ~= '' and ARGV[3]) then return { 'not_addressee', now, r" +
          'ecord, extra, decision } end',
        '',
      ],
      ["if by .. ' ' .. made_by ~= words then", "if by ~= string.match(words, '%S+') then"],
      ["if approval == 'waiting' then return { 'approval_required', now, record, extra } end", ''],
      ["if isBlockedRecord(record) then return { 'blocked', now, record, extra } end", ''],
      ['if now < tonumber(extra and', 'if now + 60000 < tonumber(extra and'],
      ['leavePending(key, inbox, member, extra)', ''],
      ['enterCaught(inbox, member, extra)', ''],
      [
        "call('PEXPIREAT', key, string.format('%d', deadline + RETENTION))",
        "call('PEXPIREAT', key, string.format('%d', deadline))",
      ],
      ["redis.pcall('SPUBLISH', key, 'caught')", ''],
    ],
  },
  {
    file: 'lua/done.lua',
    tests: [
      'lua/model', 'state-machine', 'http/status', 'lua/waiting', 'http/wait', 'result-schema/taken', 'http/asks',
      'lua/due', 'lua/successors',
    ],
    changes: [
      ['now >= string.sub(record, at - 13, at - 1) + 0 then', 'now > string.sub(record, at - 13, at - 1) + 60000 then'],
      ['if refusal then return refusal end', ''],
      ['if wanted and wanted ~= satisfied then', 'if wanted and not satisfied then'],
      ['leaveAllCaught(key, member, extra, seconds .. micros)', ''],
      ['extra, ended = closeAsk(ask, member, record, extra, now)', "ended = ''"],
      ["call('HSET', key, 's', record, 'p', result)", "call('HSET', key, 's', record)"],
      ["call('PEXPIREAT', key, string.format('%d', now + RETENTION))", ''],
      ["redis.pcall('SPUBLISH', key, 'done')", ''],
    ],
  },
  {
    file: 'lua/decide.lua',
    tests: [
      'http/approvals', 'lua/model', 'state-machine', 'http/approvals-decide', 'http/decisions', 'http/inboxes',
    ],
    changes: [
      ["if approval == 'none' then", "if approval ~= 'waiting' then"],
      ["if made_by == token then return { 'replayed', tonumber(at) } end", ''],
      ["if status == 'cancelled' then return { 'cancelled', now, record, extra } end", ''],
      ["if status == 'expired' or now >= tonumber(expires) then", "if status == 'expired' then"],
      ['if passed_by == decided_by or', 'if false or'],
      ["or extra and string.match(extra, ' U(%S+)') == subject then", 'then'],
      ["if seen ~= '' and seen ~= created or", 'if'],
      ["digest ~= '' and digest ~= compared then", 'false then'],
      ["leaveList(key, inbox .. ':waiting', member)", ''],
      ['if inbox and isYes then', 'if inbox then'],
      ["redis.call('HDEL', key, 't')", ''],
      ["if not isYes then redis.call('PEXPIREAT', key, ms(now + retention)) end", ''],
      ["redis.call('ZREM', waiting, member)", ''],
      ["(content or '-')", "'-'"],
      ["redis.pcall('SPUBLISH', key, verdict)", ''],
      ["redis.pcall('SPUBLISH', waiting, verdict)", ''],
      ["leaveDue(key, due, member, extra, 'rejected', now, micros)", ''],
    ],
  },
  {
    file: 'lua/cancel.lua',
    tests: ['lua/model', 'state-machine', 'http/operate', 'lua/successors', 'http/inboxes', 'http/asks'],
    changes: [
      ['if passed_by ~= agent and not is_operator then', 'if passed_by ~= agent and is_operator then'],
      ["if ARGV[5] == '2' and status ~= 'pending' then return { 'not_found' } end", ''],
      ["if status == 'cancelled' then return { 'replayed', now, record, extra } end", ''],
      ["local goes_on = status == 'caught' and not force", 'local goes_on = false'],
      ["local is_first = status == 'caught' and not string.match(extra, ' q')", "local is_first = status == 'caught'"],
      ["if goes_on then\n  if reason ~= '' then redis.call('HSET', key, 'c', reason) end", 'if goes_on then'],
      ["leaveDue(key, due, member, extra, 'cancelled', now, micros)", ''],
      ['now + retention)', 'now)'],
      [
        "if status == 'caught' and force then extra = leaveWork(outbox, micros, key, member, record" +
          ', extra, now) end',
        '',
      ],
    ],
  },
  {
    file: 'lua/give-up.lua',
    tests: ['lua/model', 'state-machine', 'lua/successors', 'http/operate', 'http/lists'],
    changes: [
      ['if refusal then return refusal end', ''],
      ["local pause = may_retry == '1' and pauseBehind(extra)", 'local pause = pauseBehind(extra)'],
      ['setDue(key, due, successor.due, successor.member, now)', ''],
      ['leaveDue(key, due, member, extra, became, now, micros)', ''],
      ["(code == '' and '' or ' l' .. code)", "''"],
      ["redis.call('ZREM', due, member)", ''],
    ],
  },
  {
    file: 'lua/heartbeat.lua',
    tests: ['lua/model', 'state-machine', 'http/asks', 'lua/successors', 'http/waiting-attempts'],
    changes: [
      ['if refusal then return refusal end', ''],
      ['or now + extend_by, caught + max)', 'or now + extend_by, caught + max + extend_by)'],
      ['if extended > tonumber(deadline) then', 'if true then'],
      ['keepWork(key, extended, retention, extra)', ''],
      ["if not string.match(extra, ' f') then extra = extra .. ' f1' end", ''],
      [
        'beat = math.min((is_open and expires or now) + within, tonumber(deadline))',
        'beat = (is_open and expires or now) + within',
      ],
      ['(is_open and expires or now) + within', 'now + within'],
      ["string.match(extra, ' q') and 1 or 0", '0'],
      ["redis.call('HSET', key, 'g', ms(now) .. ' ' .. progress)", ''],
      ["'/o' .. ms(left + extend_by))", "'/o' .. ms(left + 0))"],
    ],
  },
  {
    file: 'lua/reissue.lua',
    tests: ['lua/successors', 'http/operate', 'state-machine', 'http/lists', 'lua/model'],
    changes: [
      ["if passed_by ~= agent and ARGV[5] == '0' then", 'if passed_by ~= agent then'],
      ["if status == 'pending' and now < tonumber(expires) then", "if status == 'pending' then"],
      ["if status == 'done' then return { 'already_done', now, record, extra } end", ''],
      ["if status == 'cancelled' then return { 'cancelled', now, record, extra } end", ''],
      ["if isTaken and ARGV[5] == '2' then return { 'not_found' } end", ''],
      ['leaveFailed(key, member, extra) end', 'end'],
      ['setDue(key, due, next.due, next.member, now)', ''],
      ['local next = succeed(attempt, 0)', 'local next = succeed(attempt, 60000)'],
      ["and redis.call('HSTRLEN', key, 'p') > 0) then", ') then'],
      ['isTaken and 1 or 0 }', '0 }'],
    ],
  },
  {
    file: 'lua/sweep.lua',
    tests: ['lua/sweep', 'lua/due', 'store/sweeper', 'lua/model', 'state-machine'],
    changes: [
      ['or now < string.sub(record, 28, 40) + 0 then break end', 'then break end'],
      ["call('HSET', key, 's', record, 'p', '')", "call('HSET', key, 's', record)"],
      ['if naming then batch.named[#batch.named + 1] = member end', ''],
      ["if #later > 0 then call('ZADD', due, unpack(later)) end", ''],
      [
        "if over > 0 then call('ZREMRANGEBYRANK', due, 0, over - 1) end",
        "if over > 0 then call('ZREMRANGEBYRANK', due, 0, over) end",
      ],
      ['first = math.min(first or at, at)', 'first = math.max(first or at, at)'],
      ["if #gone > 0 then call('ZREM', tenants, unpack(gone)) end", ''],
      ["for _, tenant in ipairs(gone) do call('ZREM', prefix .. 'due:' .. tenant, '-') end", ''],
      ["live = live + call('ZCARD', due) - 1", "live = live + call('ZCARD', due)"],
      ['math.floor(live * size / most)', 'live'],
      [
        'local share, lists, gone = math.floor((limit - 1) / math.max(1, #turns)) + 1, {}, {}',
        'local share, lists, gone = limit, {}, {}',
      ],
      ['if #ahead > 0 and #turns + #ahead >= limit + 0 then first = now end', ''],
      ['for place = 1, math.min(#ahead, limit - #turns) do turns[#turns + 1] = ahead[place] end', ''],
      ['if moveOldDue(prefix, tenants, now) then first = now end', ''],
      ["if #successors > 0 then call('ZADD', due, unpack(successors)) end", ''],
    ],
  },
  {
    file: 'lua/release.lua',
    tests: ['http/after', 'store/dependents', 'lua/model', 'state-machine'],
    changes: [
      [
        "local rest = became == 'cancelled' and leaveDue(key, due, member, extra, 'cancelled', now," +
          ' seconds .. micros) or {}',
        'local rest = {}',
      ],
    ],
  },
  {
    file: 'lua/ask.lua',
    tests: ['http/asks', 'lua/model', 'web/questions', 'client/asks'],
    changes: [
      ["if ask and now < ask.expires then return { 'already_asked', now, record, extra } end", ''],
      ['if refusal then return refusal end', ''],
      ['select(8, string.match(record, RECORD)) == agent then', 'true then'],
      ["redis.call('HDEL', key, 'a')", ''],
      ['if ask then ask.is_replaced = ask.list == list end', 'if ask then ask.is_replaced = true end'],
      ['math.max(tonumber(deadline), caught + max))', 'caught + max)'],
      [
        'setDue(key, due, math.min(expires, beat or until_done), member, now)',
        'setDue(key, due, beat or until_done, member, now)',
      ],
      ["redis.pcall('SPUBLISH', key, 'asked')", ''],
      ['announceAsks(list)', ''],
      ["(of == 'r' and 'passer' or 'person')", "(of == 'p' and 'passer' or 'person')"],
      ["redis.call('ZADD', list, ms(now), member)", "redis.call('ZADD', list, ms(expires), member)"],
    ],
  },
  {
    file: 'lua/answer.lua',
    tests: ['http/asks', 'lua/model', 'web/questions', 'client/asks'],
    changes: [
      ["if id ~= wanted then return { 'content_changed', now, record, extra } end", ''],
      ["if state == 'a' then return { 'already_answered', now, record, extra } end", ''],
      ["if not string.find(letters, of, 1, true) then return { 'no_scope', now, record, extra } end", ''],
      ["if of == 'p' and agent == caught_by then", "if of == 'r' and agent == caught_by then"],
      ["if of == 'r' and agent ~= passed_by then return { 'not_the_passer', now, record, extra } end", ''],
      ["if digest ~= '-' and digest ~= satisfied then", "if digest ~= '-' and satisfied == '' then"],
      [
        "state = math.min(now, over) >= tonumber(expires) and 'e' or now >= over and 'w' or 'o'",
        "state = now >= tonumber(expires) and 'e' or 'o'",
      ],
      ["redis.call('ZREM', ask.list, member)", ''],
      ['setDue(key, due, beat or until_done, member, now)', ''],
      ["redis.pcall('SPUBLISH', key, 'answered')", ''],
      ['announceAsks(ask.list)', ''],
      ['math.min(tonumber(deadline), caught + max))', 'tonumber(deadline))'],
    ],
  },
]
