-- What a worker has to say about its requests, in order, each part under its fence: it does nothing when the request is not the
-- delivery's any more. A batch that is sent again, because its answer got lost, is not written again.
-- ARGV: 1 worker id, 2 incarnation, 3 number of the batch, counted by the worker, 4 most attempts, then for each write what, id, token and
--       five values: those that the functions of `write` take, as `encode` in write-batch.ts makes them
-- Returns: {'written' | 'canceling' (written, but the request is to be dropped) | 'lost' | 'ended' | of an end 'finished' | 'incomplete' |
--           of a give-back 'requeued' | 'canceled' | 'failed', …}, or {} for a batch that was written before
--- @include "requeue"
local workerId, worker, batch, mostAttempts = ARGV[1], key('worker', ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])
local incarnation, written = unpack(redis.call('HMGET', worker, 'incarnation', 'batch'))
if incarnation == ARGV[2] then
  if tonumber(written or 0) >= batch then return {} end
  redis.call('HSET', worker, 'batch', batch)
end
-- Each takes what its request's hash has of `names`, five values and the token.
local write, freed = {}, nil
local names = { 'token', 'cancel', 'state', 'sequence', 'webhook', 'written' }
local function release(id, token, slots)
  local slots = takeFromLease(workerId, id, token, slots)
  if slots then freed = (freed or 0) + slots end
end
-- One more of its fields, asked once.
local function fieldOf(facts, name)
  if facts[name] == nil then facts[name] = redis.call('HGET', key('request', facts.id), name) end
  return facts[name]
end
-- done and total over all outputs, span: the output whose text, or progress with it, it is of; '' for none.
write['event'] = function(facts, body, preview, done, total, span)
  local isOfText = span ~= ''
  emitEvent(facts, body, done ~= '' and { 'done', done, 'total', total } or {}, preview ~= '' and preview or nil, isOfText and span or nil)
  if isOfText then redis.call('HSETNX', key('request', facts.id), 'span:' .. span, facts.sequence) end
end
-- waitMs: how long it may be until its model begins to load. What the last load of the model took, anywhere, is known here.
write['loading'] = function(facts, waitMs)
  local loadMs = redis.call('HGET', tallyKey, 'loadMs')
  local expectedMs = (loadMs or 0) + waitMs
  local isKnown = loadMs or expectedMs > 0
  emitEvent(facts, '{"type":"loading"' .. (isKnown and ',"expectedMs":' .. string.format('%.0f', expectedMs) or '') .. '}',
    isKnown and { 'loadedAtMs', timeMs() + expectedMs } or {})
end
-- In place of all that was written of an output's text, and of the progress with it. told: who has read all that knows it already.
write['snapshot'] = function(facts, body, span, told)
  local request, events = key('request', facts.id), key('events', facts.id)
  local from, old = redis.call('HGET', request, 'span:' .. span), {}
  for _, entry in ipairs(from and redis.call('XRANGE', events, from .. '-0', '+') or {}) do
    if entry[2][4] == span then old[#old + 1] = entry[1] end
  end
  for first = 1, #old, 1000 do redis.call('XDEL', events, unpack(old, first, math.min(#old, first + 999))) end
  emitEvent(facts, body, { 'span:' .. span, facts.sequence + 1 }, nil, span, told)
end
local mostToldBytes = 65536
write['output'] = function(facts, body, bytes, index, chunk, info)
  local output, name, changes = key('output', facts.id) .. ':' .. index, 'output:' .. index, {}
  redis.call('HSET', output, chunk, bytes, unpack(info ~= '' and { 'info', info } or {}))
  if info ~= '' then
    -- An earlier delivery may have written it too. What Redis holds may be less: where the bytes are.
    local before = fieldOf(facts, name)
    facts.written = (facts.written or 0) + cjson.decode(info).bytes - (before and cjson.decode(before).bytes or 0)
    facts[name], changes = info, { name, info, 'hasAdvanced', '1', 'written', facts.written }
  end
  emitEvent(facts, body, changes, nil, nil, nil, #bytes <= mostToldBytes and bytes or nil)
end
write['checkpoint'] = function(facts, index, bytes, done, origin)
  local request, saved = key('request', facts.id), 'saved:' .. index
  redis.call('SET', key('checkpoint', facts.id) .. ':' .. index, bytes)
  local isFurther = tonumber(done) > tonumber(redis.call('HGET', request, saved) or 0)
  redis.call('HSET', request, 'origin:' .. index, origin, unpack(isFurther and { saved, done, 'hasAdvanced', '1' } or {}))
end
write['release'] = function(facts, slots, _, _, _, _, token) release(facts.id, token, tonumber(slots)) end
write['end'] = function(facts, state, error, outputs, _, _, token)
  for index = 0, outputs - 1 do
    if not fieldOf(facts, 'output:' .. index) then return 'incomplete' end
  end
  release(facts.id, token, 'all')
  endRequest(facts.id, state, error)
  return 'finished'
end
write['give-back'] = function(facts, reason, _, _, _, _, token)
  release(facts.id, token, 'all')
  return requeue(facts.id, reason, mostAttempts)
end
local outcomes, known = {}, {}
for argument = 5, #ARGV, 8 do
  local what, id, token, a, b, c, d, e = unpack(ARGV, argument, argument + 7)
  local facts = known[id] or factsOf(id, names)
  known[id] = facts
  local state, isEnd = facts.state, what == 'end' or what == 'give-back'
  local outcome = state and state ~= 'running' and state ~= 'queued' and 'ended' or 'lost'
  if facts.token == token then
    outcome = write[what](facts, a, b, c, d, e, token) or (facts.cancel and 'canceling') or 'written'
    -- It is somebody else's now.
    if isEnd then known[id] = nil end
  elseif isEnd then
    -- Somebody else ended it, a deadline for one; its room is free all the same.
    release(id, token, 'all')
  end
  outcomes[#outcomes + 1] = outcome
end
if freed then freeSlots(workerId, freed) end
return outcomes
