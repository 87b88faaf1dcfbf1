local function listKey(list) return base .. ':workers:' .. list end

-- Returns whether the model is not paused and a worker has it loaded, asleep or loading.
local function isServed()
  if redis.call('EXISTS', base .. ':paused') == 1 then return false end
  return redis.call('EXISTS', listKey('idle'), listKey('busy'), listKey('asleep'), listKey('loading')) > 0
end
