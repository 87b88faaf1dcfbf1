# One image with the whole system: docker build -t darkroom . (docs/docker.md)
# One target per kind of process, each with only the files that it needs:
#   docker build --target api -t darkroom-api:0.1.0 .
# Targets: api, batch-former, janitor, webhook-sender, worker, worker-cuda. docker-compose.yml builds and runs them.
ARG NODE_IMAGE=node:24-trixie-slim
ARG CUDA_IMAGE=nvidia/cuda:12.9.1-cudnn-runtime-ubuntu24.04

FROM ${NODE_IMAGE} AS node
WORKDIR /app
# PID 1 must reap orphaned processes and has no default signal handlers: tini handles both.
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/* /var/cache/apt/*

# Only the files that npm reads, so that a change of source code does not reinstall the packages.
FROM node AS manifests
COPY . .
RUN find . -type f ! -name package.json ! -name package-lock.json ! -name .npmrc -delete && find . -type d -empty -delete

FROM node AS build
COPY --from=manifests /app ./
RUN --mount=type=cache,target=/root/.npm npm ci
COPY . .
RUN npm run build

# The runtime files of one app: its packages, the built libs it is linked to, and itself. $1 is the app.
FROM build AS pack
COPY --from=manifests /app /packed

FROM pack AS packed-api
RUN --mount=type=cache,target=/root/.npm deploy/docker/pack.sh api
FROM pack AS packed-batch-former
RUN --mount=type=cache,target=/root/.npm deploy/docker/pack.sh batch-former
FROM pack AS packed-janitor
RUN --mount=type=cache,target=/root/.npm deploy/docker/pack.sh janitor
FROM pack AS packed-webhook-sender
RUN --mount=type=cache,target=/root/.npm deploy/docker/pack.sh webhook-sender
FROM pack AS packed-worker
RUN --mount=type=cache,target=/root/.npm deploy/docker/pack.sh worker
FROM pack AS packed-darkroom
RUN --mount=type=cache,target=/root/.npm deploy/docker/pack.sh api batch-former janitor webhook-sender worker

# The CUDA libraries are too big for npm: onnxruntime-node's install script downloads them from NuGet.
# `--build-arg ONNXRUNTIME_NODE_INSTALL=skip` omits them, to test the rest of the image without access to NuGet.
FROM packed-worker AS packed-worker-cuda
ARG ONNXRUNTIME_NODE_INSTALL=cuda12
RUN cd /packed && node node_modules/onnxruntime-node/script/install.js

# The files belong to root and are read-only for the process, which runs as an unprivileged user.
FROM node AS runtime
ENV NODE_ENV=production METRICS_PORT=9090 METRICS_HOST=0.0.0.0
USER 1000:1000
EXPOSE 9090
COPY deploy/docker/healthcheck.mjs ./
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "healthcheck.mjs"]
ENTRYPOINT ["tini", "--", "node"]

FROM runtime AS api
ENV HOST=0.0.0.0 PORT=8080
EXPOSE 8080
COPY --from=packed-api /packed ./
CMD ["apps/api/dist/main.js"]

FROM runtime AS batch-former
COPY --from=packed-batch-former /packed ./
CMD ["apps/batch-former/dist/main.js"]

FROM runtime AS janitor
COPY --from=packed-janitor /packed ./
CMD ["apps/janitor/dist/main.js"]

FROM runtime AS webhook-sender
COPY --from=packed-webhook-sender /packed ./
CMD ["apps/webhook-sender/dist/main.js"]

FROM runtime AS worker
COPY models models
COPY --from=packed-worker /packed ./
CMD ["apps/worker/dist/main.js"]

FROM ${CUDA_IMAGE} AS worker-cuda
WORKDIR /app
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
COPY --from=node /usr/local/bin/node /usr/local/bin/node
ENV NODE_ENV=production METRICS_PORT=9090 METRICS_HOST=0.0.0.0 DEVICE=cuda MODEL_DTYPE=int8
USER 1000:1000
EXPOSE 9090
COPY deploy/docker/healthcheck.mjs ./
HEALTHCHECK --interval=10s --timeout=5s --start-period=300s --retries=3 CMD ["node", "healthcheck.mjs"]
ENTRYPOINT ["tini", "--", "node"]
COPY models models
COPY --from=packed-worker-cuda /packed ./
CMD ["apps/worker/dist/main.js"]

# The whole system in one container, started like `npm start`, with a Redis of its own. State is in the volume /data.
FROM node AS darkroom
RUN apt-get update && apt-get install -y --no-install-recommends redis-server && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
RUN install --directory --owner 1000 --group 1000 /data
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 METRICS_PORT=9090
USER 1000:1000
EXPOSE 8080
VOLUME /data
COPY deploy/docker/healthcheck.mjs ./
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "/app/healthcheck.mjs"]
COPY models models
COPY tools tools
COPY --from=packed-darkroom /packed ./
WORKDIR /data
ENTRYPOINT ["tini", "--", "node", "/app/tools/start.mjs"]
