# A node from its source: `podman build --format docker --tag anteroom .` (without the format it has no health check), then
# `podman run --publish 7117:7117 --volume anteroom:/var/lib/anteroom anteroom`, which prints the recovery text once.
FROM docker.io/library/rust:1-slim AS build
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package anteroom-cli

FROM docker.io/library/debian:stable-slim
COPY --from=build /source/target/release/anteroom /usr/bin/anteroom
RUN useradd --system --home-dir /var/lib/anteroom --create-home --uid 1000 anteroom
USER anteroom
ENV ANTEROOM_DATA_DIR=/var/lib/anteroom/data ANTEROOM_LISTEN=0.0.0.0:7117
VOLUME /var/lib/anteroom
EXPOSE 7117
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["anteroom", "ready"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["anteroom"]
