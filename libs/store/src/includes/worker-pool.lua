--- @include "served"
-- A worker is in exactly one list, named by its field `list`: loading, idle (ordered by time), busy (ordered by free
-- slots), asleep (its model is not in memory; a lease makes it load) or draining. Loading and draining workers get no
-- leases. Capacity and throughput of the others are summed up in `capacity` as they change, so that no operation has to
-- read all workers.
local capacityKey, heartbeatsKey, sweptKey = base .. ':capacity', base .. ':workers:heard', base .. ':swept'
local function isOpen(list) return list == 'idle' or list == 'busy' or list == 'asleep' end

-- Replaces the throughput of one worker in the sums of `capacity`; '' or nil: none.
local function changeThroughput(before, after)
  if before == after then return end
  local changes, names, values = { measured = 0 }, {}, {}
  for sign, throughput in pairs({ [-1] = before, [1] = after }) do
    if throughput and throughput ~= '' then
      changes.measured = changes.measured + sign
      for field, value in pairs(cjson.decode(throughput).sums) do
        changes[field] = (changes[field] or 0) + sign * (tonumber(value) or 0)
      end
    end
  end
  for field in pairs(changes) do names[#names + 1] = field end
  for position, sum in ipairs(redis.call('HMGET', capacityKey, unpack(names))) do
    values[2 * position - 1], values[2 * position] = names[position], (tonumber(sum) or 0) + changes[names[position]]
  end
  if names[1] then redis.call('HSET', capacityKey, unpack(values)) end
end
local function countWorker(workerId, sign)
  local capacity, free, throughput = unpack(redis.call('HMGET', key('worker', workerId),
    'capacity', 'free', 'throughput'))
  -- `0 + x`: Redis before 7.2 does not parse "-0".
  redis.call('HINCRBY', capacityKey, 'capacity', 0 + sign * capacity)
  redis.call('HINCRBY', capacityKey, 'free', 0 + sign * math.max(0, free))
  changeThroughput(sign < 0 and throughput, sign > 0 and throughput)
  -- Delete the sums with the last worker: rounding errors of added fractions would remain.
  if redis.call('HINCRBY', capacityKey, 'workers', sign) == 0 then redis.call('DEL', capacityKey) end
end

-- Moves a worker to another list. list: nil to remove it.
local function moveWorker(workerId, list)
  local worker = key('worker', workerId)
  local old, free = unpack(redis.call('HMGET', worker, 'list', 'free'))
  if old and old ~= list then redis.call('ZREM', listKey(old), workerId) end
  if isOpen(old) ~= isOpen(list) then countWorker(workerId, isOpen(list) and 1 or -1) end
  -- A reservation must not wait for a worker that takes no more leases.
  if not isOpen(list) and redis.call('GET', base .. ':reserved') == workerId then
    redis.call('DEL', base .. ':reserved')
  end
  if not list then return end
  redis.call('HSET', worker, 'list', list)
  if list == 'busy' then return redis.call('ZADD', listKey(list), free, workerId) end
  redis.call('ZADD', listKey(list), 'NX', timeMs(), workerId)
end

-- Returns the list for a worker that takes leases.
local function listOf(free, capacity, asleep)
  return asleep == '1' and 'asleep' or tonumber(free) < tonumber(capacity) and 'busy' or 'idle'
end
local function openWorker(workerId)
  moveWorker(workerId, listOf(unpack(redis.call('HMGET', key('worker', workerId), 'free', 'capacity', 'asleep'))))
end
local function changeFree(workerId, difference)
  local worker = key('worker', workerId)
  local list, old, capacity, asleep = unpack(redis.call('HMGET', worker, 'list', 'free', 'capacity', 'asleep'))
  local free = (old or 0) + difference
  redis.call('HSET', worker, 'free', free)
  if not isOpen(list) then return end
  redis.call('HINCRBY', capacityKey, 'free', math.max(0, free) - math.max(0, old))
  local fit = listOf(free, capacity, asleep)
  if fit ~= list then
    moveWorker(workerId, fit)
  elseif fit == 'busy' then
    redis.call('ZADD', listKey(fit), free, workerId)
  end
end

-- Changes the capacity of a worker: an engine measures it after loading, and it differs from model to model.
local function changeCapacity(workerId, capacity)
  local worker = key('worker', workerId)
  local list, old = unpack(redis.call('HMGET', worker, 'list', 'capacity'))
  redis.call('HSET', worker, 'capacity', capacity)
  if isOpen(list) then redis.call('HINCRBY', capacityKey, 'capacity', capacity - old) end
  changeFree(workerId, capacity - old)
end

-- Takes slots out of a lease; 'all' ends it. A lease of 0 slots still exists, so its request is requeued when the
-- worker is reaped.
-- Returns the number of slots taken, for `freeSlots`; nil if there is no such lease.
local function takeFromLease(workerId, id, token, slots)
  local leases, lease = key('leases', workerId), id .. ' ' .. token
  local held, shape = string.match(redis.call('HGET', leases, lease) or '', '^(%d+)( .*)$')
  if not held then return end
  local left = slots == 'all' and 0 or math.max(0, held - slots)
  if slots == 'all' then
    redis.call('HDEL', leases, lease)
  else
    redis.call('HSET', leases, lease, left .. shape)
  end
  return held - left
end
local function freeSlots(workerId, slots)
  if slots > 0 then changeFree(workerId, slots) end
  if redis.call('EXISTS', base .. ':waiting') == 1 then redis.call('PUBLISH', base .. ':wakeup', 'released') end
end

-- Returns whether a worker sent a heartbeat recently. Others may be reaped soon and get no leases meanwhile.
local sweeps
local function isAlive(workerId)
  sweeps = sweeps or redis.call('HMGET', sweptKey, 'count', 'maxMissed')
  return not sweeps[1] or sweeps[1] - redis.call('ZSCORE', heartbeatsKey, workerId) <= tonumber(sweeps[2])
end
-- Appends a message to a worker's inbox. Returns false if there is no such worker.
local function sendToWorker(workerId, message)
  if redis.call('EXISTS', key('worker', workerId)) == 0 then return false end
  redis.call('XADD', key('inbox', workerId), '*', 'message', message)
  return true
end
local function sendCancel(workerId, id, token)
  sendToWorker(workerId, '{"type":"cancel","id":"' .. id .. '","token":"' .. token .. '"}')
end
