# docker build -t coterie . && docker run -p 8080:8080 -v /models:/models coterie -m /models/model.gguf --api-key KEY
FROM debian:12 AS build
WORKDIR /src
COPY . .
RUN scripts/setup.sh && \
    cmake --preset release -DCOTERIE_BUILD_TESTS=OFF && ninja -C build/release coterie && \
    cmake --install build/release --prefix /opt/coterie --strip

FROM debian:12
RUN apt-get update -qq && \
    apt-get install -y -qq --no-install-recommends libfmt9 libspdlog1.10 libpcre2-8-0 libxxhash0 libcpp-httplib0.11 \
      libssl3 libprometheus-cpp-core1.0 python3-minimal python3-jinja2 && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/coterie /usr/local
RUN useradd --system --create-home coterie
USER coterie
EXPOSE 8080
# Reached through a published port only; without --api-key the server refuses to start here.
ENTRYPOINT ["coterie", "serve", "--host", "0.0.0.0"]
