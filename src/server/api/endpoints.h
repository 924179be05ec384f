#pragma once

#include "server/api/router.h"
#include "server/service/service.h"

/// Each adds the routes of one family, one file per family. The service must outlive the router.
namespace coterie::server {

void add_chat_completions(Router& router, Service& service);   ///< /v1/chat/completions
void add_completions(Router& router, Service& service);        ///< /v1/completions
void add_native_completion(Router& router, Service& service);  ///< /completion, llama-server's
void add_embeddings(Router& router, Service& service);         ///< /v1/embeddings
void add_models(Router& router, Service& service);             ///< /v1/models
void add_responses(Router& router, Service& service);          ///< /v1/responses
void add_messages(Router& router, Service& service);  ///< /v1/messages, as Anthropic's clients know it
void add_tokens(Router& router, Service& service);    ///< /tokenize, /detokenize, /apply-template
void add_state(Router& router, Service& service);     ///< /props, /slots
void add_metrics(Router& router, Service& service);   ///< /metrics
void add_cache(Router& router, Service& service);     ///< /cache, /plan: what the page shows

}  // namespace coterie::server
