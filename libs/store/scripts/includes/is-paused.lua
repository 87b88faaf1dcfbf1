-- Whether an operator has paused the model. The mark is BullMQ's own, which gives nothing out then; no lease is granted either.
local function isPaused()
  return redis.call('HEXISTS', base .. ':queue:meta', 'paused') == 1
end
