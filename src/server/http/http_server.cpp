#include "server/http/http_server.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "server/http/body_framing.h"
#include "server/http/connection.h"

namespace coterie::server {
namespace {

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

HttpRequest translate(const httplib::Request& from) {
    HttpRequest request;
    request.method = from.method;
    request.path = from.path;
    for (const auto& [name, value] : from.headers) request.headers.emplace(lower(name), value);
    for (const auto& [name, value] : from.params) request.query.emplace(name, value);
    request.peer = from.remote_addr;
    if (from.progress) request.present = [progress = from.progress] { return progress(0, 0); };
    return request;
}

/// A streamed body on its way into the library's chunks.
class ChunkWriter final : public StreamWriter {
  public:
    explicit ChunkWriter(httplib::DataSink& sink) : sink_(sink) {}
    bool write(std::string_view bytes) override {
        present_ = present_ && sink_.write(bytes.data(), bytes.size());
        return present_;
    }
    bool present() const override { return present_ && sink_.is_writable(); }

  private:
    httplib::DataSink& sink_;
    bool present_ = true;
};

void translate(HttpResponse&& from, httplib::Response& to) {
    to.status = from.status;
    for (auto& [name, value] : from.headers) to.set_header(name, value);
    if (!from.stream) return to.set_content(from.body, from.content_type);
    to.set_chunked_content_provider(from.content_type,
                                    [stream = std::move(from.stream)](std::size_t, httplib::DataSink& sink) {
                                        ChunkWriter writer(sink);
                                        stream(writer);
                                        sink.done();
                                        return true;
                                    });
}

/// The last response of its connection: what is left of the request's body will not be read.
HttpResponse last(HttpResponse response) {
    response.headers.emplace_back("Connection", "close");
    return response;
}

std::vector<std::string> header_values(const httplib::Request& request, const std::string& name) {
    std::vector<std::string> values;
    const auto [begin, end] = request.headers.equal_range(name);
    for (auto header = begin; header != end; ++header) values.push_back(header->second);
    return values;
}

BodyFraming framing_of(const httplib::Request& request) {
    return read_framing(header_values(request, "Content-Length"),
                        header_values(request, "Transfer-Encoding"));
}

/// The library promises to keep connections that it is told to close, and may say twice that it closes them.
void settle_connection(httplib::Response& response) {
    if (!response.has_header("Connection")) return;
    response.headers.erase("Connection");
    response.headers.erase("Keep-Alive");
    response.set_header("Connection", "close");
}

}  // namespace

class HttpServer::Library final : public httplib::Server {
  public:
    Library(HttpCallbacks callbacks, const HttpLimits& limits, std::unique_ptr<TlsContext> tls)
        : callbacks_(std::move(callbacks)), limits_(limits), tls_(std::move(tls)) {
        new_task_queue = [this] { return new Threads(*this); };
        set_keep_alive_timeout(std::chrono::duration_cast<std::chrono::seconds>(limits_.idle_time).count());
        set_keep_alive_max_count(kRequestsOfAConnection);
        set_tcp_nodelay(true);
        set_socket_options([](socket_t socket) {  // a port that another server has stays refused
            const int yes = 1;
            setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        });
        install_handlers();
    }

    void end_connections() { ending_ = true; }

  private:
    static constexpr std::size_t kRequestsOfAConnection = 1000;

    /// One thread a connection. Those over the limit are turned away by the accepting thread itself.
    class Threads final : public httplib::TaskQueue {
      public:
        explicit Threads(Library& server) : server_(server) {}
        void enqueue(std::function<void()> work) override {
            if (start(work)) return;
            server_.refusing_ = true;
            run(work);
            server_.refusing_ = false;
        }
        void shutdown() override {
            std::unique_lock lock(mutex_);
            ended_.wait(lock, [&] { return running_ == 0; });
        }

      private:
        bool start(const std::function<void()>& work) {
            const std::lock_guard lock(mutex_);
            if (running_ >= server_.limits_.connections) return false;
            try {
                std::thread([this, work] {
                    run(work);
                    const std::lock_guard ending(mutex_);
                    --running_;
                    ended_.notify_all();
                }).detach();
            } catch (const std::system_error&) {  // no more threads are to be had
                return false;
            }
            ++running_;
            return true;
        }
        static void run(const std::function<void()>& work) {
            try {
                work();
            } catch (const std::exception& error) {
                log::error("a connection ended: {}", error.what());
            }
        }

        Library& server_;
        std::mutex mutex_;  ///< guards running_
        std::condition_variable ended_;
        int running_ = 0;
    };

