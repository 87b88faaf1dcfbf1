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

-- The numbers of an owner's first and last place, where in virtual time its next service begins, and what time that is now; over all
-- owners how many have places, and what all that waits costs.
local function sharesOf(owner)
  local first, last, finish, now, lines, cost = unpack(redis.call('HMGET', sharesKey,
    'first:' .. owner, 'last:' .. owner, 'finish:' .. owner, 'now', 'lines', 'cost'))
  return { first = tonumber(first) or firstNumber, last = tonumber(last) or firstNumber - 1, finish = tonumber(finish) or 0,
    now = tonumber(now) or 0, lines = tonumber(lines) or 0, cost = tonumber(cost) or 0 }
end

-- How many go before it; nil when it does not wait.
local function positionOf(id, owner, shares)
  local rank = redis.call('ZRANK', key('line', owner), id)
  if not rank then return redis.call('ZRANK', frontKey, id) or nil end
  return redis.call('ZCARD', frontKey) + redis.call('ZRANK', placesKey, placeOf(owner, shares.first + rank))
end

-- What they cost, taken as the mean of all that waits. A string, as Redis cuts the fractions of numbers off.
local function costAhead(position, shares)
  if not position or position == 0 then return '0' end
  return tostring(shares.cost * position / redis.call('ZCARD', waitingKey))
end
