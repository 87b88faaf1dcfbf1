local function listKey(list) return base .. ':workers:' .. list end

-- Whether a worker has the model, loaded or about to be, and may have it.
local function isServed()
  if redis.call('EXISTS', base .. ':paused') == 1 then return false end
  return redis.call('EXISTS', listKey('idle'), listKey('busy'), listKey('asleep'), listKey('loading')) > 0
end
