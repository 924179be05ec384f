// Random operations on a cache over uneven devices, with random delays and faults. After each, all that the
// cache promises is compared: bytes behind every address that somebody may read, counts, integrity.

#include <cstring>
#include <gtest/gtest.h>
#include <list>
#include <random>

#include "base/error.h"
#include "expert_cache/cache_testing.h"

namespace coterie::expert_cache {
namespace {

using namespace testing_support;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kSeed = 20240611;

struct Claim {
    ExpertKey key;
    ResidentExpert where;
};

/// A step and all that it was told it may read until its end.
struct OpenStep {
    CacheStep step;
    std::vector<Claim> claims;
    std::vector<std::unique_ptr<FakeStream>> streams;  ///< [devices]
};

struct OpenLease {
    ExpertKey key;
    ExpertLease lease;
};

class Driver {
  public:
    Driver(std::uint64_t seed, bool faults)
        : random_(seed),
          faults_(faults),
          machine_(clock_, specs(), 3e8),
          model_({{16, 5000}, {0, 0}, {24, 2050}, {9, 300}},
                 pick(2) ? HostMemory::Pinned : HostMemory::Pageable, seed) {
        CacheOptions options = manual_options();
        options.patience = milliseconds(pick(3));
        options.uploads.watchdog = seconds(5);
        options.uploads.queue_length = static_cast<std::int32_t>(1 + pick(8));
        options.uploads.chunk_bytes = 500 + pick(3000);
        if (pick(2)) options.uploads.bytes_per_token = 2000;
        options.spare_slots = static_cast<std::int32_t>(pick(4));
        options.slots = random_slots();
        exclusive_ = pick(2) == 0;
        if (exclusive_)
            options.host_places = {static_cast<std::int32_t>(pick(17)), 0,
                                   static_cast<std::int32_t>(pick(25)), static_cast<std::int32_t>(pick(10))};
        std::vector<Device*> devices;
        for (int d = 0; d < machine_.size(); ++d) devices.push_back(&machine_.device(d));
        cache_ = std::make_unique<ExpertCache>(devices, model_.layers(), model_.source(),
                                               counting_policies(static_cast<std::int32_t>(pick(3))), clock_,
                                               options);
        if (exclusive_) cache_->fill_ram(all_keys());
    }

    void operate() {
        switch (pick(14)) {
            case 0:
            case 1:
                return begin_step();
            case 2:
            case 3:
            case 4:
                return route();
            case 5:
                return end_step();
            case 6:
                return lease();
            case 7:
            case 8:
            case 9:
                cache_->maintain();
                return;
            case 10:
                return borrow();
            case 11:
                return reshape();
            case 12:
                if (faults_) fault();
                return;
            default:
                clock_.advance(microseconds(pick(50)));
        }
    }

    void check() {
        cache_->check_integrity();
        for (const OpenStep& open : steps_) {
            for (const Claim& claim : open.claims) expect_bytes(claim);
        }
        for (const OpenLease& open : leases_) {
            expect_bytes({open.key, {open.lease.device(), open.lease.address()}});
        }
        for (std::int32_t l = 0; l < 4; ++l) {
            for (std::int32_t e = 0; e < experts(l); ++e) {
                if (const auto found = cache_->find({l, e})) expect_bytes({{l, e}, *found});
            }
        }
        if (exclusive_) expect_all_experts();
        if (loan_) expect_loan();
        EXPECT_EQ(wrong_kernels_, 0);
    }

    /// All that was open ends; then each slot is free or holds an expert.
    void close() {
        while (!steps_.empty()) end_step();
        leases_.clear();
        loan_.reset();
        grant_budget();
        check();
        const CacheStatistics statistics = cache_->statistics();
        EXPECT_EQ(statistics.hits, hits_);
        EXPECT_EQ(statistics.misses, misses_);
        for (int d = 0; d < machine_.size(); ++d) expect_no_slot_lost(d, statistics);
    }

    int fetches() const { return fetches_; }
    int loans() const { return loans_; }
    std::uint64_t hits() const { return hits_; }

