#!/bin/sh
# pack.sh APP: reduces /packed to the runtime files of one app: its packages, the built libs it depends on, and the app.
# Run in the build stage of the Dockerfile, where /app is built and /packed holds the manifests.
set -eu
app=$1
cd /packed
npm ci --omit=dev --workspace "@darkroom/$app"

# npm links the libs that this app depends on, directly or not. Remove all other libs and apps.
for directory in libs/* apps/*; do
  name=$(basename "$directory")
  if [ "$directory" != "apps/$app" ] && [ ! -e "node_modules/@darkroom/$name" ]; then rm -r "$directory"; fi
done
for directory in libs/* "apps/$app"; do
  cp -r "/app/$directory/dist" "$directory/"
  # Lua scripts and the code of threads are read from src. An engine in Python imports its package from here.
  if [ -d "/app/$directory/python" ]; then cp -r "/app/$directory/python" "$directory/"; fi
  (cd "/app/$directory" && find src \( -name '*.lua' -o -name 'encode-thread.mjs' \) -exec cp --parents {} "/packed/$directory/" \;)
done
if [ "$app" = api ]; then
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
