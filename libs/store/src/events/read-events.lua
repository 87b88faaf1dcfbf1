-- Reads the events of a request after a sequence number, without entries that a later snapshot replaced.
-- ARGV: 1 id, 2 after, 3 limit, 4 ms from now for which a client follows the live progress; 0 if it does not
-- Returns: {{sequence, body JSON, preview bytes or ''}, …}
--- @include "emit-event"
--- @include "worker-pool"
local id, request, after, followMs = ARGV[1], key('request', ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local found = {}
local sequence, createdAtMs, position, state, followedUntilMs, workerId, token =
  unpack(redis.call('HMGET', request,
    'sequence', 'createdAtMs', 'position', 'state', 'followedUntilMs', 'worker', 'token'))
-- Renewed when a third of the time has passed, however many clients follow.
local isActive = state == 'queued' or state == 'running'
if followMs > 0 and isActive and (tonumber(followedUntilMs) or 0) < timeMs() + followMs * 2 / 3 then
  -- If Redis is out of memory, the write fails: clients can read events, but not follow.
  local updated = redis.pcall('HSET', request, 'followedUntilMs', timeMs() + followMs)
  if token and type(updated) == 'number' then
    sendToWorker(workerId, '{"type":"follow","token":"' .. token .. '","forMs":' .. followMs .. '}')
  end
end
-- A queued request has no log yet.
if sequence == '1' and after < 1 then return { { '1', queuedBody(createdAtMs, position), '' } } end
local from = string.format('%.0f-0', after + 1)
for _, entry in ipairs(redis.call('XRANGE', key('events', id), from, '+', 'COUNT', ARGV[3])) do
  local number, body = string.match(entry[1], '^%d+'), entry[2][2]
  local isPreview = string.find(body, '"type":"preview"', 1, true)
  found[#found + 1] = { number, body, isPreview and redis.call('HGET', key('previews', id), number) or '' }
end
return found
