#include "engine/probe/machine_profile.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <sched.h>
#include <thread>
#include <time.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "engine/probe/crowd_watch.h"
#include "engine/probe/machine_profile_file.h"
#include "engine/probe/probe.h"

namespace coterie::engine {
namespace {

MachineProfile some_profile() {
    MachineProfile profile;
    profile.machine = {.program = "1.2.3",
                       .processor = "A \"fast\" one",
                       .instruction_set = "avx2",
                       .threads = 6,
                       .ram_bytes = std::uint64_t{3} << 40,
                       .gpus = {"00ff", "11ee"}};
    profile.measured_at = "2026-01-31T12:00:00Z";
    profile.ram_reads = {{1, 9.5e9}, {2, 19.25e9}, {6, 40e9}};
    profile.integer_peak = 2e12;
    profile.experts = {{"Q4_K, Q4_K, Q6_K 768 x 2048", 2'800'000, 4'718'592, {80e-6, 90e-6, 100e-6, 140e-6}}};
    GpuTimes gpu;
    gpu.index = 1;
    gpu.name = "a card";
    gpu.to_device = 24e9;
    gpu.from_device = 23e9;
    gpu.both_ways = 40e9;
    gpu.contended_to_device = 20e9;
    gpu.contended_ram_read = 30e9;
    gpu.pageable_to_device = 6e9;
    gpu.pageable_from_device = 5e9;
    gpu.own_memory = 900e9;
    gpu.hand_off_seconds = 5.5e-6;
    gpu.linked_expert_seconds = {0};
    profile.gpus = {gpu};
    return profile;
}

std::string why_ignored(const MachineProfile& profile) {
    const auto load = parse_machine_profile(profile_to_json(profile), "file", some_profile().machine);
    EXPECT_NE(load.profile.has_value(), !load.ignored.empty());
    return load.ignored;
}

class Folder {
  public:
    Folder() { mkdtemp(path_.data()); }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string file(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_ = std::filesystem::temp_directory_path() / "coterie-machine-XXXXXX";
};

TEST(MachineProfileFile, ReadsWhatItWrote) {
    const Folder folder;
    const MachineProfile profile = some_profile();
    const std::string path = folder.file("not/there/yet.json");
    save_machine_profile(profile, path);
    const MachineProfileLoad load = load_machine_profile(path, profile.machine);
    EXPECT_EQ(load.ignored, "");
    ASSERT_TRUE(load.profile.has_value());
    EXPECT_EQ(*load.profile, profile);
}

TEST(MachineProfileFile, NoFileIsNoFault) {
    const MachineProfileLoad load = load_machine_profile("/nowhere/at/all.json", some_profile().machine);
    EXPECT_FALSE(load.profile.has_value());
    EXPECT_EQ(load.ignored, "");
}

TEST(MachineProfileFile, EveryCutIsDamage) {
    const std::string text = profile_to_json(some_profile());
    for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
        const auto load = parse_machine_profile(text.substr(0, bytes), "that file", some_profile().machine);
        ASSERT_FALSE(load.profile.has_value()) << bytes;
        ASSERT_EQ(load.ignored, "the machine's profile that file is damaged; it is ignored");
    }
}

TEST(MachineProfileFile, JsonOfSomethingElseIsDamage) {
    for (const char* text : {"{}", "[]", "null", "3", R"({"machine": 1})", "\xff"}) {
        EXPECT_NE(parse_machine_profile(text, "file", some_profile().machine).ignored, "") << text;
    }
}

TEST(MachineProfileFile, WhatIsNoProfileIsNotRead) {
    const Folder folder;
    EXPECT_NE(load_machine_profile(folder.file(""), some_profile().machine).ignored.find("regular file"),
              std::string::npos);
    const std::string path = folder.file("long");
    std::ofstream(path) << std::string((1 << 20) + 1, ' ');
    EXPECT_NE(load_machine_profile(path, some_profile().machine).ignored.find("longer"), std::string::npos);
}

TEST(MachineProfileFile, AnotherMachineHasAnotherNameAndIsIgnored) {
    using Change = void (*)(MachineIdentity&);
    const MachineIdentity machine = some_profile().machine;
    const std::vector<Change> changes{[](MachineIdentity& m) { m.program = "1.2.4"; },
                                      [](MachineIdentity& m) { m.processor = "slow"; },
                                      [](MachineIdentity& m) { m.threads = 5; },
                                      [](MachineIdentity& m) { m.instruction_set = "scalar"; },
                                      [](MachineIdentity& m) { m.ram_bytes += 1; },
                                      [](MachineIdentity& m) { m.gpus.pop_back(); },
                                      [](MachineIdentity& m) { std::swap(m.gpus[0], m.gpus[1]); }};
    EXPECT_EQ(machine_profile_name(machine), machine_profile_name(some_profile().machine));
    for (const Change change : changes) {
        MachineProfile other = some_profile();
        change(other.machine);
        EXPECT_NE(machine_profile_name(other.machine), machine_profile_name(machine));
        EXPECT_NE(why_ignored(other).find("another machine"), std::string::npos);
    }
}

TEST(MachineProfileFile, NumbersThatCannotBeAreIgnored) {
    using Change = void (*)(MachineProfile&);
    const std::vector<Change> changes{[](MachineProfile& p) { p.ram_reads.clear(); },
                                      [](MachineProfile& p) { p.ram_reads[1].bytes_per_second = 0; },
                                      [](MachineProfile& p) { p.ram_reads[0].threads = -1; },
                                      [](MachineProfile& p) { p.integer_peak = -1; },
                                      [](MachineProfile& p) { p.experts[0].seconds[3] = 0; },
                                      [](MachineProfile& p) { p.experts[0].bytes = 0; },
                                      [](MachineProfile& p) { p.gpus[0].contended_to_device = 0; },
                                      [](MachineProfile& p) { p.gpus[0].own_memory = -1; },
                                      [](MachineProfile& p) { p.gpus[0].hand_off_seconds = -5e-6; },
                                      [](MachineProfile& p) { p.gpus[0].linked_expert_seconds = {-1}; },
                                      [](MachineProfile& p) { p.gpus[0].linked_expert_seconds.clear(); },
                                      [](MachineProfile& p) { p.gpus.resize(3, p.gpus[0]); }};
    EXPECT_EQ(why_ignored(some_profile()), "");
    for (std::size_t i = 0; i < changes.size(); ++i) {
        MachineProfile profile = some_profile();
        changes[i](profile);
        EXPECT_NE(why_ignored(profile).find("no machine has"), std::string::npos) << "change " << i;
    }
    MachineProfile infinite = some_profile();  // JSON has no such number
    infinite.ram_reads[0].bytes_per_second = std::numeric_limits<double>::infinity();
    EXPECT_NE(why_ignored(infinite).find("damaged"), std::string::npos);
}

TEST(MachineProfileFile, AFolderThatCannotBeIsNamed) {
    try {
        save_machine_profile(some_profile(), "/proc/nowhere/machine.json");
        FAIL() << "not refused";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Io);
        EXPECT_NE(std::string(error.what()).find("/proc/nowhere"), std::string::npos);
    }
}

TEST(MachineProfile, RatesAreThoseOfAllThreadsAndOfRamWithALink) {
    MachineProfile profile = some_profile();
    EXPECT_EQ(profile.ram_read_rate(), 40e9);
    EXPECT_EQ(profile.ram_rate(), 50e9);
    profile.gpus.clear();
    EXPECT_EQ(profile.ram_rate(), 40e9);
    EXPECT_EQ(profile.find("another kind"), nullptr);
    EXPECT_EQ(some_profile().find_gpu(0), nullptr);
}

TEST(MachineProfile, ATokenCostsTheSlopeOfManyAndAnExpertWhatReadingDoesNotExplain) {
    const MachineProfile profile = some_profile();  // read in 70 us; at the peak a token takes 4.7 us
    const auto costs = compute_costs(profile.experts[0], profile);
    EXPECT_DOUBLE_EQ(costs.row_seconds, 10e-6);
    EXPECT_NEAR(costs.expert_seconds, 10e-6, 1e-12);
}

TEST(MachineProfile, ATokenIsNeverCheaperThanThePeak) {
    MachineProfile profile = some_profile();
    profile.experts[0].seconds = {50e-6, 50e-6, 50e-6, 40e-6};
    const auto costs = compute_costs(profile.experts[0], profile);
    EXPECT_DOUBLE_EQ(costs.row_seconds, 2 * 4'718'592 / 2e12);
    EXPECT_EQ(costs.expert_seconds, 0);  // faster than RAM allows
}

TEST(ThisMachine, IsTheSameEachTimeAndNamesItsGpus) {
    const std::vector<DeviceInfo> gpus{{.name = "a card", .index = 0, .memory_bytes = 1, .uuid = "00ff"}};
    const MachineIdentity machine = this_machine("1.2.3", 0, gpus);
    EXPECT_EQ(machine, this_machine("1.2.3", available_physical_cores(), gpus));
    EXPECT_EQ(machine.gpus, std::vector<std::string>{"00ff"});
    EXPECT_GT(machine.ram_bytes, std::uint64_t{1} << 28);
    EXPECT_EQ(this_machine("1.2.3", 3, {}).threads, 3);
}

TEST(ProbeExperts, AreWholeApartAndTimed) {
    ThreadPool pool(2);
    const ExpertShape shape{.kind = "mixed", .down = DataType::Q6_K, .width = 256, .hidden = 512};
    const ProbeExperts experts(pool, shape, std::size_t{1} << 20);
    EXPECT_GE(experts.count(), 3);
    const std::byte* end = experts.memory().data();
    for (std::size_t e = 0; e < static_cast<std::size_t>(experts.count()); ++e) {
        for (const models::ExpertMatrix* matrix : {&experts.gate(), &experts.up(), &experts.down()}) {
            const std::byte* begin = matrix->data[e];
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(begin) % 64, 0u);
            EXPECT_GE(begin, end);
            end = begin + matrix->bytes_per_expert();
            EXPECT_NE(std::count(begin, end, std::byte{0}), end - begin);
        }
    }
    EXPECT_LE(end, experts.memory().data() + experts.memory().size());
    const ExpertTimes times = experts.measure(pool);
    EXPECT_EQ(times.kind, "mixed");
    EXPECT_EQ(times.multiply_adds, 3 * 256 * 512);
    EXPECT_EQ(times.bytes, 512u * 144 * 2 + 256u * 2 * 210);
    for (const double seconds : times.seconds) EXPECT_GT(seconds, 0);
}

