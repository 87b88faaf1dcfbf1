-- Writes what a worker reports about its requests, in order. Each write is fenced by its token: it does nothing once
-- the request is not this delivery's any more. A batch that is resent after a lost reply is not written again.
-- ARGV: 1 worker id, 2 incarnation, 3 number of the batch, incremented by the worker
--       then for each write its kind, id, token and five values (arguments of the functions in `write`, see `encode`
--       in write-batch.ts)
-- Returns: {'written' | 'canceling' (written, but the request is being canceled) | 'lost' | 'ended' | of an end
--          'finished' | 'incomplete' | of a give-back 'requeued' | 'canceled' | 'failed', …}, or {} for a batch that
--          was already written
--- @include "requeue"
local workerId, worker, batch = ARGV[1], key('worker', ARGV[1]), tonumber(ARGV[3])
local incarnation, written = unpack(redis.call('HMGET', worker, 'incarnation', 'batch'))
if incarnation == ARGV[2] then
  if tonumber(written or 0) >= batch then return {} end
  redis.call('HSET', worker, 'batch', batch)
end
-- Each function takes the fields `names` of the request's hash, five values and the token.
local write, freed = {}, nil
local names = { 'token', 'cancel', 'state', 'sequence', 'webhook', 'owner', 'ownerMaxBytes', 'bytes', 'work', 'span:0',
  'size:0', 'lastFailure' }
local function release(id, token, slots)
  local slots = takeFromLease(workerId, id, token, slots)
  if slots then freed = (freed or 0) + slots end
end
-- Returns another field of the request, read once.
local function fieldOf(fields, name)
  if fields[name] == nil then fields[name] = redis.call('HGET', key('request', fields.id), name) end
  return fields[name]
end
local function setField(fields, changes, name, value)
  fields[name] = value
  append(changes, name, value)
end

-- done, total: over all outputs; span: index of the output whose text or text progress the event is part of, or ''.
write['event'] = function(fields, body, preview, done, total, span)
  local changes = done ~= '' and { 'done', done, 'total', total } or {}
  if span ~= '' then
    countBytes(fields, #body + stampBytes)
    if not fieldOf(fields, 'span:' .. span) then setField(fields, changes, 'span:' .. span, fields.sequence + 1) end
  end
  countBytes(fields, sizeOf(preview), true)
  emitEvent(fields, body, changes, preview ~= '' and preview or nil, span ~= '' and span or nil)
end
-- waitMs: until the worker begins to load the model. The duration of the model's last load, on any worker, is added.
write['loading'] = function(fields, waitMs)
  local loadMs = redis.call('HGET', countersKey, 'loadMs')
  local expectedMs = (loadMs or 0) + waitMs
  local isKnown = loadMs or expectedMs > 0
  emitEvent(fields,
    '{"type":"loading"' .. (isKnown and ',"expectedMs":' .. string.format('%.0f', expectedMs) or '') .. '}',
    isKnown and { 'loadedAtMs', timeMs() + expectedMs } or {})
end
-- Replaces all entries of an output's text, and of its progress, by one. liveBody: for live readers, which have the
-- text already.
write['snapshot'] = function(fields, body, span, liveBody)
  local events, from, old, changes = key('events', fields.id), fieldOf(fields, 'span:' .. span), {}, {}
  countBytes(fields, #body + stampBytes)
  for _, entry in ipairs(from and redis.call('XRANGE', events, from .. '-0', '+') or {}) do
    if entry[2][4] == span then
      old[#old + 1] = entry[1]
      countBytes(fields, -#entry[2][2])
    end
  end
  for first = 1, #old, 1000 do redis.call('XDEL', events, unpack(old, first, math.min(#old, first + 999))) end
  setField(fields, changes, 'span:' .. span, fields.sequence + 1)
  emitEvent(fields, body, changes, nil, span, liveBody)
end
local maxPublishedBytes = 65536
write['output'] = function(fields, body, bytes, index, chunk, info)
  local changes, sizeField = {}, 'size:' .. index
  local output = key('output', fields.id) .. ':' .. index
  redis.call('HSET', output, chunk, bytes, unpack(info ~= '' and { 'info', info } or {}))
  -- The first chunk replaces what an earlier delivery wrote of this output.
  local before = fieldOf(fields, sizeField) or 0
  local size = sizeOf(bytes) + (chunk ~= '0' and before or 0)
  countBytes(fields, size - before)
  setField(fields, changes, sizeField, size)
  if info ~= '' then
    setField(fields, changes, 'output:' .. index, info)
    append(changes, 'hasAdvanced', '1')
  end
  emitEvent(fields, body, changes, nil, nil, nil, #bytes <= maxPublishedBytes and bytes or nil)
end
write['checkpoint'] = function(fields, index, bytes, done, origin)
  local request, saved, sizeField = key('request', fields.id), 'saved:' .. index, 'checkpointBytes:' .. index
  local savedBefore, sizeBefore = unpack(redis.call('HMGET', request, saved, sizeField))
  redis.call('SET', key('checkpoint', fields.id) .. ':' .. index, bytes)
  -- A file of the byte store stays until the end of the request.
  countBytes(fields, sizeOf(bytes) - (sizeOfFile(bytes) and 0 or sizeBefore or 0), true)
  local changes = { 'origin:' .. index, origin, sizeField, sizeOf(bytes), 'bytes', fields.bytes, 'work', fields.work }
  if tonumber(done) > tonumber(savedBefore or 0) then append(changes, saved, done, 'hasAdvanced', '1') end
  redis.call('HSET', request, unpack(changes))
end
write['release'] = function(fields, slots, _, _, _, _, token) release(fields.id, token, tonumber(slots)) end
write['end'] = function(fields, state, error, outputs, failure, _, token)
  for index = 0, outputs - 1 do
    if not fieldOf(fields, 'output:' .. index) then return 'incomplete' end
  end
  release(fields.id, token, 'all')
  -- Clear the reason of an earlier attempt: it did not cause this end.
  local request = key('request', fields.id)
  if failure ~= '' then
    redis.call('HSET', request, 'lastFailure', failure)
  elseif fields.lastFailure then
    redis.call('HDEL', request, 'lastFailure')
  end
  endRequest(fields.id, state, error, fields.uncounted)
  return 'finished'
end
write['give-back'] = function(fields, reason, failure, _, _, _, token)
  release(fields.id, token, 'all')
  countOfOwner(fields)
  return requeue(fields.id, reason, failure)
end
local outcomes, known = {}, {}
for argument = 4, #ARGV, 8 do
  local kind, id, token, a, b, c, d, e = unpack(ARGV, argument, argument + 7)
  local fields = known[id] or readFields(id, names)
  known[id] = fields
  local state, isEnd = fields.state, kind == 'end' or kind == 'give-back'
  local outcome = state and state ~= 'running' and state ~= 'queued' and 'ended' or 'lost'
  if fields.token == token then
    outcome = write[kind](fields, a, b, c, d, e, token) or (fields.cancel and 'canceling') or 'written'
    -- The token is void now: read the hash again for later writes.
    if isEnd and outcome ~= 'incomplete' then known[id] = nil end
  elseif isEnd then
    -- Ended otherwise, for example at its deadline; its slots are released all the same.
    release(id, token, 'all')
  end
  outcomes[#outcomes + 1] = outcome
end
-- A request that stored bytes fails if its owner is over its limit now.
for id, fields in pairs(known) do
  if countOfOwner(fields) then
    sendCancel(workerId, id, fields.token)
    endRequest(id, 'failed', tooManyBytes(fields))
  end
end
if freed then freeSlots(workerId, freed) end
return outcomes
