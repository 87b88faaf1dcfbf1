-- Commits what a former has decided, as far as what it assumed still holds: out of the queue, into the leases and the inbox of a worker,
-- the worker between the lists, in one step. Safe to send twice.
-- KEYS: 1 base
-- ARGV: 1 what the tokens begin with, unique to this call, 2 worker to keep free of shared leases, or '',
--       3 leases (JSON: [{"workerId", "isExclusive", "ids"}, …])
-- Returns: {{'leased', token, trace or ''} | {'waiting'} (that worker has no room, or the model is paused) |
--           {'moved'} (somebody else was faster) | {'expired'}, …}: one for each id, in the order of the leases
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
--- @include "end-request"
local reservationMs, outcomes, count = 3000, {}, 0
local isPaused = redis.call('EXISTS', base .. ':paused') == 1
if ARGV[2] ~= '' then redis.call('SET', base .. ':reserved', ARGV[2], 'PX', reservationMs) end

-- The slots it has left; nil when it takes no such lease.
local function roomOf(workerId, isExclusive)
  local list, free, capacity = unpack(redis.call('HMGET', key('worker', workerId), 'list', 'free', 'capacity'))
  if isPaused or not isOpen(list) or not isHeard(workerId) or (isExclusive and list ~= 'idle') then return nil end
  if not isExclusive and redis.call('GET', base .. ':reserved') == workerId then return nil end
  return tonumber(free), tonumber(capacity)
end

-- Marks it running; returns its inbox entry.
local function start(id, token, workerId, slots, facts)
  local request, nowMs = key('request', id), timeMs()
  tallyTransition(id, 'running', nowMs)
  local attempt = redis.call('HINCRBY', request, 'attempts', 1)
  redis.call('HSET', request, 'state', 'running', 'worker', workerId, 'token', token, 'startedAtMs', facts.startedAtMs or nowMs)
  leaveLine(facts, false)
  redis.call('ZADD', base .. ':deadlines', facts.deadlineMs, id)
  redis.call('HSET', key('leases', workerId), id .. ' ' .. token, slots .. ' ' .. facts.shapeKey)
  emitEvent(id, '{"type":"started","attempt":' .. attempt .. '}')
  return '{"token":"' .. token .. '","attempt":' .. attempt .. ',"slots":' .. slots .. ',"deadlineMs":' .. facts.deadlineMs ..
    ',"isResumed":' .. (facts.startedAtMs and 'true' or 'false') .. ',"envelope":' .. redis.call('GET', key('input', id)) .. '}'
end

for _, lease in ipairs(cjson.decode(ARGV[3])) do
  local entries, taken = {}, 0
  local room, capacity = roomOf(lease.workerId, lease.isExclusive)
  for _, id in ipairs(lease.ids) do
    count = count + 1
    local token = ARGV[1] .. '.' .. count
    local state, held, owner, cost, weight, slots, shapeKey, deadlineMs, startDeadlineMs, startedAtMs, trace = unpack(redis.call('HMGET',
      key('request', id), 'state', 'token', 'owner', 'cost', 'weight', 'slots', 'shapeKey', 'deadlineMs', 'startDeadlineMs', 'startedAtMs', 'trace'))
    if held == token then
      outcomes[count] = { 'leased', token, trace or '' }
    elseif state ~= 'queued' then
      outcomes[count] = { 'moved' }
    elseif timeMs() >= tonumber(startedAtMs and deadlineMs or startDeadlineMs) then
      endRequest(id, 'expired', '')
      outcomes[count] = { 'expired' }
    elseif not room or room - taken < 1 then
      outcomes[count] = { 'waiting' }
    else
      -- Alone: all of the worker beside its own, so that none of it is given to others before its end.
      local claimed = lease.isExclusive and capacity + slots or tonumber(slots)
      taken = taken + claimed
      entries[#entries + 1] = start(id, token, lease.workerId, string.format('%.0f', claimed),
        { id = id, owner = owner, cost = cost, weight = weight, shapeKey = shapeKey, deadlineMs = deadlineMs, startedAtMs = startedAtMs })
      outcomes[count] = { 'leased', token, trace or '' }
    end
  end
  if entries[1] then
    changeFree(lease.workerId, -taken)
    if lease.isExclusive and redis.call('GET', base .. ':reserved') == lease.workerId then redis.call('DEL', base .. ':reserved') end
    sayToWorker(lease.workerId, '{"type":"run","requests":[' .. table.concat(entries, ',') .. ']}')
  end
end
return outcomes
