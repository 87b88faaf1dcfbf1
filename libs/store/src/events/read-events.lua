-- A request's events after a sequence number. Those that stood for text that a snapshot holds by now are missing.
-- ARGV: 1 id, 2 after, 3 the most, 4 for how long from now its progress is read as it comes, ms; 0 to leave that as it is
-- Returns: {{sequence, body JSON, preview bytes or ''}, …}
--- @include "emit-event"
--- @include "worker-pool"
local id, request, after, followMs, found = ARGV[1], key('request', ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4]), {}
local sequence, createdAtMs, position, state, followedUntilMs, workerId, token =
  unpack(redis.call('HMGET', request, 'sequence', 'createdAtMs', 'position', 'state', 'followedUntilMs', 'worker', 'token'))
-- Said again when a third of the time is over, however many follow.
if followMs > 0 and (state == 'queued' or state == 'running') and (tonumber(followedUntilMs) or 0) < timeMs() + followMs * 2 / 3 then
  -- A Redis that is full lets nobody follow, and lets all read.
  local said = redis.pcall('HSET', request, 'followedUntilMs', timeMs() + followMs)
  if token and type(said) == 'number' then sayToWorker(workerId, '{"type":"follow","token":"' .. token .. '","forMs":' .. followMs .. '}') end
end
-- A request that waits has no log yet.
if sequence == '1' and after < 1 then return { { '1', queuedBody(createdAtMs, position), '' } } end
for _, entry in ipairs(redis.call('XRANGE', key('events', id), string.format('%.0f-0', after + 1), '+', 'COUNT', ARGV[3])) do
  local number, body = string.match(entry[1], '^%d+'), entry[2][2]
  local isPreview = string.find(body, '"type":"preview"', 1, true)
  found[#found + 1] = { number, body, isPreview and redis.call('HGET', key('previews', id), number) or '' }
end
return found