  private:
    std::uint64_t pick(std::uint64_t n) { return random_() % n; }
    std::int32_t experts(std::int32_t layer) const {
        return model_.layers()[static_cast<std::size_t>(layer)].experts;
    }
    std::vector<ExpertKey> all_keys() const {
        std::vector<ExpertKey> keys;
        for (std::int32_t l = 0; l < 4; ++l) {
            for (std::int32_t e = 0; e < experts(l); ++e) keys.push_back({l, e});
        }
        return keys;
    }
    ExpertKey random_key() {
        constexpr std::int32_t kLayers[] = {0, 2, 3};
        const std::int32_t layer = kLayers[pick(3)];
        // Low numbers are hotter.
        const std::uint64_t bound = 1 + pick(static_cast<std::uint64_t>(experts(layer)));
        return {layer, static_cast<std::int32_t>(pick(bound))};
    }
    std::vector<FakeDeviceSpec> specs() {
        std::vector<FakeDeviceSpec> result(1 + pick(3));
        for (FakeDeviceSpec& spec : result) spec = small_device((100 + pick(200)) << 10, 1e8 * (1 + pick(9)));
        return result;
    }
    std::vector<std::vector<std::int32_t>> random_slots() {
        std::vector<std::vector<std::int32_t>> slots;
        for (int d = 0; d < machine_.size(); ++d) {
            slots.push_back({static_cast<std::int32_t>(pick(9)), 0, static_cast<std::int32_t>(pick(13)),
                             static_cast<std::int32_t>(pick(10))});
        }
        return slots;
    }

    /// Whatever moved where, and whatever failed: each expert can be had, and RAM has the right bytes.
    void expect_all_experts() {
        for (std::int32_t l = 0; l < 4; ++l) {
            for (std::int32_t e = 0; e < model_.layers()[static_cast<std::size_t>(l)].experts; ++e) {
                const std::vector<std::byte>& expected = model_.bytes({l, e});
                auto at = expected.begin();
                for (const auto& piece : cache_->bytes_of({l, e}).pieces) {
                    ASSERT_TRUE(std::equal(piece.begin(), piece.end(), at))
                        << "layer " << l << ", expert " << e;
                    at += static_cast<std::ptrdiff_t>(piece.size());
                }
                ASSERT_EQ(at, expected.end());
            }
        }
    }
    void expect_bytes(const Claim& claim) {
        EXPECT_TRUE(model_.matches(machine_.device(claim.where.device), claim.where.address, claim.key))
            << "layer " << claim.key.layer << ", expert " << claim.key.expert;
    }
    void expect_loan() {
        const std::byte* bytes = machine_.device(loan_device_).resolve(loan_->address(), loan_->bytes());
        for (std::uint64_t i = 0; i < loan_->bytes(); i += 97) ASSERT_EQ(bytes[i], std::byte{0x5c});
    }
    void expect_no_slot_lost(int device, const CacheStatistics& statistics) {
        std::int64_t slots = 0;
        std::int64_t free = 0;
        for (std::int32_t l = 0; l < 4; ++l) {
            slots += cache_->slots(device, l);
            free += cache_->free_slots(device, l);
        }
        const DeviceStatistics& of = statistics.devices[static_cast<std::size_t>(device)];
        EXPECT_TRUE(of.out || static_cast<std::int64_t>(of.resident) == slots - free);
    }

    /// Tokens that learn nothing, until all uploads that wait for their budget have passed.
    void grant_budget() {
        for (int token = 0; token < 100; ++token) {
            const std::int32_t expert = 0;
            cache_->find({3, expert}) ? ++hits_ : ++misses_;
            { cache_->begin_step(Learning::Off).routed(3, std::span(&expert, 1), 1); }
            EXPECT_TRUE(cache_->settle(seconds(10)));
        }
    }

    void begin_step() {
        if (steps_.size() == 3) return;
        steps_.push_back({cache_->begin_step(pick(5) ? Learning::On : Learning::Off), {}, {}});
        for (int d = 0; d < machine_.size(); ++d) {
            steps_.back().streams.push_back(machine_.device(d).create_fake_stream());
        }
    }
    std::list<OpenStep>::iterator random_step() {
        return std::next(steps_.begin(), static_cast<std::ptrdiff_t>(pick(steps_.size())));
    }

    void route() {
        if (steps_.empty()) return;
        OpenStep& open = *random_step();
        std::vector<std::int32_t> chosen;
        const ExpertKey first = random_key();
        for (std::uint64_t i = 0; i < 1 + pick(4); ++i) {
            chosen.push_back(static_cast<std::int32_t>(pick(static_cast<std::uint64_t>(first.expert) + 1)));
        }
        for (const std::int32_t e : chosen) ++(cache_->find({first.layer, e}) ? hits_ : misses_);
        open.step.routed(first.layer, chosen, static_cast<std::int32_t>(chosen.size()));
        for (const std::int32_t e : chosen) read_or_fetch(open, {first.layer, e});
    }

