-- Who is served next: what ran before (`front`), then start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996) over owners, with
-- priority and arrival inside an owner's line. A place in `places` has a start tag, in virtual time: what its owner's places before
-- it cost, divided by the weight. Places are an owner's and not a request's: the n-th of its line has the n-th of them. So
-- whatever comes, overtakes or leaves touches one place and one member of a line, and a rank in `places` is a queue position.
local frontKey, placesKey, sharesKey, waitingKey = base .. ':front', base .. ':places', base .. ':shares', base .. ':waiting'
local firstNumber = 1000000000

-- Equal tags go by number, so an owner's places keep their order.
local function placeOf(owner, number)
  return string.format('%010d', number) .. owner
end

-- The numbers of an owner's first and last place, where in virtual time its next service begins, and what time that is now.
local function spanOf(owner)
  local first, last, finish, now = unpack(redis.call('HMGET', sharesKey, 'first:' .. owner, 'last:' .. owner, 'finish:' .. owner, 'now'))
  return tonumber(first) or firstNumber, tonumber(last) or firstNumber - 1, tonumber(finish) or 0, tonumber(now) or 0
end
local function countWaiting(request, sign)
  redis.call('HINCRBYFLOAT', sharesKey, 'cost', sign * request.cost)
  if sign == 1 then return redis.call('ZADD', waitingKey, request.createdAtMs, request.id) end
  redis.call('ZREM', waitingKey, request.id)
  -- What sums of fractions leave ends with the last of them.
  if redis.call('EXISTS', waitingKey) == 0 then redis.call('HDEL', sharesKey, 'cost') end
end

-- request: { id, owner, order, cost, weight, createdAtMs }, as in its hash.
local function joinLine(request)
  local owner = request.owner
  local first, last, finish, now = spanOf(owner)
  local start, tag = math.max(now, finish), nil
  if last < first then redis.call('HINCRBY', sharesKey, 'lines', 1) else tag = redis.call('ZSCORE', placesKey, placeOf(owner, last)) end
  redis.call('ZADD', placesKey, math.max(start, tag or start), placeOf(owner, last + 1))
  redis.call('HSET', sharesKey, 'first:' .. owner, first, 'last:' .. owner, last + 1, 'finish:' .. owner, start + request.cost / request.weight)
  redis.call('ZADD', key('line', owner), request.order, request.id)
  countWaiting(request, 1)
end

-- In front of all that never ran; its owner has paid.
local function rejoinFront(request)
  redis.call('ZADD', frontKey, request.order, request.id)
  countWaiting(request, 1)
end

-- Out of the queue: to a worker, which uses up its owner's first place, or (isDropped) for good, which gives the last one up.
local function leaveQueue(request, isDropped)
  local owner = request.owner
  if redis.call('ZREM', frontKey, request.id) == 1 then return countWaiting(request, -1) end
  if redis.call('ZREM', key('line', owner), request.id) == 0 then return end
  countWaiting(request, -1)
  local first, last, finish, now = spanOf(owner)
  local used = placeOf(owner, isDropped and last or first)
  if isDropped then
    redis.call('HSET', sharesKey, 'last:' .. owner, last - 1, 'finish:' .. owner, finish - request.cost / request.weight)
  else
    redis.call('HSET', sharesKey, 'first:' .. owner, first + 1, 'now', math.max(now, redis.call('ZSCORE', placesKey, used)))
  end
  redis.call('ZREM', placesKey, used)
  if last > first then return end
  redis.call('HDEL', sharesKey, 'first:' .. owner, 'last:' .. owner)
  redis.call('HINCRBY', sharesKey, 'lines', -1)
end

-- How many go before it; nil when it does not wait.
local function positionOf(id, owner)
  local rank, fronts = redis.call('ZRANK', key('line', owner), id), redis.call('ZCARD', frontKey)
  if not rank then return redis.call('ZRANK', frontKey, id) or nil end
  return fronts + redis.call('ZRANK', placesKey, placeOf(owner, spanOf(owner) + rank))
end

-- What they cost, taken as the mean of all that waits. A string, as Redis cuts the fractions of numbers off.
local function costAhead(position)
  if not position or position == 0 then return '0' end
  return tostring(redis.call('HGET', sharesKey, 'cost') * position / redis.call('ZCARD', waitingKey))
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
