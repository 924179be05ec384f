#include <algorithm>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sstream>

#include "scheduler/cache_view.h"
#include "server/api/endpoints.h"
#include "server/json/api_error.h"

namespace coterie::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

/// Families that are filled when somebody asks: what counts is counted by its owners.
class Families {
  public:
    void counter(const char* name, const char* help, double value,
                 std::vector<ClientMetric::Label> labels = {}) {
        ClientMetric& metric = family(name, help, MetricType::Counter).metric.emplace_back();
        metric.counter.value = value;
        metric.label = std::move(labels);
    }
    void gauge(const char* name, const char* help, double value,
               std::vector<ClientMetric::Label> labels = {}) {
        ClientMetric& metric = family(name, help, MetricType::Gauge).metric.emplace_back();
        metric.gauge.value = value;
        metric.label = std::move(labels);
    }
    const std::vector<MetricFamily>& all() const { return families_; }

  private:
    MetricFamily& family(const char* name, const char* help, MetricType type) {
        for (MetricFamily& known : families_) {
            if (known.name == name) return known;
        }
        return families_.emplace_back(MetricFamily{name, help, type, {}});
    }

    std::vector<MetricFamily> families_;
};

template <typename Number>
double real(const std::atomic<Number>& number) {
    return static_cast<double>(number.load(std::memory_order_relaxed));
}
double real(std::uint64_t number) { return static_cast<double>(number); }

void add_work(Families& families, const scheduler::Scheduler& scheduler) {
    const scheduler::Counters& c = scheduler.counters();
    families.counter("coterie_prompt_tokens_total", "Tokens of prompts that were computed",
                     real(c.prompt_tokens));
    families.counter("coterie_cached_prompt_tokens_total", "Tokens of prompts taken from the prefix cache",
                     real(c.cached_tokens));
    families.counter("coterie_generated_tokens_total", "Tokens drawn", real(c.generated_tokens));
    families.counter("coterie_draft_tokens_total", "Drafted tokens that were computed",
                     real(c.drafted_tokens));
    families.counter("coterie_draft_accepted_tokens_total", "Drafted tokens that came true",
                     real(c.accepted_tokens));
    families.counter("coterie_steps_total", "Steps computed", real(c.steps));
    families.counter("coterie_prompt_seconds_total", "Time of steps with tokens of prompts",
                     real(c.prompt_step_us) * 1e-6);
    families.counter("coterie_answer_seconds_total", "Time of steps with answers alone",
                     real(c.answer_step_us) * 1e-6);
    families.counter("coterie_draw_seconds_total",
                     "Time of steps spent on drawing tokens and telling readers", real(c.draw_us) * 1e-6);
    const char* const requests = "coterie_requests_total";
    const char* const help = "Requests by how they ended";
    families.counter(requests, help, real(c.finished), {{"end", "answered"}});
    families.counter(requests, help, real(c.failed), {{"end", "failed"}});
    families.counter(requests, help, real(c.cancelled), {{"end", "cancelled"}});
    families.counter(requests, help, real(c.timed_out), {{"end", "time_limit"}});
    families.counter(requests, help, real(c.refused), {{"end", "refused"}});
    families.counter("coterie_suspended_total", "Answers that gave their pages to older ones for a while",
                     real(c.suspended));
    families.gauge("coterie_requests_waiting", "Requests in the queue", real(c.waiting));
    families.gauge("coterie_requests_running", "Requests in slots", real(c.running));
}

void add_memory(Families& families, const scheduler::Scheduler& scheduler) {
    const scheduler::Counters& c = scheduler.counters();
    families.gauge("coterie_kv_pages_used", "Pages of the KV cache that are held", real(c.pages_used));
    families.gauge("coterie_kv_pages", "Pages of the KV cache",
                   static_cast<double>(scheduler.engine().pages()));
    families.gauge("coterie_kept_sequences", "Sequences in the prefix cache", real(c.kept_sequences));
    families.counter("coterie_evicted_sequences_total", "Sequences that left the prefix cache for others",
                     real(c.evicted_sequences));
}

