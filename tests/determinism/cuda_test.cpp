#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/split_mix.h"
#include "devices/device.h"
#include "engine/engine.h"
#include "engine/forward/device_forward.h"
#include "test_models.h"

// A GPU's steps give the CPU's logits, bit for bit: at any residency, with any cut of the tokens, alone or
// beside other sequences. Whole cells of a prompt come close to them, and depend on nothing but the prompt.
// Needs a GPU; scripts/gpu_tests.sh runs it.

namespace coterie::engine {
namespace {

constexpr std::int64_t kTokens = 300;

/// Steps up to here hold no whole cell of a prompt, and so are the law's to the last bit.
constexpr std::size_t kBelowCell = 63;

/// Every model of the golden set that GPUs run, and the demo model.
std::vector<TestModel> gpu_models() {
    std::vector<TestModel> models{test_models().front()};
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(COTERIE_SOURCE_DIR "/tests/golden/models")) {
        if (entry.path().extension() == ".gguf") paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    using cpu::CacheType;
    const models::CacheFormat formats[] = {{CacheType::F16, CacheType::F16},
                                           {CacheType::Q8_0, CacheType::Q8_0},
                                           {CacheType::F32, CacheType::F16}};
    for (const std::string& path : paths) {
        std::string name = std::filesystem::path(path).stem().string();
        std::replace_if(
            name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; },
            '_');
        const bool latent = name.find("deepseek2") != std::string::npos;  // rows of no whole number of blocks
        models.push_back({name, path, formats[latent ? 2 : models.size() % std::size(formats)]});
    }
    return models;
}

EngineOptions options_of(const TestModel& model) {
    EngineOptions options;
    options.cache = model.cache;
    options.context = 2048;
    options.batch = 128;
    options.threads = 4;
    return options;
}

class CudaTest : public testing::TestWithParam<TestModel> {
  protected:
    void SetUp() override {
        archive_ = std::make_shared<gguf::Archive>(gguf::Archive::open(GetParam().path));
        Engine cpu(archive_, options_of(GetParam()));
        if (const std::string part = unsupported_on_device(cpu.model()); !part.empty()) {
            GTEST_SKIP() << part << " run on the CPU only so far";
        }
        for (std::int64_t i = 0; i < kTokens; ++i) {
            tokens_.push_back(
                static_cast<TokenId>(random_.next() % static_cast<std::uint64_t>(cpu.config().vocabulary)));
        }
        experts_ = cpu.config().experts;
        layers_ = cpu.config().layers;
        for (const models::Layer& layer : cpu.model().layers)
            has_experts_.push_back(std::holds_alternative<models::MoeFfn>(layer.ffn));
        Sequence sequence = cpu.make_sequence();
        for (std::size_t done = 0; done < tokens_.size(); done += 100) {
            const Rows rows = append(cpu, sequence, std::span(tokens_).subspan(done, 100));
            expected_.insert(expected_.end(), rows.begin(), rows.end());
        }
    }

    /// Who computes what is missing: the CPU, or half of a token's the GPU, which reads them over the link.
    enum class Misses { Cpu, Shared };

    /// Who runs the layers: one GPU, or two of them each its half; where there is only one, it is both.
    enum class Gpus { One, Two };
    static std::vector<int> numbers(Gpus gpus) {
        if (gpus == Gpus::One) return {0};
        return {0, list_devices().devices.size() > 1 ? 1 : 0};
    }

    std::unique_ptr<Engine> gpu_engine(std::int64_t resident_percent, expert_cache::Learning learning,
                                       Misses misses = Misses::Cpu, Gpus gpus = Gpus::One) {
        EngineOptions options = options_of(GetParam());
        if (misses == Misses::Shared) {
            options.offload.pins_host_memory = true;
            options.offload.miss_costs = MissCosts{.link = 1, .cpu = 1.5, .hand_off = 0};
        }
        options.offload.gpus = numbers(gpus);
        options.offload.gpu_split.assign(options.offload.gpus.size(), 1);
        options.offload.learning = learning;
        options.window = 128;
        std::vector<std::int32_t> slots;
        for (const bool has : has_experts_)
            slots.push_back(has ? static_cast<std::int32_t>(experts_ * resident_percent / 100) : 0);
        options.offload.cache.slots = {slots};
        return std::make_unique<Engine>(misses == Misses::Shared ? in_memory() : archive_, options);
    }

