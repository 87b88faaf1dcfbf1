-- Whether a live worker has the model, loaded or about to be.
local function isServed()
  for _, list in ipairs({ idleKey, busyKey, loadingKey }) do
    for _, workerId in ipairs(redis.call('ZRANGE', list, 0, -1)) do
      if redis.call('EXISTS', key('alive', workerId)) == 1 then return true end
    end
  end
  return false
end
