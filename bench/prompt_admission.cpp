// Whether a prompt's experts should stay in slots: hits of the tokens that are generated behind a prompt, by
// what the cache took over from the prompt. Reads a routing trace (coterie run --trace).
// docs/expert_cache_simulated.md explains the numbers. Usage: prompt_admission TRACE

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "expert_cache/policy/registry.h"
#include "expert_cache/trace/trace_reader.h"

namespace coterie::expert_cache {
namespace {

constexpr std::int64_t kDecodeTokens = 32;  ///< larger steps are prompts
constexpr std::int64_t kEarly = 32;         ///< the tokens after a prompt that gain first

enum class Prompts {
    Ignored,  ///< move nothing
    Counted,  ///< the policy hears of their uses
    Kept,     ///< and what streamed and is admitted stays, at no cost
};

/// One layer's residents. Copies land at once.
class Layer {
  public:
    Layer(std::int32_t experts, std::int32_t slots)
        : policy_(make_policy(kDefaultPolicy, {.experts = experts, .slots = slots})),
          resident_(static_cast<std::size_t>(experts)),
          slots_(slots) {}

    bool use(std::int32_t expert, std::int64_t token) {
        const bool hit = resident_[static_cast<std::size_t>(expert)];
        policy_->used(expert, token, hit);
        return hit;
    }
    /// Whether the expert takes a slot.
    bool admit(std::int32_t expert, std::int64_t token) {
        if (resident_[static_cast<std::size_t>(expert)] || !policy_->admits(expert, token)) return false;
        if (static_cast<std::int32_t>(residents_.size()) >= slots_) {
            const std::int32_t victim = policy_->victim(residents_, expert, token);
            if (victim < 0) return false;
            residents_.erase(std::find(residents_.begin(), residents_.end(), victim));
            resident_[static_cast<std::size_t>(victim)] = false;
            policy_->removed(victim, token);
        }
        residents_.push_back(expert);
        resident_[static_cast<std::size_t>(expert)] = true;
        policy_->inserted(expert, token);
        return true;
    }

  private:
    std::unique_ptr<Policy> policy_;
    std::vector<bool> resident_;
    std::vector<std::int32_t> residents_;
    std::int32_t slots_;
};

struct Outcome {
    std::array<std::int64_t, 2> uses{};  ///< of all generated tokens, of the early ones
    std::array<std::int64_t, 2> hits{};
    std::int64_t uploads = 0;
    std::int64_t kept = 0;
    std::int64_t prompts = 0;

    double hit_rate(std::size_t which) const {
        return 100.0 * static_cast<double>(hits[which]) /
               static_cast<double>(std::max<std::int64_t>(uses[which], 1));
    }
};

class Replay {
  public:
    Replay(const TraceReader& trace, std::int32_t slots, Prompts prompts) : trace_(trace), prompts_(prompts) {
        for (std::size_t l = 0; l < trace.header().layers.size(); ++l)
            layers_.emplace_back(trace.header().experts, slots);
        experts_.resize(layers_.size() * static_cast<std::size_t>(trace.header().used));
    }

    Outcome run() {
        for (std::int64_t token = 0; token < trace_.tokens();) {
            std::int64_t end = token + 1;
            while (end < trace_.tokens() && trace_.step(end) == trace_.step(token)) ++end;
            end - token > kDecodeTokens ? read_prompt(token, end) : decode(token, end);
            token = end;
        }
        return outcome_;
    }

  private:
    template <typename Visit>
    void visit(std::int64_t token, Visit visit) {
        trace_.read(token, experts_);
        const auto used = static_cast<std::size_t>(trace_.header().used);
        for (std::size_t i = 0; i < experts_.size(); ++i) {
            if (experts_[i] >= 0) visit(layers_[i / used], experts_[i]);
        }
    }

    void decode(std::int64_t begin, std::int64_t end) {
        for (std::int64_t token = begin; token < end; ++token) {
            const bool early = since_prompt_++ < kEarly;
            visit(token, [&](Layer& layer, std::int32_t expert) {
                const bool hit = layer.use(expert, token);
                for (std::size_t which = 0; which < (early ? 2 : 1); ++which) {
                    ++outcome_.uses[which];
                    outcome_.hits[which] += hit ? 1 : 0;
                }
            });
            visit(token, [&](Layer& layer, std::int32_t expert) {
                outcome_.uploads += layer.admit(expert, token) ? 1 : 0;
            });
        }
    }

    void read_prompt(std::int64_t begin, std::int64_t end) {
        ++outcome_.prompts;
        since_prompt_ = 0;
        if (prompts_ == Prompts::Ignored) return;
        for (std::int64_t token = begin; token < end; ++token) {
            visit(token, [&](Layer& layer, std::int32_t expert) { layer.use(expert, token); });
        }
        if (prompts_ != Prompts::Kept) return;
        for (std::int64_t token = begin; token < end; ++token) {
            visit(token, [&](Layer& layer, std::int32_t expert) {
                outcome_.kept += layer.admit(expert, end - 1) ? 1 : 0;
            });
        }
    }

    const TraceReader& trace_;
    const Prompts prompts_;
    std::vector<Layer> layers_;
    std::vector<std::int32_t> experts_;
    std::int64_t since_prompt_ = kEarly;
    Outcome outcome_;
};

void run(const char* path) {
    std::vector<std::byte> bytes(std::filesystem::file_size(path));
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const TraceReader trace(bytes, path);
    std::printf("slots  prompts    all hits  first %d  uploads/token  kept/prompt\n",
                static_cast<int>(kEarly));
    for (const int percent : {10, 25, 50}) {
        const std::int32_t slots = std::max(1, trace.header().experts * percent / 100);
        for (const Prompts prompts : {Prompts::Ignored, Prompts::Counted, Prompts::Kept}) {
            const char* name = prompts == Prompts::Ignored   ? "ignored"
                               : prompts == Prompts::Counted ? "counted"
                                                             : "kept";
            const Outcome outcome = Replay(trace, slots, prompts).run();
            const double per_token =
                static_cast<double>(trace.header().used) * static_cast<double>(trace.header().layers.size());
            const double tokens = static_cast<double>(outcome.uses[0]) / per_token;
            std::printf("%3d %%  %-8s  %7.1f %%  %6.1f %%  %13.2f  %11.1f\n", percent, name,
                        outcome.hit_rate(0), outcome.hit_rate(1),
                        static_cast<double>(outcome.uploads) / tokens,
                        static_cast<double>(outcome.kept) /
                            static_cast<double>(std::max<std::int64_t>(outcome.prompts, 1)));
        }
    }
}

}  // namespace
}  // namespace coterie::expert_cache

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: prompt_admission TRACE\n");
        return 2;
    }
    try {
        coterie::expert_cache::run(argv[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "prompt_admission: %s\n", error.what());
        return 1;
    }
}
