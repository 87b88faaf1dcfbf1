-- Who is served next: start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996) over owners; priority and arrival inside an
-- owner's line. A place in `places` has a start tag, in virtual time: what its owner's places before it cost, divided by
-- the weight. The places are the owner's and not a request's: the n-th of its line has the n-th of them. So whatever
-- comes, overtakes or leaves touches one place and one member of a line, and a rank in `places` is a queue position.
-- What ran before stands in front: of its line by a negative order, of all by a place with a tag far below zero.
local placesKey, sharesKey, waitingKey = base .. ':places', base .. ':shares', base .. ':waiting'
local firstNumber, frontTag, frontOrder = 1000000000, -1e12, 2 ^ 45

-- Equal tags go by number, so an owner's places keep their order.
local function placeOf(owner, number)
  return string.format('%010d', number) .. owner
end

local function tagOf(owner, number)
  return tonumber(redis.call('ZSCORE', placesKey, placeOf(owner, number)))
end

-- The numbers of an owner's first and last place, and where in virtual time its next service would begin.
local function spanOf(owner)
  local first, last, finish = unpack(redis.call('HMGET', sharesKey, 'first:' .. owner, 'last:' .. owner, 'finish:' .. owner))
  return tonumber(first) or firstNumber, tonumber(last) or firstNumber - 1, tonumber(finish) or 0
end

local function setSpan(owner, first, last)
  if last >= first then return redis.call('HSET', sharesKey, 'first:' .. owner, first, 'last:' .. owner, last) end
  redis.call('HDEL', sharesKey, 'first:' .. owner, 'last:' .. owner)
  redis.call('HINCRBY', sharesKey, 'lines', -1)
end

-- A number into the totals of what waits; the fractions that sums of them leave end with the last one.
local function countWaiting(cost)
  redis.call('HINCRBYFLOAT', sharesKey, 'cost', cost)
  if redis.call('ZCARD', waitingKey) == 0 then redis.call('HDEL', sharesKey, 'cost') end
end

-- request: { id, owner, order, cost, weight, createdAtMs }.
local function joinLine(request)
  local owner = request.owner
  local first, last, finish = spanOf(owner)
  local start = math.max(tonumber(redis.call('HGET', sharesKey, 'now')) or 0, finish)
  if last < first then redis.call('HINCRBY', sharesKey, 'lines', 1) end
  local tag = last < first and start or math.max(start, tagOf(owner, last))
  redis.call('ZADD', placesKey, tag, placeOf(owner, last + 1))
  setSpan(owner, first, last + 1)
  redis.call('HSET', sharesKey, 'finish:' .. owner, start + request.cost / request.weight)
  redis.call('ZADD', key('line', owner), request.order, request.id)
  redis.call('ZADD', waitingKey, request.createdAtMs, request.id)
  countWaiting(request.cost)
end

-- Back in front of all that never ran; its owner has paid.
local function rejoinLine(request)
  local owner = request.owner
  local first, last = spanOf(owner)
  local isEmpty = last < first
  if isEmpty then redis.call('HINCRBY', sharesKey, 'lines', 1) end
  local tag = math.min(frontTag, isEmpty and frontTag or tagOf(owner, first) - 1)
  redis.call('ZADD', placesKey, tag, placeOf(owner, first - 1))
  setSpan(owner, first - 1, isEmpty and first - 1 or last)
  redis.call('ZADD', key('line', owner), request.order - frontOrder, request.id)
  redis.call('ZADD', waitingKey, request.createdAtMs, request.id)
  countWaiting(request.cost)
end

-- Out of the line: to a worker, which uses up the owner's first place, or (isDropped) for good, which gives its last one up.
local function leaveLine(request, isDropped)
  local owner, line = request.owner, key('line', request.owner)
  local order = tonumber(redis.call('ZSCORE', line, request.id))
  if not order then return end
  redis.call('ZREM', line, request.id)
  redis.call('ZREM', waitingKey, request.id)
  countWaiting(-request.cost)
  local first, last, finish = spanOf(owner)
  if order >= 0 and isDropped then
    redis.call('ZREM', placesKey, placeOf(owner, last))
    redis.call('HSET', sharesKey, 'finish:' .. owner, finish - request.cost / request.weight)
    return setSpan(owner, first, last - 1)
  end
  if order >= 0 then
    -- Those that ran before keep their places in front of it, one number higher.
    local fronts = redis.call('ZCOUNT', line, '-inf', '(0')
    local tag, now = tagOf(owner, first + fronts), tonumber(redis.call('HGET', sharesKey, 'now')) or 0
    redis.call('HSET', sharesKey, 'now', math.max(now, tag))
    if fronts > 0 then redis.call('ZADD', placesKey, tagOf(owner, first + fronts - 1) + 1, placeOf(owner, first + fronts)) end
  end
  redis.call('ZREM', placesKey, placeOf(owner, first))
  setSpan(owner, first + 1, last)
end

-- How many go before it; nil when it does not wait.
local function positionOf(id, owner)
  local rank = redis.call('ZRANK', key('line', owner), id)
  return rank and redis.call('ZRANK', placesKey, placeOf(owner, spanOf(owner) + rank))
end

-- What they cost, taken as the mean of all that waits. A string, as Redis cuts the fractions of numbers off.
local function costAhead(position)
  if not position or position == 0 then return '0' end
  return tostring(redis.call('HGET', sharesKey, 'cost') * position / redis.call('ZCARD', waitingKey))
end

-- The first `count` in the order of dispatch.
local function nextInOrder(count)
  local ids, seen, lines = {}, {}, {}
  local places = redis.call('ZRANGE', placesKey, 0, count - 1)
  for _, place in ipairs(places) do
    local owner = string.sub(place, 11)
    seen[owner] = (seen[owner] or 0) + 1
  end
  for owner, wanted in pairs(seen) do lines[owner] = { next = 1, ids = redis.call('ZRANGE', key('line', owner), 0, wanted - 1) } end
  for _, place in ipairs(places) do
    local line = lines[string.sub(place, 11)]
    ids[#ids + 1] = line.ids[line.next]
    line.next = line.next + 1
  end
  return ids
end