void add_devices(Families& families, const scheduler::CacheView& view) {
    families.counter("coterie_expert_hits_total", "Uses of experts that a device held", real(view.hits));
    families.counter("coterie_expert_misses_total", "Uses of experts that none held", real(view.misses));
    for (std::size_t i = 0; i < view.devices.size(); ++i) {
        const scheduler::DeviceView& device = view.devices[i];
        const std::vector<ClientMetric::Label> label = {{"device", std::to_string(i)}};
        families.counter("coterie_device_hits_total", "Uses of experts in a device's slots",
                         real(device.hits), label);
        families.counter("coterie_device_uploads_total", "Experts uploaded ahead", real(device.uploads),
                         label);
        families.counter("coterie_device_fetches_total", "Experts fetched when needed", real(device.fetches),
                         label);
        families.counter("coterie_device_moved_bytes_total", "Bytes moved over the link",
                         real(device.moved_bytes), label);
        families.counter("coterie_device_evictions_total", "Experts replaced", real(device.evictions), label);
        families.counter("coterie_device_failures_total", "Copies that did not arrive", real(device.failures),
                         label);
        families.counter("coterie_device_waited_seconds_total", "Time spent waiting for slots",
                         device.waited_seconds, label);
        families.gauge("coterie_device_resident_experts", "Experts in slots", real(device.resident), label);
        families.gauge("coterie_device_slot_bytes", "Memory of slots", real(device.slot_bytes), label);
        families.gauge("coterie_device_lost", "1 once the device does not answer", device.lost ? 1.0 : 0.0,
                       label);
    }
}

void add_hand_offs(Families& families, const scheduler::DeviceReport::HandOffs& did,
                   const std::string& device) {
    families.counter("coterie_device_handoffs_total", "Layers whose missing experts went to the CPU",
                     real(did.layers), {{"device", device}});
    const auto part = [&](const char* name, double seconds) {
        families.counter("coterie_device_handoff_seconds_total",
                         "Time of a device for handing layers to the CPU", seconds,
                         {{"device", device}, {"part", name}});
    };
    part("posting", did.posting_seconds);
    part("waiting", did.waiting_seconds);
    part("reading", did.reading_seconds);
}

/// What is not measured is left out.
void add_links(Families& families, scheduler::Scheduler& scheduler, const scheduler::CacheView& view) {
    if (view.devices.empty()) return;
    const scheduler::Counters& c = scheduler.counters();
    const double seconds = (real(c.prompt_step_us) + real(c.answer_step_us)) * 1e-6;
    const scheduler::DeviceReport report = scheduler.device_report();
    for (std::size_t i = 0; i < std::min(report.devices.size(), view.devices.size()); ++i) {
        const scheduler::DeviceReport::Device& device = report.devices[i];
        const std::string name = std::to_string(i);
        families.counter("coterie_device_streamed_bytes_total",
                         "Bytes of prompts' experts moved and not kept", real(device.streamed_bytes),
                         {{"device", name}});
        if (device.hand_offs) add_hand_offs(families, *device.hand_offs, name);
        if (!device.link_bytes_per_second) continue;
        families.gauge("coterie_device_link_bytes_per_second", "Rate of the link from RAM",
                       *device.link_bytes_per_second, {{"device", name}});
        const double could = *device.link_bytes_per_second * seconds;
        const double moved = real(view.devices[i].moved_bytes) + real(device.streamed_bytes);
        families.gauge("coterie_device_link_share",
                       "Bytes moved of those that the link could have moved during steps",
                       could > 0.0 ? moved / could : 0.0, {{"device", name}});
    }
}

std::string metrics(scheduler::Scheduler& scheduler) {
    Families families;
    add_work(families, scheduler);
    add_memory(families, scheduler);
    const scheduler::CacheView view = scheduler::read_cache(scheduler);
    add_devices(families, view);
    add_links(families, scheduler, view);
    std::ostringstream text;
    prometheus::TextSerializer().Serialize(text, families.all());
    return text.str();
}

}  // namespace

void add_metrics(Router& router, Service& service) {
    router.add("GET", "/metrics", [&service](const HttpRequest&, const std::string&) {
        if (!service.options().metrics)
            throw ApiError(501, "metrics are off; start the server with --metrics");
        return HttpResponse{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                            .body = metrics(service.scheduler())};
    });
}

}  // namespace coterie::server
