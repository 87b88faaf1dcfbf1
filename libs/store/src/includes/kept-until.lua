-- The field of an owner's bytes under which a request that has ended is counted: by eighths of a result's time.
local function keptUntil(expiresAtMs, ttlMs)
  local part = math.ceil(ttlMs / 8)
  return math.ceil(expiresAtMs / part) * part, part
end
