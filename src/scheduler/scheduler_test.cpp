#include "scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/scheduler_testing.h"

namespace coterie::scheduler {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{60'000};

std::unique_ptr<engine::Engine> small_engine(std::int64_t context = 1024) {
    engine::EngineOptions options;
    options.threads = 1;
    options.context = context;
    return std::make_unique<engine::Engine>(
        std::make_shared<gguf::Archive>(
            gguf::Archive::open(COTERIE_SOURCE_DIR "/tests/golden/models/qwen3moe-iq4_xs.gguf")),
        options);
}

class SchedulerTest : public testing::Test {
  protected:
    void start(SchedulerOptions options, std::int64_t context = 1024) {
        engine_ = small_engine(context);
        scheduler_ =
            std::make_unique<Scheduler>(*engine_, test_tokenizer(), options, [this] { ++housekeeping_; });
    }

    Request request(std::vector<TokenId> prompt, std::int64_t max_tokens) {
        Request request;
        request.prompt = std::move(prompt);
        request.max_tokens = max_tokens;
        request.stop_at_end_tokens = false;
        request.wants_tokens = true;
        SamplingOptions greedy;
        greedy.temperature = 0;
        request.sampler = std::make_unique<SamplerChain>(greedy, engine_->config().vocabulary);
        return request;
    }

    template <typename... Part>
    std::optional<Refusal> hand_in(Answers& answers, Part... part) {
        std::vector<Request> parts;
        (parts.push_back(std::move(part)), ...);
        return scheduler_->submit(std::move(parts), answers);
    }

    Answers submit(Request request) {
        Answers answers(std::make_shared<Bell>());
        EXPECT_FALSE(hand_in(answers, std::move(request)));
        return answers;
    }

    /// Reads to the end.
    static TestAnswer read(Answers& answers) {
        TestAnswer answer;
        while (true) {
            auto arrival = answers.next(kLong);
            if (!arrival) {
                answer.failure = "no event came";
                return answer;
            }
            if (const auto* text = std::get_if<Text>(&arrival->event)) {
                for (const GeneratedToken& token : text->tokens) answer.ids.push_back(token.id);
            }
            if (const auto* finished = std::get_if<Finished>(&arrival->event)) answer.finished = *finished;
            if (is_last(arrival->event)) return answer;
        }
    }

    void until(const std::function<bool()>& condition) {
        const auto end = std::chrono::steady_clock::now() + kLong;
        while (!condition()) {
            ASSERT_LT(std::chrono::steady_clock::now(), end);
            std::this_thread::sleep_for(milliseconds(1));
        }
    }

