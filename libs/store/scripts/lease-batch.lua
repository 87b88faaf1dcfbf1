-- Leases one worker to a batch: the worker moves between the lists and the batch lands in its inbox in one step.
-- Idle workers first, the one idle longest; else the busy one with most free rows. Requests are taken in order while
-- a row is free; the last one may overhang and its rows then wait inside the worker.
-- KEYS: 1 base
-- ARGV: 1 now ms, 2 most attempts, 3 'shared' | 'exclusive' (idle workers only, and nobody joins), 4 most rows, then pairs of id, token
-- Returns: {worker id or '', outcome of each request: 'leased' | 'waiting' | 'alone' | 'lost' | 'ended' | 'exhausted'}
local base = KEYS[1]
--- @include "keys"
--- @include "emit-event"
--- @include "queue-order"
--- @include "end-request"
--- @include "worker-pool"
--- @include "lease-checks"
--- @include "is-paused"
local nowMs, mostAttempts, mode, mostRows = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local outcomes, candidates = {}, {}
for argument = 5, #ARGV, 2 do
  local outcome = checkRequest(ARGV[argument], ARGV[argument + 1], nowMs, mostAttempts, mode)
  outcomes[#outcomes + 1] = outcome
  if outcome == 'waiting' then candidates[#candidates + 1] = { index = #outcomes, id = ARGV[argument], token = ARGV[argument + 1] } end
end
local workerId, free, capacity
-- What was taken before a pause is not leased after it.
if #candidates > 0 and not isPaused() then workerId, free, capacity = chooseWorker(mode) end
if not workerId then return { '', unpack(outcomes) } end

local entries, room = {}, math.min(free, mostRows)
for _, candidate in ipairs(candidates) do
  if room < 1 then break end
  local request = key('request', candidate.id)
  local slots = tonumber(redis.call('HGET', request, 'slots'))
  room = room - slots
  -- All of the worker's rows beside its own, so that none of them is given to others before its end.
  if mode == 'exclusive' then slots, room = capacity + slots, 0 end
  free = free - slots
  redis.call('HSET', key('leases', workerId), candidate.id .. ' ' .. candidate.token, slots)
  entries[#entries + 1] = startRequest(candidate.id, candidate.token, workerId, slots, nowMs)
  outcomes[candidate.index] = 'leased'
end
redis.call('HSET', key('worker', workerId), 'free', free)
placeWorker(workerId, free, capacity, nowMs)
redis.call('RPUSH', key('inbox', workerId), '{"type":"run","requests":[' .. table.concat(entries, ',') .. ']}')
return { workerId, unpack(outcomes) }
