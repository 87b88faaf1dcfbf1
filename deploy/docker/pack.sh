#!/bin/sh
# pack.sh APP...: reduces /packed to the runtime files of some apps: their packages, the built libs that they depend on,
# and the apps. Run in the build stage of the Dockerfile, where /app is built and /packed holds the manifests.
set -eu
cd /packed
npm ci --omit=dev $(printf -- '--workspace @darkroom/%s ' "$@")

# npm links these apps and the libs that they depend on, directly or not. Remove all others.
for directory in libs/* apps/*; do
  if [ ! -e "node_modules/@darkroom/$(basename "$directory")" ]; then rm -r "$directory"; fi
done
for directory in libs/* apps/*; do
  cp -r "/app/$directory/dist" "$directory/"
  # Lua scripts and WebAssembly are read from src. An engine in Python imports its package from here.
  if [ -d "/app/$directory/python" ]; then cp -r "/app/$directory/python" "$directory/"; fi
  (cd "/app/$directory" && find src \( -name '*.lua' -o -name '*.wasm' \) -exec cp --parents {} "/packed/$directory/" \;)
done
if [ -d apps/api ]; then
  mkdir -p apps/page
  cp -r /app/apps/page/dist apps/page/
fi

# Remove TypeScript: an unused peer dependency of a peer dependency of Bull Board.
rm -rf node_modules/typescript node_modules/@typescript

# Remove binaries for other platforms.
for binaries in node_modules/onnxruntime-node/bin/napi-v*; do
  [ -d "$binaries" ] || continue
  find "$binaries" -mindepth 1 -maxdepth 1 ! -name linux -exec rm -r {} +
  find "$binaries/linux" -mindepth 1 -maxdepth 1 ! -name "$(node -p process.arch)" -exec rm -r {} +
done
find . \( -name '*.map' -o -name '*.d.ts' -o -name '*.tsbuildinfo' \) -type f -delete
rm package-lock.json .npmrc
