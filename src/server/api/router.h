#pragma once

#include <map>
#include <string>
#include <utility>

#include "server/http/message.h"
#include "server/json/api_error.h"

namespace coterie::server {

/// Which handler answers which method and path. A path may end in {id}, which stands for one segment.
class Router {
  public:
    using Handler = std::function<HttpResponse(const HttpRequest& request, const std::string& id)>;

    void add(const std::string& method, const std::string& path, Handler handler);

    /// 405 for a method that the path does not have. Throws ApiError 404 for an unknown path.
    HttpResponse handle(const HttpRequest& request) const;

  private:
    using Methods = std::map<std::string, Handler>;
    const Methods* find(const std::string& path, std::string& id) const;
    static HttpResponse refuse_method(const HttpRequest& request, const Methods& methods);

    std::map<std::string, Methods> routes_;  ///< by path
};

/// The response for an error, in the shape that the clients of a path expect: Anthropic's or OpenAI's.
HttpResponse error_response(const ApiError& error, const std::string& path);
HttpResponse error_response(int status, const std::string& message, const std::string& path,
                            const std::string& parameter = {}, const std::string& code = {});

}  // namespace coterie::server