TEST(ProbeExperts, TakesExpertsThatReadValues) {
    ThreadPool pool(1);
    const ProbeExperts experts(pool,
                               {.kind = "floats",
                                .gate = DataType::F32,
                                .up = DataType::F16,
                                .down = DataType::BF16,
                                .width = 64,
                                .hidden = 96},
                               1);
    EXPECT_EQ(experts.count(), 8);
    EXPECT_GT(experts.measure(pool).seconds[0], 0);
}

TEST(CrowdWatch, SeesThreadsThatShareACore) {
    bool crowded = false;
    {
        const CrowdWatch watch(crowded);
        std::atomic<int> chosen{-1};  // the core of whichever comes first
        const auto spin = [&] {
            const int cpu = sched_getcpu();
            int nobody = -1;
            chosen.compare_exchange_strong(nobody, cpu);
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(chosen, &set);
            ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
            timespec ran{};
            while (ran.tv_sec == 0 && ran.tv_nsec < 150'000'000) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
        };
        std::thread first(spin);
        std::thread second(spin);
        first.join();
        second.join();
    }
    EXPECT_TRUE(crowded);
}

TEST(CrowdWatch, WaitingIsNoCrowd) {
    bool crowded = false;
    {
        const CrowdWatch watch(crowded);
        for (int i = 0; i < 200; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(crowded);
}

TEST(MissingExperts, AreThoseThatAProfileDoesNotHave) {
    const std::vector<ExpertShape> shapes{{.kind = "Q4_K, Q4_K, Q6_K 768 x 2048"}, {.kind = "new"}};
    const auto missing = missing_experts(shapes, some_profile());
    ASSERT_EQ(missing.size(), 1u);
    EXPECT_EQ(missing[0].kind, "new");
}

}  // namespace
}  // namespace coterie::engine