    /// The files in memory that may be pinned.
    std::shared_ptr<const gguf::Archive> in_memory() const {
        auto archive = std::make_shared<gguf::Archive>(gguf::Archive::open(GetParam().path));
        archive->take_into_memory(gguf::Reading::Direct, [](std::uint64_t) {});
        return archive;
    }

    void expect_rows(const Rows& rows, std::size_t first, const std::string& where) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const std::vector<float>& expected = expected_[first + i];
            ASSERT_EQ(rows[i].size(), expected.size());
            for (std::size_t v = 0; v < expected.size(); ++v) {
                ASSERT_EQ(std::bit_cast<std::uint32_t>(rows[i][v]), std::bit_cast<std::uint32_t>(expected[v]))
                    << where << ", position " << first + i << ", logit " << v << ": " << rows[i][v]
                    << " instead of " << expected[v] << " (seed " << seed() << ")";
            }
        }
    }

    std::shared_ptr<const gguf::Archive> archive_;
    SplitMix64 random_{seed()};
    std::vector<TokenId> tokens_;
    std::int64_t experts_ = 0;
    std::int64_t layers_ = 0;
    std::vector<bool> has_experts_;
    Rows expected_;
};

TEST_P(CudaTest, GivesTheCpusLogitsAtAnyResidencyAndCut) {
    struct Case {
        std::int64_t percent;
        Misses misses;
        Gpus gpus;
    };
    for (const auto [percent, misses, gpus] :
         {Case{100, Misses::Cpu, Gpus::One}, Case{50, Misses::Cpu, Gpus::One},
          Case{25, Misses::Shared, Gpus::One}, Case{0, Misses::Cpu, Gpus::One},
          Case{0, Misses::Shared, Gpus::One}, Case{100, Misses::Cpu, Gpus::Two},
          Case{50, Misses::Shared, Gpus::Two}}) {
        if (experts_ == 0 && percent != 100) continue;
        if (layers_ < 2 && gpus == Gpus::Two) continue;
        const auto engine = gpu_engine(percent, expert_cache::Learning::On, misses, gpus);
        Sequence sequence = engine->make_sequence();
        std::size_t done = 0;
        while (done < tokens_.size()) {
            const std::size_t sizes[] = {1, 1, 2, 3, 5, 8, 13, 33, kBelowCell};
            const std::size_t count =
                std::min(sizes[random_.next() % std::size(sizes)], tokens_.size() - done);
            const Rows rows = append(*engine, sequence, std::span(tokens_).subspan(done, count));
            ASSERT_NO_FATAL_FAILURE(expect_rows(rows, done,
                                                fmt::format("{} % resident, {} GPUs, step of {}", percent,
                                                            engine->device()->devices(), count)));
            done += count;
        }
    }
}

TEST_P(CudaTest, TheFirstLayersExpertsMayStayOnTheHost) {
    if (experts_ == 0) GTEST_SKIP() << "no experts";
    EngineOptions options = options_of(GetParam());
    options.offload.gpus = {0};
    options.window = 128;
    options.offload.cache.first_layer = static_cast<std::int32_t>(has_experts_.size()) - 1;
    Engine engine(archive_, options);
    Sequence sequence = engine.make_sequence();
    const std::size_t count = std::min<std::size_t>(20, tokens_.size());
    for (std::size_t i = 0; i < count; ++i) {
        const Rows rows = append(engine, sequence, std::span(tokens_).subspan(i, 1));
        ASSERT_NO_FATAL_FAILURE(expect_rows(rows, i, "one layer's experts on the device"));
    }
    for (std::int32_t layer = 0; layer < options.offload.cache.first_layer; ++layer)
        EXPECT_EQ(engine.device()->cache()->slots(0, layer), 0) << layer;
    EXPECT_GT(engine.device()->cache()->slots(0, options.offload.cache.first_layer), 0);
}

