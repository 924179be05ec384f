#include "server/service/answer_reader.h"

#include <gtest/gtest.h>

#include "server/json/api_error.h"

namespace coterie::server {
namespace {

using scheduler::FinishReason;

AnswerReader reader_of(FinishReason reason, std::int64_t generated_tokens) {
    scheduler::Answers answers(std::make_shared<scheduler::Bell>());
    const auto queue = std::make_shared<scheduler::EventQueue>(answers.bell());
    scheduler::Finished finished;
    finished.reason = reason;
    finished.usage.generated_tokens = generated_tokens;
    queue->push(std::move(finished));
    answers.add(queue);
    return {std::move(answers), {}, {}};
}

TEST(AnswerReader, GivesAnswersThatWereCutOff) {
    for (const FinishReason reason : {FinishReason::EndToken, FinishReason::StopText, FinishReason::Length,
                                      FinishReason::TimeLimit, FinishReason::Cancelled}) {
        AnswerReader reader = reader_of(reason, 1);
        const auto delta = reader.next();
        ASSERT_TRUE(delta);
        EXPECT_EQ(std::get<AnswerEnd>(delta->what).finished.reason, reason);
        EXPECT_FALSE(reader.next());
    }
}

TEST(AnswerReader, GivesAnswersThatAreMeantToBeEmpty) {  // and embeddings, which draw nothing
    for (const FinishReason reason : {FinishReason::EndToken, FinishReason::Length}) {
        EXPECT_TRUE(reader_of(reason, 0).next());
    }
}

TEST(AnswerReader, RefusesToCallAnAnswerWhatNeverBegan) {
    for (const auto& [reason, code] : {std::pair(FinishReason::TimeLimit, "timeout"),
                                       std::pair(FinishReason::Cancelled, "shutting_down")}) {
        AnswerReader reader = reader_of(reason, 0);
        try {
            reader.next();
            FAIL() << code;
        } catch (const ApiError& error) {
            EXPECT_EQ(error.status(), 503);
            EXPECT_EQ(error.code(), code);
        }
    }
}

}  // namespace
}  // namespace coterie::server
