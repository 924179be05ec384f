#include <charconv>
#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sampling/sampler_order.h"
#include "scheduler/scheduler.h"
#include "server/api/endpoints.h"
#include "server/api/slot_name.h"
#include "server/json/api_error.h"
#include "server/json/fields.h"
#include "server/json/parse.h"

namespace coterie::server {
namespace {

Json sampling_json(const SamplingOptions& o) {
    Json samplers = Json::array();
    for (const SamplerKind kind : o.samplers) samplers.push_back(sampler_name(kind));
    return {{"seed", o.seed},
            {"temperature", o.temperature},
            {"dynatemp_range", o.dynatemp_range},
            {"dynatemp_exponent", o.dynatemp_exponent},
            {"top_k", o.top_k},
            {"top_p", o.top_p},
            {"min_p", o.min_p},
            {"typical_p", o.typical_p},
            {"top_n_sigma", o.top_n_sigma},
            {"xtc_probability", o.xtc_probability},
            {"xtc_threshold", o.xtc_threshold},
            {"repeat_last_n", o.repeat_last_n},
            {"repeat_penalty", o.repeat_penalty},
            {"presence_penalty", o.presence_penalty},
            {"frequency_penalty", o.frequency_penalty},
            {"dry_multiplier", o.dry_multiplier},
            {"dry_base", o.dry_base},
            {"dry_allowed_length", o.dry_allowed_length},
            {"dry_penalty_last_n", o.dry_penalty_last_n},
            {"mirostat", o.mirostat},
            {"mirostat_tau", o.mirostat_tau},
            {"mirostat_eta", o.mirostat_eta},
            {"samplers", samplers}};
}

Json props(const Service& service) {
    const ModelFacts& facts = service.facts();
    return {{"model_alias", facts.id},
            {"model_name", facts.name},
            {"model_path", facts.name},
            {"total_slots", service.scheduler().options().slots},
            {"default_generation_settings",
             {{"n_ctx", facts.context},
              {"n_predict", service.options().max_tokens},
              {"params", sampling_json(service.options().sampling)}}},
            {"chat_template", service.has_chat_template() ? Json(service.chat_template().source()) : Json()},
            {"tool_format", tool_format_name(service.tool_format())},
            {"modalities", {{"vision", false}, {"audio", false}}},
            {"is_sleeping", false}};
}

const char* state_word(scheduler::SlotState state) {
    switch (state) {
        case scheduler::SlotState::Idle:
            return "idle";
        case scheduler::SlotState::WaitingForPrefix:
            return "waiting for a shared prefix";
        case scheduler::SlotState::WaitingForMemory:
            return "waiting for memory";
        case scheduler::SlotState::ReadingPrompt:
            return "reading the prompt";
        case scheduler::SlotState::Answering:
            return "answering";
    }
    return "";
}

Json slots(const Service& service) {
    Json list = Json::array();
    for (const scheduler::SlotStatus& slot : service.scheduler().slots()) {
        list.push_back({{"id", slot.slot},
                        {"n_ctx", service.facts().context},
                        {"is_processing", slot.state != scheduler::SlotState::Idle},
                        {"state", state_word(slot.state)},
                        {"held_tokens", slot.held_tokens},
                        {"prompt_tokens", slot.prompt_tokens},
                        {"cached_tokens", slot.cached_tokens},
                        {"n_decoded", slot.generated_tokens},
                        {"n_predict", slot.max_tokens}});
    }
    return list;
}

int read_slot(const std::string& id) {
    int slot = -1;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), slot);
    if (error != std::errc() || end != id.data() + id.size()) {
        throw ApiError(404, fmt::format("there is no slot '{}'", id));
    }
    return slot;
}

std::string read_file_name(const HttpRequest& request) {
    const Json body = parse_object(request.body);
    const auto name = Fields(body).string("filename");
    if (!name) refuse_field("filename", "is missing");
    return *name;
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Json change_slot(const HttpRequest& request, int slot, Service& service) {
    const auto action = request.query.find("action");
    const std::string what = action == request.query.end() ? std::string() : action->second;
    const auto start = std::chrono::steady_clock::now();
    if (what == "erase") return {{"id_slot", slot}, {"n_erased", service.scheduler().erase_slot(slot)}};
    if (what != "save" && what != "restore") {
        throw ApiError(400, fmt::format("action '{}': must be save, restore or erase", what), "action");
    }
    const std::string name = read_file_name(request);
    const std::string path = slot_path(service.options().slot_folder, name);
    if (what == "save") {
        const scheduler::SavedSlot saved = service.scheduler().save_slot(slot, path);
        return {{"id_slot", slot},
                {"filename", name},
                {"n_saved", saved.tokens},
                {"n_written", saved.bytes},
                {"timings", {{"save_ms", milliseconds_since(start)}}}};
    }
    const scheduler::SavedSlot saved = service.scheduler().restore_slot(slot, path);
    return {{"id_slot", slot},
            {"filename", name},
            {"n_restored", saved.tokens},
            {"n_read", saved.bytes},
            {"timings", {{"restore_ms", milliseconds_since(start)}}}};
}

}  // namespace

void add_state(Router& router, Service& service) {
    router.add("GET", "/props", [&service](const HttpRequest&, const std::string&) {
        return HttpResponse{.body = dump(props(service))};
    });
    router.add("GET", "/slots", [&service](const HttpRequest&, const std::string&) {
        return HttpResponse{.body = dump(slots(service))};
    });
    router.add("POST", "/slots/{id}", [&service](const HttpRequest& request, const std::string& id) {
        return HttpResponse{.body = dump(change_slot(request, read_slot(id), service))};
    });
}

}  // namespace coterie::server
