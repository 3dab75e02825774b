# The service without a Redis of its own:
#
#   docker build -t handoff .          (podman build --format docker …, else Podman leaves the health check out)
#   docker run -p 8080:8080 -e REDIS_URL=redis://… -e API_KEYS=name:secret -e BASE_URL=https://… handoff
#
# Without REDIS_URL it ends with a line that says so; without BASE_URL its links begin with the container's name, and the log warns.
# Stop it with a timeout above DRAIN_TIMEOUT (15 s): docker stop -t 20.

# The image that all of this is built on. A tag may name another image tomorrow; a digest can't: docs/deploy.md, "Images by digest".
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --workspaces=false --ignore-scripts
COPY tsconfig.json ./
COPY src ./src
COPY lua ./lua
RUN npm run build

# Apart from the build, so that a change of the sources doesn't install everything again.
FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --workspaces=false --omit=dev --ignore-scripts

FROM ${NODE_IMAGE}
ENV NODE_ENV=production HOST=0.0.0.0
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY lua ./lua
COPY src/web/assets ./src/web/assets
COPY src/result-schema/worker ./src/result-schema/worker
COPY package.json LICENSE ./
RUN ln -s /app/dist/cli/main.js /usr/local/bin/handoff
# All of it stays root's: the service writes no file.
USER node
EXPOSE 8080
# Whether the process answers, not whether Redis does (that is /readyz): a restart would not bring Redis back.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["handoff", "healthcheck"]
CMD ["handoff", "serve"]
