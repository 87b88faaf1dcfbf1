--- @include "is-paused"
-- Whether a live worker has the model, loaded or about to be, and may have it.
local function isServed()
  if isPaused() then return false end
  for _, list in ipairs({ idleKey, busyKey, loadingKey }) do
    for _, workerId in ipairs(redis.call('ZRANGE', list, 0, -1)) do
      if redis.call('EXISTS', key('alive', workerId)) == 1 then return true end
    end
  end
  return false
end
