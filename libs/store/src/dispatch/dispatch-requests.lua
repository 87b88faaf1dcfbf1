-- Commits the leases that a batch-former planned, as far as its assumptions still hold: moves requests from the queue
-- to the leases and inbox of a worker, and the worker between lists, atomically. Safe to send twice.
-- ARGV: 1 prefix of the tokens, unique to this call (a resent command returns the same tokens, another call never does)
--       2 worker to reserve (it gets no shared leases for a while), or ''
--       3 leases (JSON: [{"workerId", "isExclusive", "ids"}, …])
-- Returns: one per id, in the order of the leases: {'leased', token, trace or ''} | {'waiting'} (the worker has no
--          capacity, or the model is paused) | {'moved'} (another former was faster, or it was canceled) | {'expired'}
--          | {'failed'} (its owner stores too many bytes)
--- @include "worker-pool"
--- @include "end-request"
local reservedKey, reservationMs, nowMs, outcomes = base .. ':reserved', 3000, timeMs(), {}
if ARGV[2] ~= '' and isOpen(redis.call('HGET', key('worker', ARGV[2]), 'list')) then
  redis.call('SET', reservedKey, ARGV[2], 'PX', reservationMs)
end
local isPaused = redis.call('EXISTS', base .. ':paused') == 1

-- Returns the free slots of a worker, 0 if it cannot take such a lease, and its capacity.
local function slotsOf(workerId, isExclusive)
  local list, free, capacity = unpack(redis.call('HMGET', key('worker', workerId), 'list', 'free', 'capacity'))
  local isAlone = isExclusive and (list == 'idle' or list == 'asleep')
    and redis.call('EXISTS', key('leases', workerId)) == 0
  local isFit = isAlone or not isExclusive and isOpen(list) and redis.call('GET', reservedKey) ~= workerId
  if isPaused or not isFit or not isAlive(workerId) then return 0, 0 end
  return tonumber(free), tonumber(capacity)
end

-- Marks a request as running; returns its inbox entry. fields: of its hash.
local function start(fields, token, workerId, slots)
  local id, attempt = fields.id, fields.attempts + 1
  countTransition(fields, 'running', nowMs)
  dequeue(fields, false)
  redis.call('ZADD', base .. ':deadlines', fields.deadlineMs, id)
  redis.call('HSET', key('leases', workerId), id .. ' ' .. token, slots .. ' ' .. fields.shapeKey)
  local followed = fields.followedUntilMs and ',"followedMs":' .. math.max(0, fields.followedUntilMs - nowMs) or ''
  emitEvent(fields, '{"type":"started","attempt":' .. attempt .. '}', { 'state', 'running', 'sinceMs', nowMs,
    'attempts', attempt, 'worker', workerId, 'token', token, 'startedAtMs', fields.startedAtMs or nowMs })
  return '{"token":"' .. token .. '","attempt":' .. attempt .. ',"slots":' .. slots ..
    ',"remainingMs":' .. fields.deadlineMs - nowMs .. ',"isResumed":' .. (fields.startedAtMs and 'true' or 'false') ..
    followed .. ',"envelope":' .. redis.call('GET', key('input', id)) .. '}'
end
local fieldNames = { 'state', 'token', 'owner', 'cost', 'weight', 'slots', 'shapeKey', 'deadlineMs', 'startDeadlineMs',
  'startedAtMs', 'trace', 'sequence', 'followedUntilMs', 'attempts', 'sinceMs', 'createdAtMs', 'position', 'webhook',
  'ownerMaxBytes' }
for _, lease in ipairs(cjson.decode(ARGV[3])) do
  local entries, taken = {}, 0
  local slotsLeft, capacity = slotsOf(lease.workerId, lease.isExclusive)
  for _, id in ipairs(lease.ids) do
    local call, fields = ARGV[1] .. '.' .. #outcomes + 1 .. '.', readFields(id, fieldNames)
    local token = call .. (fields.sequence or '')
    -- Exclusive: the whole capacity beside its own slots, so that no slot is leased to others before the request ends.
    local slots = (lease.isExclusive and capacity or 0) + (fields.slots or 0)
    if fields.token and string.sub(fields.token, 1, #call) == call then
      outcomes[#outcomes + 1] = { 'leased', fields.token, fields.trace or '' }
    elseif fields.state ~= 'queued' then
      outcomes[#outcomes + 1] = { 'moved' }
    elseif nowMs >= tonumber(fields.startedAtMs and fields.deadlineMs or fields.startDeadlineMs) then
      endRequest(id, 'expired', '')
      outcomes[#outcomes + 1] = { 'expired' }
    elseif slotsLeft - taken < 1 then
      outcomes[#outcomes + 1] = { 'waiting' }
    elseif fields.ownerMaxBytes and isOverLimit(fields, redis.call('HGET', key('bytes', fields.owner), 'total')) then
      endRequest(id, 'failed', tooManyBytes(fields))
      outcomes[#outcomes + 1] = { 'failed' }
    else
      entries[#entries + 1] = start(fields, token, lease.workerId, string.format('%.0f', slots))
      taken = taken + slots
      outcomes[#outcomes + 1] = { 'leased', token, fields.trace or '' }
    end
  end
  if entries[1] then
    changeFree(lease.workerId, -taken)
    if lease.isExclusive then redis.call('DEL', reservedKey) end
    redis.call('XADD', key('inbox', lease.workerId), '*', 'message',
      '{"type":"run","requests":[' .. table.concat(entries, ',') .. ']}')
  end
end
return outcomes
