--- @include "queue-position"
-- Adds requests to the queue and removes them.
-- request: { id, owner, order, cost, weight, createdAtMs }, as in its hash
-- shares: of its owner (`sharesOf`), changed in place
local function enqueue(request, shares)
  local owner, start, tag = request.owner, math.max(shares.now, shares.finish), nil
  if shares.last < shares.first then
    shares.owners = shares.owners + 1
  else
    tag = redis.call('ZSCORE', placesKey, placeOf(owner, shares.last))
  end
  shares.last, shares.finish = shares.last + 1, start + request.cost / request.weight
  shares.cost = shares.cost + request.cost
  redis.call('ZADD', placesKey, math.max(start, tag or start), placeOf(owner, shares.last))
  redis.call('HSET', sharesKey, 'first:' .. owner, shares.first, 'last:' .. owner, shares.last,
    'finish:' .. owner, shares.finish, 'owners', shares.owners, 'cost', shares.cost)
  redis.call('ZADD', key('queued', owner), request.order, request.id)
  redis.call('ZADD', waitingKey, request.createdAtMs, request.id)
end

-- Puts a requeued request in front of all that never ran. Its owner was charged for it when it was first leased.
local function enqueueFront(request)
  redis.call('ZADD', frontKey, request.order, request.id)
  redis.call('HINCRBYFLOAT', sharesKey, 'cost', request.cost)
  redis.call('ZADD', waitingKey, request.createdAtMs, request.id)
end

-- Removes a request from the queue. Leased: uses up its owner's first place. For good (isDropped): frees the owner's
-- last place.
local function dequeue(request, isDropped)
  local owner, shares = request.owner, sharesOf(request.owner)
  local cost = shares.cost - request.cost
  redis.call('ZREM', waitingKey, request.id)
  if redis.call('ZREM', key('queued', owner), request.id) == 1 then
    local used = placeOf(owner, isDropped and shares.last or shares.first)
    if isDropped then
      shares.last, shares.finish = shares.last - 1, shares.finish - request.cost / request.weight
    else
      shares.first, shares.now = shares.first + 1, math.max(shares.now, redis.call('ZSCORE', placesKey, used))
    end
    redis.call('ZREM', placesKey, used)
    if shares.last < shares.first then
      shares.owners = shares.owners - 1
      redis.call('HDEL', sharesKey, 'first:' .. owner, 'last:' .. owner)
      redis.call('HSET', sharesKey, 'finish:' .. owner, shares.finish, 'now', shares.now,
        'owners', shares.owners, 'cost', cost)
    else
      redis.call('HSET', sharesKey, 'first:' .. owner, shares.first, 'last:' .. owner, shares.last,
        'finish:' .. owner, shares.finish, 'now', shares.now, 'cost', cost)
    end
  else
    redis.call('ZREM', frontKey, request.id)
    redis.call('HSET', sharesKey, 'cost', cost)
  end
  -- Delete the sum when the queue is empty: rounding errors of added fractions would remain.
  if shares.owners == 0 and redis.call('EXISTS', waitingKey) == 0 then redis.call('HDEL', sharesKey, 'cost') end
end

-- Returns the first `count` ids in dispatch order.
local function nextRequests(count)
  local ids, owned, queues = redis.call('ZRANGE', frontKey, 0, count - 1), {}, {}
  local places = #ids < count and redis.call('ZRANGE', placesKey, 0, count - #ids - 1) or {}
  for _, place in ipairs(places) do owned[string.sub(place, 11)] = (owned[string.sub(place, 11)] or 0) + 1 end
  for owner, places in pairs(owned) do queues[owner] = redis.call('ZRANGE', key('queued', owner), 0, places - 1) end
  for _, place in ipairs(places) do ids[#ids + 1] = table.remove(queues[string.sub(place, 11)], 1) end
  return ids
end