TEST_P(CudaTest, SequencesDoNotDisturbEachOther) {
    const auto engine = gpu_engine(60, expert_cache::Learning::On);
    std::vector<Sequence> sequences;
    for (int i = 0; i < 3; ++i) sequences.push_back(engine->make_sequence());
    std::size_t done[3] = {};
    append(*engine, sequences[0], std::span(tokens_).first(kBelowCell));
    done[0] = kBelowCell;
    for (int round = 0; round < 20; ++round) {
        std::vector<Slice> slices;
        std::vector<std::size_t> positions;
        for (std::size_t s = 0; s < 3; ++s) {
            const std::size_t count = 1 + random_.next() % 4;
            slices.push_back({&sequences[s], std::span(tokens_).subspan(done[s], count), Slice::Logits::All});
            for (std::size_t i = 0; i < count; ++i) positions.push_back(done[s] + i);
            done[s] += count;
        }
        Rows rows;
        engine->step(slices, [&](std::int64_t, std::span<const float> row) {
            rows.emplace_back(row.begin(), row.end());
        });
        for (std::size_t i = 0; i < rows.size(); ++i)
            ASSERT_NO_FATAL_FAILURE(expect_rows({rows[i]}, positions[i], fmt::format("round {}", round)));
    }
}

TEST_P(CudaTest, ForksAndTruncationsKeepTheCache) {
    const auto engine = gpu_engine(100, expert_cache::Learning::Off);
    Sequence sequence = engine->make_sequence();
    append(*engine, sequence, std::span(tokens_).first(45));
    append(*engine, sequence, std::span(tokens_).subspan(45, 45));
    Sequence fork = sequence.fork();
    append(*engine, sequence, std::span(tokens_).subspan(150, 20));
    ASSERT_NO_FATAL_FAILURE(
        expect_rows(append(*engine, fork, std::span(tokens_).subspan(90, 10)), 90, "fork"));
    ASSERT_EQ(sequence.truncate(85), 85);
    ASSERT_NO_FATAL_FAILURE(
        expect_rows(append(*engine, sequence, std::span(tokens_).subspan(85, 40)), 85, "truncated"));
}

TEST_P(CudaTest, CellsOfAPromptDependOnThePromptAlone) {
    const auto whole = gpu_engine(100, expert_cache::Learning::Off);
    Sequence sequence = whole->make_sequence();
    Rows rows = append(*whole, sequence, std::span(tokens_).first(128));
    for (Rows& more : std::vector<Rows>{append(*whole, sequence, std::span(tokens_).subspan(128, 128)),
                                        append(*whole, sequence, std::span(tokens_).subspan(256))})
        std::move(more.begin(), more.end(), std::back_inserter(rows));

    double error = 0;
    double power = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t v = 0; v < rows[i].size(); ++v) {
            error += (rows[i][v] - expected_[i][v]) * (rows[i][v] - expected_[i][v]);
            power += expected_[i][v] * expected_[i][v];
        }
    }
    RecordProperty("normalised_error", fmt::format("{:.2e}", error / power));
    EXPECT_LT(error, 1e-2 * power);

    const auto cut = gpu_engine(25, expert_cache::Learning::On, Misses::Shared);
    Sequence company = cut->make_sequence();
    Sequence again = cut->make_sequence();
    for (std::size_t done = 0; done < tokens_.size();) {
        const std::size_t part = std::min<std::size_t>(tokens_.size() - done, 64);
        const Slice slices[] = {{&company, std::span(tokens_).subspan(done, 3), Slice::Logits::None},
                                {&again, std::span(tokens_).subspan(done, part), Slice::Logits::All}};
        std::size_t row = done;
        cut->step(slices, [&](std::int64_t, std::span<const float> logits) {
            ASSERT_EQ(std::memcmp(logits.data(), rows[row].data(), logits.size_bytes()), 0)
                << "position " << row << " (seed " << seed() << ")";
            ++row;
        });
        done += part;
    }
}

