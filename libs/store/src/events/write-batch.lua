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
local write = {}
-- done and total over all outputs, span: the output whose text, or progress with it, it is of; '' for none.
write['event'] = function(id, request, body, preview, done, total, span)
  if done ~= '' then redis.call('HSET', request, 'done', done, 'total', total) end
  local sequence = emitEvent(id, body, preview ~= '' and preview or nil, span ~= '' and span or nil)
  if span ~= '' then redis.call('HSETNX', request, 'span:' .. span, sequence) end
end
-- waitMs: how long it may be until its model begins to load. What the last load of the model took, anywhere, is known here.
write['loading'] = function(id, request, waitMs)
  local loadMs = redis.call('HGET', tallyKey, 'loadMs')
  local expectedMs = (loadMs or 0) + waitMs
  local isKnown = loadMs or expectedMs > 0
  if isKnown then redis.call('HSET', request, 'loadedAtMs', timeMs() + expectedMs) end
  emitEvent(id, '{"type":"loading"' .. (isKnown and ',"expectedMs":' .. string.format('%.0f', expectedMs) or '') .. '}')
end
-- In place of all that was written of an output's text, and of the progress with it. told: who has read all that knows it already.
write['snapshot'] = function(id, request, body, span, told)
  local from = redis.call('HGET', request, 'span:' .. span)
  for _, entry in ipairs(from and redis.call('XRANGE', key('events', id), from .. '-0', '+') or {}) do
    if entry[2][4] == span then redis.call('XDEL', key('events', id), entry[1]) end
  end
  redis.call('HSET', request, 'span:' .. span, emitEvent(id, body, nil, span, told))
end
local mostToldBytes = 65536
write['output'] = function(id, request, body, bytes, index, chunk, info)
  local output = key('output', id) .. ':' .. index
  redis.call('HSET', output, chunk, bytes)
  if info ~= '' then
    -- An earlier delivery may have written it too. What Redis holds may be less: where the bytes are.
    local before = redis.call('HGET', request, 'output:' .. index)
    redis.call('HINCRBY', request, 'written', cjson.decode(info).bytes - (before and cjson.decode(before).bytes or 0))
    redis.call('HSET', output, 'info', info)
    redis.call('HSET', request, 'output:' .. index, info, 'hasAdvanced', '1')
  end
  emitEvent(id, body, nil, nil, nil, #bytes <= mostToldBytes and bytes or nil)
end
write['checkpoint'] = function(id, request, index, bytes, done, origin)
  redis.call('SET', key('checkpoint', id) .. ':' .. index, bytes)
  redis.call('HSET', request, 'origin:' .. index, origin)
  if tonumber(done) <= tonumber(redis.call('HGET', request, 'saved:' .. index) or 0) then return end
  redis.call('HSET', request, 'saved:' .. index, done, 'hasAdvanced', '1')
end
write['release'] = function(id, _, slots, _, _, _, _, token) releaseLease(workerId, id, token, tonumber(slots)) end
write['end'] = function(id, request, state, error, outputs, _, _, token)
  for index = 0, outputs - 1 do
    if redis.call('HEXISTS', request, 'output:' .. index) == 0 then return 'incomplete' end
  end
  releaseLease(workerId, id, token, 'all')
  endRequest(id, state, error)
  return 'finished'
end
write['give-back'] = function(id, _, reason, _, _, _, _, token)
  releaseLease(workerId, id, token, 'all')
  return requeue(id, reason, mostAttempts)
end
local outcomes = {}
for argument = 5, #ARGV, 8 do
  local what, id, token, a, b, c, d, e = unpack(ARGV, argument, argument + 7)
  local held, cancel, state = unpack(redis.call('HMGET', key('request', id), 'token', 'cancel', 'state'))
  local isOver = state and state ~= 'running' and state ~= 'queued'
  local outcome = isOver and 'ended' or 'lost'
  if held == token then outcome = write[what](id, key('request', id), a, b, c, d, e, token) or (cancel and 'canceling') or 'written' end
  -- Somebody else ended it, a deadline for one; its room is free all the same.
  if held ~= token and (what == 'end' or what == 'give-back') then releaseLease(workerId, id, token, 'all') end
  outcomes[#outcomes + 1] = outcome
end
return outcomes
