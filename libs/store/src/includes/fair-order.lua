--- @include "queue-position"
-- How requests come into the queue and out of it.
-- request: { id, owner, order, cost, weight, createdAtMs }, as in its hash; shares: its owner's, which are changed.
local function joinLine(request, shares)
  local owner, start, tag = request.owner, math.max(shares.now, shares.finish), nil
  if shares.last < shares.first then shares.lines = shares.lines + 1 else tag = redis.call('ZSCORE', placesKey, placeOf(owner, shares.last)) end
  shares.last, shares.finish, shares.cost = shares.last + 1, start + request.cost / request.weight, shares.cost + request.cost
  redis.call('ZADD', placesKey, math.max(start, tag or start), placeOf(owner, shares.last))
  redis.call('HSET', sharesKey, 'first:' .. owner, shares.first, 'last:' .. owner, shares.last, 'finish:' .. owner, shares.finish,
    'lines', shares.lines, 'cost', shares.cost)
  redis.call('ZADD', key('line', owner), request.order, request.id)
  redis.call('ZADD', waitingKey, request.createdAtMs, request.id)
end

-- In front of all that never ran; its owner has paid.
local function rejoinFront(request)
  redis.call('ZADD', frontKey, request.order, request.id)
  redis.call('HINCRBYFLOAT', sharesKey, 'cost', request.cost)
  redis.call('ZADD', waitingKey, request.createdAtMs, request.id)
end

-- Out of the queue: to a worker, which uses up its owner's first place, or (isDropped) for good, which gives the last one up.
local function leaveQueue(request, isDropped)
  local owner, shares = request.owner, sharesOf(request.owner)
  local cost = shares.cost - request.cost
  redis.call('ZREM', waitingKey, request.id)
  if redis.call('ZREM', key('line', owner), request.id) == 1 then
    local used = placeOf(owner, isDropped and shares.last or shares.first)
    if isDropped then
      shares.last, shares.finish = shares.last - 1, shares.finish - request.cost / request.weight
    else
      shares.first, shares.now = shares.first + 1, math.max(shares.now, redis.call('ZSCORE', placesKey, used))
    end
    redis.call('ZREM', placesKey, used)
    if shares.last < shares.first then
      shares.lines = shares.lines - 1
      redis.call('HDEL', sharesKey, 'first:' .. owner, 'last:' .. owner)
      redis.call('HSET', sharesKey, 'finish:' .. owner, shares.finish, 'now', shares.now, 'lines', shares.lines, 'cost', cost)
    else
      redis.call('HSET', sharesKey, 'first:' .. owner, shares.first, 'last:' .. owner, shares.last, 'finish:' .. owner, shares.finish,
        'now', shares.now, 'cost', cost)
    end
  else
    redis.call('ZREM', frontKey, request.id)
    redis.call('HSET', sharesKey, 'cost', cost)
  end
  -- What sums of fractions leave ends with the last of them.
  if shares.lines == 0 and redis.call('EXISTS', waitingKey) == 0 then redis.call('HDEL', sharesKey, 'cost') end
end

-- The first `count` in the order of dispatch.
local function nextInOrder(count)
  local ids, owned, lines = redis.call('ZRANGE', frontKey, 0, count - 1), {}, {}
  local places = #ids < count and redis.call('ZRANGE', placesKey, 0, count - #ids - 1) or {}
  for _, place in ipairs(places) do owned[string.sub(place, 11)] = (owned[string.sub(place, 11)] or 0) + 1 end
  for owner, places in pairs(owned) do lines[owner] = redis.call('ZRANGE', key('line', owner), 0, places - 1) end
  for _, place in ipairs(places) do ids[#ids + 1] = table.remove(lines[string.sub(place, 11)], 1) end
  return ids
end
