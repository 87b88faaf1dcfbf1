--- @include "served"
-- A worker is in exactly one of the lists loading, idle, busy, asleep and draining, which its field `list` names. idle is ordered by
-- the time since when, busy by free slots. asleep ones have no model in memory: a lease makes them load it, and they stay asleep until
-- they have. loading and draining ones get no leases. What the others have is summed up in `room` as it changes, so that nobody has to ask them all.
local roomKey, heardKey, sweptKey = base .. ':room', base .. ':workers:heard', base .. ':swept'
local function isOpen(list) return list == 'idle' or list == 'busy' or list == 'asleep' end

-- What is summed up of how fast they are and what they have left: one pace goes, another comes; '' or nil for none.
local function changePace(before, after)
  if before == after then return end
  local changes, names, values = { paced = 0 }, {}, {}
  for sign, pace in pairs({ [-1] = before, [1] = after }) do
    if pace and pace ~= '' then
      changes.paced = changes.paced + sign
      for field, value in pairs(cjson.decode(pace).sums) do changes[field] = (changes[field] or 0) + sign * (tonumber(value) or 0) end
    end
  end
  for field in pairs(changes) do names[#names + 1] = field end
  for position, sum in ipairs(redis.call('HMGET', roomKey, unpack(names))) do
    values[2 * position - 1], values[2 * position] = names[position], (tonumber(sum) or 0) + changes[names[position]]
  end
  if names[1] then redis.call('HSET', roomKey, unpack(values)) end
end
local function countWorker(workerId, sign)
  local capacity, free, pace = unpack(redis.call('HMGET', key('worker', workerId), 'capacity', 'free', 'pace'))
  -- Added to zero, as Redis before 7.2 takes no minus zero.
  redis.call('HINCRBY', roomKey, 'capacity', 0 + sign * capacity)
  redis.call('HINCRBY', roomKey, 'free', 0 + sign * math.max(0, free))
  changePace(sign < 0 and pace, sign > 0 and pace)
  -- What sums of fractions leave ends with the last worker.
  if redis.call('HINCRBY', roomKey, 'workers', sign) == 0 then redis.call('DEL', roomKey) end
end

-- list: nil when it goes for good.
local function moveWorker(workerId, list)
  local worker = key('worker', workerId)
  local old, free = unpack(redis.call('HMGET', worker, 'list', 'free'))
  if old and old ~= list then redis.call('ZREM', listKey(old), workerId) end
  if isOpen(old) ~= isOpen(list) then countWorker(workerId, isOpen(list) and 1 or -1) end
  -- Who must run alone is not to wait for one that takes nothing any more.
  if not isOpen(list) and redis.call('GET', base .. ':reserved') == workerId then redis.call('DEL', base .. ':reserved') end
  if not list then return end
  redis.call('HSET', worker, 'list', list)
  if list == 'busy' then return redis.call('ZADD', listKey(list), free, workerId) end
  redis.call('ZADD', listKey(list), 'NX', timeMs(), workerId)
end

-- Where it belongs by what it has.
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
  redis.call('HINCRBY', roomKey, 'free', math.max(0, free) - math.max(0, old))
  local fit = listOf(free, capacity, asleep)
  if fit ~= list then moveWorker(workerId, fit) elseif fit == 'busy' then redis.call('ZADD', listKey(fit), free, workerId) end
end

-- An engine may find out how much room it has, and another model may have another.
local function changeCapacity(workerId, capacity)
  local worker = key('worker', workerId)
  local list, old = unpack(redis.call('HMGET', worker, 'list', 'capacity'))
  redis.call('HSET', worker, 'capacity', capacity)
  if isOpen(list) then redis.call('HINCRBY', roomKey, 'capacity', capacity - old) end
  changeFree(workerId, capacity - old)
end

-- Takes slots out of one lease; 'all' ends it. A lease of no slots is still what a burial returns to the queue. Returns how many they
-- were, for `freeSlots`; nil where there is no such lease.
local function takeFromLease(workerId, id, token, slots)
  local leases, lease = key('leases', workerId), id .. ' ' .. token
  local held, shape = string.match(redis.call('HGET', leases, lease) or '', '^(%d+)( .*)$')
  if not held then return end
  local left = slots == 'all' and 0 or math.max(0, held - slots)
  if slots == 'all' then redis.call('HDEL', leases, lease) else redis.call('HSET', leases, lease, left .. shape) end
  return held - left
end
local function freeSlots(workerId, slots)
  if slots > 0 then changeFree(workerId, slots) end
  if redis.call('EXISTS', base .. ':waiting') == 1 then redis.call('PUBLISH', base .. ':wakeup', 'released') end
end

-- Heard of lately; others may be about to be buried and get nothing meanwhile.
local sweeps
local function isHeard(workerId)
  sweeps = sweeps or redis.call('HMGET', sweptKey, 'count', 'patience')
  return not sweeps[1] or sweeps[1] - redis.call('ZSCORE', heardKey, workerId) <= tonumber(sweeps[2])
end
local function sayToWorker(workerId, message)
  if redis.call('EXISTS', key('worker', workerId)) == 1 then redis.call('XADD', key('inbox', workerId), '*', 'message', message) end
end
local function cancelAt(workerId, id, token)
  sayToWorker(workerId, '{"type":"cancel","id":"' .. id .. '","token":"' .. token .. '"}')
end