    void install_handlers() {
        set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
            const BodyFraming framing = framing_of(request);
            if (framing.refused()) {
                translate(last(callbacks_.fail(framing.refusal, framing.problem, translate(request))),
                          response);
                return HandlerResponse::Handled;
            }
            auto refused = callbacks_.admit(translate(request));
            if (!refused) return HandlerResponse::Unhandled;
            translate(framing.no_body() ? std::move(*refused) : last(std::move(*refused)), response);
            return HandlerResponse::Handled;
        });
        set_post_routing_handler(
            [](const httplib::Request&, httplib::Response& response) { settle_connection(response); });
        const auto plain = [this](const httplib::Request& request, httplib::Response& response) {
            HttpResponse answered = answer(translate(request));
            translate(framing_of(request).no_body() ? std::move(answered) : last(std::move(answered)),
                      response);
        };
        Get(".*", plain);
        Options(".*", plain);
        const auto with_body = [this](const httplib::Request& request, httplib::Response& response,
                                      const httplib::ContentReader& read) {
            translate(answer_with_body(request, read), response);
        };
        Post(".*", HandlerWithContentReader(with_body));
        Put(".*", HandlerWithContentReader(with_body));
        Patch(".*", HandlerWithContentReader(with_body));
        Delete(".*", HandlerWithContentReader(with_body));
        set_error_handler(Handler([this](const httplib::Request& request, httplib::Response& response) {
            if (!response.body.empty() || response.content_length_ > 0) return;
            translate(
                last(callbacks_.fail(response.status, "the request is not valid HTTP", translate(request))),
                response);
        }));
    }

    HttpResponse answer(const HttpRequest& request) {
        try {
            return callbacks_.handle(request);
        } catch (const std::exception& error) {
            log::error("{} {}: {}", request.method, request.path, error.what());
            return callbacks_.fail(500, error.what(), request);
        }
    }

    HttpResponse answer_with_body(const httplib::Request& from, const httplib::ContentReader& read) {
        HttpRequest request = translate(from);
        const BodyFraming framing = framing_of(from);
        if (framing.no_body()) return answer(request);  // the library would wait for one
        const auto refuse = [&](int status, const std::string& why) {
            return last(callbacks_.fail(status, why, request));
        };
        const std::string too_long = fmt::format("the body has more than {} bytes", limits_.body_bytes);
        if (framing.length > limits_.body_bytes) return refuse(413, too_long);
        bool fits = true;
        const bool whole = read([&](const char* bytes, std::size_t count) {
            fits = request.body.size() + count <= limits_.body_bytes;
            if (fits) request.body.append(bytes, count);
            return fits;
        });
        if (!fits) return refuse(413, too_long);
        if (!whole) return refuse(400, "the body did not come whole, or in time");
        return framing.chunked ? last(answer(request)) : answer(request);
    }

    bool process_and_close_socket(socket_t descriptor) override {
        Connection connection(descriptor, tls_.get(), limits_);
        if (refusing_ && std::this_thread::get_id() == accepting_thread_) return refuse(connection);
        while (serve_request(connection)) {
        }
        return true;
    }

    bool serve_request(Connection& connection) {
        const auto give_up = std::chrono::steady_clock::now() + limits_.idle_time;
        while (!connection.wait_for_request(
            std::min(give_up, std::chrono::steady_clock::now() + std::chrono::milliseconds(200)))) {
            if (ending_ || std::chrono::steady_clock::now() >= give_up || !connection.peer_present())
                return false;
        }
        BodyFraming framing{.chunked = true};  // as long as the header was not read
        bool closed = false;
        const bool good = process_request(connection, ending_, closed, [&](httplib::Request& request) {
            framing = framing_of(request);
            connection.begin_body(framing.length);
            request.progress = [&connection](std::uint64_t, std::uint64_t) {
                return connection.peer_present();
            };
        });
        if (connection.header_too_long()) {
            write_plainly(
                connection,
                callbacks_.fail(431, fmt::format("the header has more than {} bytes", limits_.header_bytes),
                                {}));
        }
        // What is left of a body must not be taken for the next request.
        const bool body_left =
            framing.chunked || framing.refused() || connection.body_read() < framing.length;
        if (body_left || !good) connection.discard_input();
        return good && !closed && !body_left && !ending_;
    }

    /// Called by the accepting thread, which must not wait: not even for a TLS handshake.
    bool refuse(Connection& connection) {
        if (tls_) return true;
        write_plainly(connection, callbacks_.fail(503, "too many connections; try again later", {}));
        return true;
    }

    /// For where the library has no part: no request was read.
    static void write_plainly(Connection& connection, const HttpResponse& response) {
        const std::string text = fmt::format(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nRetry-After: 1\r\nConnection: "
            "close\r\n\r\n{}",
            response.status,
            response.status == 503 ? "Service Unavailable" : "Request Header Fields Too Large",
            response.content_type, response.body.size(), response.body);
        connection.write_over_library(text);
    }

    HttpCallbacks callbacks_;
    HttpLimits limits_;
    std::unique_ptr<TlsContext> tls_;
    std::atomic<bool> ending_{false};
    std::atomic<bool> refusing_{false};

  public:
    std::thread::id accepting_thread_;  ///< set before anything is accepted
    std::atomic<bool> served_{false};   ///< `serve` has ended
};

HttpServer::HttpServer(HttpCallbacks callbacks, const HttpLimits& limits, std::unique_ptr<TlsContext> tls)
    : library_(std::make_unique<Library>(std::move(callbacks), limits, std::move(tls))) {}

HttpServer::~HttpServer() = default;

int HttpServer::bind(const std::string& host, int port) {
    const int bound = port == 0                            ? library_->bind_to_any_port(host)
                      : library_->bind_to_port(host, port) ? port
                                                           : -1;
    if (bound < 0) {
        fail(ErrorCode::Io,
             "cannot listen on {}:{}; the port is in use, or the address is not this machine's", host, port);
    }
    return bound;
}

void HttpServer::serve() {
    library_->accepting_thread_ = std::this_thread::get_id();
    library_->listen_after_bind();
    library_->served_ = true;
}

void HttpServer::stop() {
    library_->end_connections();
    while (!library_->is_running() &&
           !library_->served_) {  // the library forgets a stop that comes too early
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    library_->stop();
}

}  // namespace coterie::server