    std::unique_ptr<engine::Engine> engine_;
    std::unique_ptr<Scheduler> scheduler_;
    std::atomic<int> housekeeping_{0};
};

TEST_F(SchedulerTest, AnswersManyThreadsAtOnce) {
    start({.slots = 3});
    std::vector<std::vector<TokenId>> alone;
    for (int i = 0; i < 8; ++i) {
        Answers answers = submit(request(random_tokens(30 + i, i), 20));
        alone.push_back(read(answers).ids);
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
            for (int round = 0; round < 5; ++round) {
                Answers answers = submit(request(random_tokens(30 + i, i), 20));
                EXPECT_EQ(read(answers).ids, alone[static_cast<std::size_t>(i)]);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(scheduler_->counters().finished.load(), 48u);
}

TEST_F(SchedulerTest, RefusesWhatTheQueueHasNoRoomFor) {
    start({.slots = 1, .queue_limit = 2}, 4096);
    std::vector<Answers> held;
    held.push_back(submit(request(random_tokens(10, 0), 3000)));
    until([&] { return scheduler_->counters().running.load() == 1; });
    held.push_back(submit(request(random_tokens(10, 1), 1)));
    held.push_back(submit(request(random_tokens(10, 2), 1)));
    Answers refused(std::make_shared<Bell>());
    EXPECT_EQ(hand_in(refused, request(random_tokens(10, 3), 1)), Refusal::QueueFull);
    EXPECT_EQ(scheduler_->counters().refused.load(), 1u);
}

TEST_F(SchedulerTest, TakesARequestOfMorePartsThanTheQueueIsLong) {
    start({.slots = 1, .queue_limit = 1});
    Answers answers(std::make_shared<Bell>());
    EXPECT_FALSE(hand_in(answers, request(random_tokens(10, 0), 2), request(random_tokens(10, 1), 3),
                         request(random_tokens(10, 2), 4)));
    EXPECT_EQ(answers.size(), 3u);
    std::vector<std::int64_t> generated(3);
    for (int ended = 0; ended < 3;) {
        const auto arrival = answers.next(kLong);
        ASSERT_TRUE(arrival);
        if (const auto* finished = std::get_if<Finished>(&arrival->event)) {
            generated[arrival->answer] = finished->usage.generated_tokens, ++ended;
        }
    }
    EXPECT_THAT(generated, testing::ElementsAre(2, 3, 4));
}

TEST_F(SchedulerTest, NeedsNoQueueWhereASlotIsFree) {
    start({.slots = 2, .queue_limit = 0}, 4096);
    std::vector<Answers> held;
    for (int i = 0; i < 2; ++i) held.push_back(submit(request(random_tokens(10, i), 3000)));
    Answers refused(std::make_shared<Bell>());
    EXPECT_EQ(hand_in(refused, request(random_tokens(10, 2), 1)), Refusal::QueueFull);
}

TEST_F(SchedulerTest, TakesNoPartOfARequestThatItRefuses) {
    start({.slots = 1}, 128);
    Answers answers(std::make_shared<Bell>());
    EXPECT_THROW(hand_in(answers, request({5}, 1), request({5, 512}, 1)), Error);
    EXPECT_EQ(answers.size(), 0u);
    EXPECT_EQ(scheduler_->counters().waiting.load(), 0);
    EXPECT_FALSE(hand_in(answers, request({5}, 1)));
}

TEST_F(SchedulerTest, ServesClientsInTurns) {
    start({.slots = 1}, 4096);
    Answers first = submit(request(random_tokens(10, 0), 500));
    until([&] { return scheduler_->counters().running.load() == 1; });
    std::vector<Answers> greedy;
    for (int i = 0; i < 6; ++i) {
        Request one = request(random_tokens(20, 10 + i), 300);
        one.client = "greedy";
        greedy.push_back(submit(std::move(one)));
    }
    Request other = request(random_tokens(20, 30), 1);
    other.client = "other";
    Answers answers = submit(std::move(other));
    read(answers);
    EXPECT_GE(scheduler_->counters().waiting.load(), 3);  // it did not wait for all of the greedy ones
}

TEST_F(SchedulerTest, CancelsWhatNobodyReadsAnyMore) {
    start({.slots = 1}, 4096);
    {
        Answers running = submit(request(random_tokens(10, 0), 4000));
        Answers waiting = submit(request(random_tokens(10, 1), 4000));
        until([&] { return scheduler_->counters().running.load() == 1; });
    }
    until([&] { return scheduler_->counters().cancelled.load() == 2; });
    EXPECT_LT(scheduler_->counters().generated_tokens.load(), 3900u);
}

TEST_F(SchedulerTest, EndsARequestThatWaitsTooLongInTheQueue) {
    start({.slots = 1, .request_limit = milliseconds(100)}, 4096);
    Request endless = request(random_tokens(10, 0), -1);
    endless.limit = kLong;
    Answers busy = submit(std::move(endless));
    Answers answers = submit(request(random_tokens(10, 1), 5));
    EXPECT_EQ(read(answers).finished.reason, FinishReason::TimeLimit);
}

TEST_F(SchedulerTest, DrainsWhatRunsAndTakesNothingNew) {
    start({.slots = 2});
    Answers one = submit(request(random_tokens(10, 0), 200));
    Answers two = submit(request(random_tokens(10, 1), 200));
    std::thread drains([&] { EXPECT_TRUE(scheduler_->drain(kLong)); });
    EXPECT_EQ(read(one).ids.size(), 200u);
    EXPECT_EQ(read(two).ids.size(), 200u);
    drains.join();
    Answers late(std::make_shared<Bell>());
    EXPECT_EQ(hand_in(late, request(random_tokens(10, 2), 1)), Refusal::ShuttingDown);
}

TEST_F(SchedulerTest, CutsOffWhatDoesNotEndInTime) {
    start({.slots = 1}, 4096);
    Answers endless = submit(request(random_tokens(10, 0), -1));
    Answers waiting = submit(request(random_tokens(10, 1), 5));
    EXPECT_FALSE(scheduler_->drain(milliseconds(50)));
    EXPECT_EQ(read(endless).finished.reason, FinishReason::Cancelled);
    EXPECT_EQ(read(waiting).finished.reason, FinishReason::Cancelled);
}

TEST_F(SchedulerTest, RefusesPromptsThatCannotBeAnswered) {
    start({.slots = 2}, 128);
    Answers answers(std::make_shared<Bell>());
    EXPECT_THROW(hand_in(answers, request({}, 1)), Error);
    EXPECT_THROW(hand_in(answers, request(random_tokens(128, 0), 1)), Error);
    EXPECT_THROW(hand_in(answers, request({5, 512}, 1)), Error);
    EXPECT_THROW(hand_in(answers, request({5, -1}, 1)), Error);
    Request wrong_slot = request({5}, 1);
    wrong_slot.slot = 2;
    EXPECT_THROW(hand_in(answers, std::move(wrong_slot)), Error);
}

/// Allows one token after the other, and says so.
class OneByOne final : public TokenConstraint {
  public:
    std::span<const std::uint64_t> allowed() override {
        words_.assign(8, 0);
        words_[static_cast<std::size_t>(next_) / 64] = std::uint64_t{1} << next_ % 64;
        return words_;
    }
    void accept(TokenId token) override {
        ASSERT_EQ(token, next_);
        ++next_;
    }

  private:
    TokenId next_ = 100;
    std::vector<std::uint64_t> words_;
};

TEST_F(SchedulerTest, HoldsAnAnswerToItsConstraint) {
    start({.slots = 1});
    Request held = request(random_tokens(10, 0), 5);
    held.constraint = std::make_unique<OneByOne>();
    Answers answers = submit(std::move(held));
    EXPECT_THAT(read(answers).ids, testing::ElementsAre(100, 101, 102, 103, 104));
}

TEST_F(SchedulerTest, LetsAFailingAnswerFailAlone) {
    class Fails final : public TokenConstraint {
      public:
        std::span<const std::uint64_t> allowed() override {
            fail(ErrorCode::InvalidArgument, "no token fits");
        }
        void accept(TokenId) override {}
    };
    start({.slots = 2});
    Answers good = submit(request(random_tokens(10, 0), 100));
    Request bad = request(random_tokens(10, 1), 100);
    bad.constraint = std::make_unique<Fails>();
    Answers failing = submit(std::move(bad));
    std::optional<Answers::Arrival> last;
    do {
        last = failing.next(kLong);
        ASSERT_TRUE(last);
    } while (!is_last(last->event));
    EXPECT_EQ(std::get<Failed>(last->event).message, "no token fits");
    EXPECT_EQ(read(good).ids.size(), 100u);
}

TEST_F(SchedulerTest, KeepsHouseWhileItIsIdleToo) {
    start({.slots = 1});
    until([&] { return housekeeping_ >= 2; });
}

TEST_F(SchedulerTest, TellsAboutItsSlots) {
    start({.slots = 2}, 4096);
    Request long_one = request(random_tokens(10, 0), -1);
    long_one.slot = 1;
    Answers running = submit(std::move(long_one));
    until([&] { return scheduler_->counters().generated_tokens.load() > 0; });
    const std::vector<SlotStatus> slots = scheduler_->slots();
    EXPECT_EQ(slots[0].state, SlotState::Idle);
    EXPECT_EQ(slots[1].state, SlotState::Answering);
    EXPECT_EQ(slots[1].prompt_tokens, 10);
    EXPECT_THROW(scheduler_->save_slot(1, testing::TempDir() + "x"), Error);
    EXPECT_THROW(scheduler_->save_slot(0, testing::TempDir() + "x"), Error);
}

}  // namespace
}  // namespace coterie::scheduler
