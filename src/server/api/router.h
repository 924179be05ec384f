#pragma once

#include <map>
#include <string>
#include <utility>

#include "server/http/message.h"

namespace coterie::server {

/// Which handler answers which method and path. A path may end in {id}, which stands for one segment.
class Router {
  public:
    using Handler = std::function<HttpResponse(const HttpRequest& request, const std::string& id)>;

    void add(const std::string& method, const std::string& path, Handler handler);

    /// Throws ApiError: 404 for an unknown path, 405 for a method that the path does not have.
    HttpResponse handle(const HttpRequest& request) const;

  private:
    const std::map<std::string, Handler>* find(const std::string& path, std::string& id) const;

    std::map<std::string, std::map<std::string, Handler>> routes_;  ///< [path][method]
};

/// The response for an error, in the shape that the clients of a path expect: Anthropic's or OpenAI's.
HttpResponse error_response(int status, const std::string& message, const std::string& path,
                            const std::string& parameter = {}, const std::string& code = {});

}  // namespace coterie::server