    void read_or_fetch(OpenStep& open, ExpertKey key) {
        if (const auto found = cache_->find(key)) {
            open.claims.push_back({key, *found});
            return;
        }
        const auto device = static_cast<std::int32_t>(pick(static_cast<std::uint64_t>(machine_.size())));
        FakeStream& stream = *open.streams[static_cast<std::size_t>(device)];
        const auto address = open.step.fetch(key, device, stream);
        if (!address) return;
        ++fetches_;
        const auto kernel = [this, device, key, at = *address] {
            wrong_kernels_ += model_.matches(machine_.device(device), at, key) ? 0 : 1;
        };
        try {
            stream.launch(kernel, microseconds(pick(20)));
        } catch (const Error& error) {  // refused: the CPU computes instead
            EXPECT_TRUE(faults_) << error.what();
        }
    }

    void end_step() {
        if (steps_.empty()) return;
        const auto open = random_step();
        for (const auto& stream : open->streams) {
            try {
                stream->synchronise();
            } catch (const Error& error) {  // a copy failed: the CPU computes instead
                EXPECT_TRUE(faults_) << error.what();
            }
        }
        open->streams.clear();
        steps_.erase(open);
    }

    void lease() {
        if (leases_.size() > 4 || (pick(2) && !leases_.empty())) {
            leases_.erase(leases_.begin());
            return;
        }
        const ExpertKey key = random_key();
        if (auto lease = cache_->acquire(key)) leases_.push_back({key, std::move(*lease)});
    }

    void borrow() {
        if (loan_) {
            loan_.reset();
            return;
        }
        loan_device_ = static_cast<int>(pick(static_cast<std::uint64_t>(machine_.size())));
        loan_ = cache_->borrow(loan_device_, 1 + pick(60 << 10));
        if (!loan_) return;
        ++loans_;
        std::memset(machine_.device(loan_device_).resolve(loan_->address(), loan_->bytes()), 0x5c,
                    loan_->bytes());
    }

    void reshape() {
        if (pick(3) > 0) return;
        if (pick(2)) {
            cache_->rebalance(random_slots());
            return;
        }
        const int device = static_cast<int>(pick(static_cast<std::uint64_t>(machine_.size())));
        const std::uint64_t bytes = pick(120 << 10);
        const std::uint64_t got = cache_->resize(device, bytes);
        const bool undisturbed = steps_.empty() && leases_.empty() && !loan_ && !faults_;
        EXPECT_TRUE(!undisturbed || got <= bytes);
    }

    void fault() {
        FakeDevice& device =
            machine_.device(static_cast<int>(pick(static_cast<std::uint64_t>(machine_.size()))));
        switch (pick(5)) {
            case 0:
                return device.fail_copy(static_cast<int>(1 + pick(5)));
            case 1:
                return device.refuse_copy(static_cast<int>(1 + pick(5)));
            case 2:
                return device.refuse_allocation(static_cast<int>(1 + pick(3)));
            case 3:
                return device.refuse_call(static_cast<int>(1 + pick(12)));
            default:
                return device.slow_copies(pick(2) ? 1 : static_cast<double>(1 + pick(50)));
        }
    }

    std::mt19937_64 random_;
    bool faults_;
    bool exclusive_ = false;
    SimulatedClock clock_;
    FakeMachine machine_;
    HostModel model_;
    std::unique_ptr<ExpertCache> cache_;
    std::list<OpenStep> steps_;
    std::vector<OpenLease> leases_;
    std::optional<MemoryLoan> loan_;
    int loan_device_ = 0;
    int wrong_kernels_ = 0;
    int fetches_ = 0;
    int loans_ = 0;
    std::uint64_t hits_ = 0;
    std::uint64_t misses_ = 0;
};

void run(bool faults) {
    int fetches = 0;
    int loans = 0;
    std::uint64_t hits = 0;
    for (std::uint64_t round = 0; round < 60; ++round) {
        const std::uint64_t seed = kSeed + round;
        SCOPED_TRACE("seed " + std::to_string(seed));
        Driver driver(seed, faults);
        for (int i = 0; i < 400 && !testing::Test::HasFailure(); ++i) {
            driver.operate();
            driver.check();
        }
        driver.close();
        if (testing::Test::HasFailure()) return;
        fetches += driver.fetches();
        loans += driver.loans();
        hits += driver.hits();
    }
    // The rounds did meet what they are about.
    EXPECT_GT(fetches, 500);
    EXPECT_GT(loans, 100);
    EXPECT_GT(hits, 1000u);
}

TEST(RandomOperations, KeepEveryByteInItsPlace) { run(false); }
TEST(RandomOperations, KeepEveryByteInItsPlaceWhateverFails) { run(true); }

}  // namespace
}  // namespace coterie::expert_cache