TEST_P(CudaTest, AStepInPartsOnSeveralGpusGivesTheRowsOfOne) {
    if (layers_ < 2) return;
    const auto one = gpu_engine(100, expert_cache::Learning::Off);
    Sequence sequence = one->make_sequence();
    Rows expected;
    for (std::size_t done = 0; done < tokens_.size(); done += 128) {
        const Rows rows =
            append(*one, sequence,
                   std::span(tokens_).subspan(done).first(std::min<std::size_t>(128, tokens_.size() - done)));
        expected.insert(expected.end(), rows.begin(), rows.end());
    }
    for (const std::int64_t percent : {100, 95, 50}) {
        const auto two = gpu_engine(percent, expert_cache::Learning::On, Misses::Cpu, Gpus::Two);
        ASSERT_GE(two->longest_step(), kTokens);
        Sequence again = two->make_sequence();
        const Rows rows = append(*two, again, tokens_);
        ASSERT_EQ(rows.size(), expected.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            ASSERT_EQ(std::memcmp(rows[i].data(), expected[i].data(), rows[i].size() * sizeof(float)), 0)
                << percent << " % resident, position " << i << " (seed " << seed() << ")";
        }
        // The one model whose slots can lend two layers' worth: each part streams its missing experts anew.
        if (percent == 95 && GetParam().name == "demo") {
            EXPECT_GT(two->device()->statistics().all.streamed_bytes, 0u);
        }
    }
}

/// Writes down who was told what, in order.
class RoutingLog final : public StepObserver {
  public:
    struct Entry {
        int layer;
        std::int64_t row;
        std::vector<std::int32_t> experts;
        bool operator==(const Entry&) const = default;
    };
    std::vector<Entry> entries;
    bool wants_whole_steps() const override { return true; }
    void routed(int layer, std::int64_t row, std::span<const std::int32_t> experts,
                std::span<const float>) override {
        entries.push_back({layer, row, {experts.begin(), experts.end()}});
    }
    void layer_done(int layer, const float*, std::int64_t, std::int64_t) override {
        entries.push_back({layer, -1, {}});
    }
};

TEST_P(CudaTest, WhoLooksOnSeesTheSameOnSeveralGpus) {
    if (layers_ < 2) return;
    std::vector<TokenId> tokens;  // more than two GPUs would leave in one part
    for (std::size_t i = 0; i < 700; ++i) tokens.push_back(tokens_[i % tokens_.size()]);
    const auto routing_of = [&](Gpus gpus) {
        EngineOptions options = options_of(GetParam());
        options.offload.gpus = numbers(gpus);
        options.offload.gpu_split.assign(options.offload.gpus.size(), 1);
        options.offload.slots_per_layer = static_cast<std::int32_t>(experts_);
        options.window = 1024;
        Engine engine(archive_, options);
        Sequence sequence = engine.make_sequence();
        RoutingLog log;
        engine.extend(sequence, tokens, &log, [](std::int64_t, std::int64_t, std::int64_t) {});
        return log.entries;
    };
    const auto seen = routing_of(Gpus::One);
    EXPECT_GE(seen.size(), static_cast<std::size_t>(layers_));
    EXPECT_EQ(routing_of(Gpus::Two), seen);
}

TEST_P(CudaTest, ASequenceIsSavedFromSeveralGpusAndRestored) {
    if (layers_ < 2) return;
    const auto two = gpu_engine(100, expert_cache::Learning::Off, Misses::Cpu, Gpus::Two);
    Sequence sequence = two->make_sequence();
    append(*two, sequence, std::span(tokens_).first(40));
    append(*two, sequence, std::span(tokens_).subspan(40, 60));
    MemorySink sink;
    two->save(sequence, sink);
    MemorySource source(sink.bytes());
    std::optional<Sequence> restored = two->restore(source);
    ASSERT_TRUE(restored);
    ASSERT_NO_FATAL_FAILURE(
        expect_rows(append(*two, *restored, std::span(tokens_).subspan(100, 20)), 100, "restored"));
    Sequence fork = sequence.fork();
    ASSERT_NO_FATAL_FAILURE(
        expect_rows(append(*two, fork, std::span(tokens_).subspan(100, 20)), 100, "fork"));
}

INSTANTIATE_TEST_SUITE_P(Models, CudaTest, testing::ValuesIn(gpu_models()),
                         [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace coterie::engine
