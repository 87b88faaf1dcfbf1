-- Commits what a former has decided, as far as what it assumed still holds: out of the queue, into the leases and the inbox of a
-- worker, the worker between the lists, in one step. Safe to send twice.
-- ARGV: 1 what the tokens begin with, unique to this call (no two deliveries have the same, however often it is sent), 2 worker to keep free of shared leases, or '',
--       3 leases (JSON: [{"workerId", "isExclusive", "ids"}, …])
-- Returns: one for each id, in the order of the leases: {'leased', token, trace or ''} | {'waiting'} (that worker has no room,
--          or the model is paused) | {'moved'} (somebody else was faster) | {'expired'}
--- @include "worker-pool"
--- @include "end-request"
local reservedKey, reservationMs, nowMs, outcomes = base .. ':reserved', 3000, timeMs(), {}
if ARGV[2] ~= '' and isOpen(redis.call('HGET', key('worker', ARGV[2]), 'list')) then redis.call('SET', reservedKey, ARGV[2], 'PX', reservationMs) end
local isPaused = redis.call('EXISTS', base .. ':paused') == 1

-- The slots it has left, 0 when it takes no such lease, and what it has when idle.
local function roomOf(workerId, isExclusive)
  local list, free, capacity = unpack(redis.call('HMGET', key('worker', workerId), 'list', 'free', 'capacity'))
  local isAlone = isExclusive and (list == 'idle' or list == 'asleep') and redis.call('EXISTS', key('leases', workerId)) == 0
  local isFit = isAlone or not isExclusive and isOpen(list) and redis.call('GET', reservedKey) ~= workerId
  if isPaused or not isFit or not isHeard(workerId) then return 0, 0 end
  return tonumber(free), tonumber(capacity)
end

-- Marks it running; returns its lease and its inbox entry. facts: of its hash.
local function start(facts, token, workerId, slots)
  local id, attempt = facts.id, facts.attempts + 1
  tallyState(facts, 'running', nowMs)
  leaveQueue(facts, false)
  redis.call('ZADD', base .. ':deadlines', facts.deadlineMs, id)
  redis.call('HSET', key('leases', workerId), id .. ' ' .. token, slots .. ' ' .. facts.shapeKey)
  local followed = facts.followedUntilMs and ',"followedMs":' .. math.max(0, facts.followedUntilMs - nowMs) or ''
  emitEvent(facts, '{"type":"started","attempt":' .. attempt .. '}', { 'state', 'running', 'sinceMs', nowMs, 'attempts', attempt,
    'worker', workerId, 'token', token, 'startedAtMs', facts.startedAtMs or nowMs })
  return '{"token":"' .. token .. '","attempt":' .. attempt .. ',"slots":' .. slots .. ',"remainingMs":' .. facts.deadlineMs - nowMs ..
    ',"isResumed":' .. (facts.startedAtMs and 'true' or 'false') .. followed .. ',"envelope":' .. redis.call('GET', key('input', id)) .. '}'
end
local factNames = { 'state', 'token', 'owner', 'cost', 'weight', 'slots', 'shapeKey', 'deadlineMs', 'startDeadlineMs', 'startedAtMs', 'trace', 'sequence',
  'followedUntilMs', 'attempts', 'sinceMs', 'createdAtMs', 'position', 'webhook' }
for _, lease in ipairs(cjson.decode(ARGV[3])) do
  local entries, taken = {}, 0
  local room, capacity = roomOf(lease.workerId, lease.isExclusive)
  for _, id in ipairs(lease.ids) do
    local call, facts = ARGV[1] .. '.' .. #outcomes + 1 .. '.', factsOf(id, factNames)
    local token = call .. (facts.sequence or '')
    -- Alone: all of the worker beside its own, so that none of it is given to others before its end.
    local slots = (lease.isExclusive and capacity or 0) + (facts.slots or 0)
    if facts.token and string.sub(facts.token, 1, #call) == call then
      outcomes[#outcomes + 1] = { 'leased', facts.token, facts.trace or '' }
    elseif facts.state ~= 'queued' then
      outcomes[#outcomes + 1] = { 'moved' }
    elseif nowMs >= tonumber(facts.startedAtMs and facts.deadlineMs or facts.startDeadlineMs) then
      endRequest(id, 'expired', '')
      outcomes[#outcomes + 1] = { 'expired' }
    elseif room - taken < 1 then
      outcomes[#outcomes + 1] = { 'waiting' }
    else
      entries[#entries + 1] = start(facts, token, lease.workerId, string.format('%.0f', slots))
      taken = taken + slots
      outcomes[#outcomes + 1] = { 'leased', token, facts.trace or '' }
    end
  end
  if entries[1] then
    changeFree(lease.workerId, -taken)
    if lease.isExclusive then redis.call('DEL', reservedKey) end
    redis.call('XADD', key('inbox', lease.workerId), '*', 'message', '{"type":"run","requests":[' .. table.concat(entries, ',') .. ']}')
  end
end
return outcomes
