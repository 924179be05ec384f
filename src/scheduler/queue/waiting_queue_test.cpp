#include "scheduler/queue/waiting_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>

namespace coterie::scheduler {
namespace {

using Queue = WaitingQueue<std::unique_ptr<int>>;

void push(Queue& queue, const std::string& client, const std::vector<int>& values) {
    std::vector<std::unique_ptr<int>> parts;
    for (const int value : values) parts.push_back(std::make_unique<int>(value));
    queue.push(client, std::move(parts));
}
void push(Queue& queue, const std::string& client, int value) { push(queue, client, std::vector{value}); }

std::vector<int> drain(Queue& queue) {
    std::vector<int> order;
    while (auto item = queue.pop([](const auto&) { return true; })) order.push_back(**item);
    return order;
}

TEST(WaitingQueue, KeepsAClientsOrder) {
    Queue queue(10);
    for (int i = 0; i < 5; ++i) push(queue, "a", i);
    EXPECT_THAT(drain(queue), testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(WaitingQueue, LetsClientsTakeTurns) {
    Queue queue(10);
    for (int i = 0; i < 4; ++i) push(queue, "greedy", i);
    push(queue, "b", 10);
    push(queue, "c", 20);
    EXPECT_THAT(drain(queue), testing::ElementsAre(0, 10, 20, 1, 2, 3));
}

TEST(WaitingQueue, LetsOthersPassOneThatCannotRunYet) {
    Queue queue(10);
    push(queue, "a", 1);
    push(queue, "a", 2);
    push(queue, "b", 3);
    const auto first = queue.pop([](const auto& item) { return *item != 1; });
    ASSERT_TRUE(first);
    EXPECT_EQ(**first, 3);
    EXPECT_FALSE(queue.pop([](const auto&) { return false; }));
    EXPECT_THAT(drain(queue), testing::ElementsAre(1, 2));
}

TEST(WaitingQueue, KeepsEveryRequestOfManyClients) {
    Queue queue(1000);
    std::vector<int> pushed;
    std::vector<int> popped;
    for (int i = 0; i < 2000; ++i) {
        push(queue, std::string(1, static_cast<char>('a' + i * 7 % 23)), i);
        pushed.push_back(i);
        if (i % 3 == 0) continue;
        const auto item = queue.pop([&](const auto& value) { return *value % 5 != i % 5; });
        if (item) popped.push_back(**item);
    }
    for (const int value : drain(queue)) popped.push_back(value);
    EXPECT_EQ(queue.size(), 0u);
    EXPECT_THAT(popped, testing::UnorderedElementsAreArray(pushed));
}

TEST(WaitingQueue, CountsRequestsWhateverTheirParts) {
    Queue queue(2);
    EXPECT_TRUE(queue.has_room("a"));
    push(queue, "a", {1, 2, 3, 4, 5});
    EXPECT_EQ(queue.size(), 5u);
    EXPECT_TRUE(queue.has_room("a"));
    push(queue, "a", {6, 7});
    EXPECT_FALSE(queue.has_room("a"));
    const auto any = [](const auto&) { return true; };
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.pop(any));
    EXPECT_FALSE(queue.has_room("a"));  // a part of the first still waits
    EXPECT_TRUE(queue.pop(any));
    EXPECT_TRUE(queue.has_room("a"));
    EXPECT_THAT(drain(queue), testing::ElementsAre(6, 7));
}

TEST(WaitingQueue, LetsPartsOfManyRequestsTakeTurnsByClient) {
    Queue queue(10);
    push(queue, "a", {1, 2, 3});
    push(queue, "b", {10, 20});
    push(queue, "a", 4);
    EXPECT_THAT(drain(queue), testing::ElementsAre(1, 10, 2, 20, 3, 4));
}

TEST(WaitingQueue, LeavesEveryClientItsShareWhereOneHasFilledIt) {
    Queue queue(4);
    for (int i = 0; i < 4; ++i) push(queue, "greedy", i);
    EXPECT_FALSE(queue.has_room("greedy"));
    for (int i = 0; i < 2; ++i) {  // half of the limit is b's
        EXPECT_TRUE(queue.has_room("b"));
        push(queue, "b", 10 + i);
    }
    EXPECT_FALSE(queue.has_room("b"));
    EXPECT_TRUE(queue.has_room("c"));  // a third, at least one
    push(queue, "c", 20);
    EXPECT_FALSE(queue.has_room("c"));
    EXPECT_FALSE(queue.has_room("greedy"));
}

TEST(WaitingQueue, LeavesNewClientsOneHoweverManyWait) {
    Queue queue(2);
    for (int i = 0; i < 9; ++i) {
        const std::string client(1, static_cast<char>('a' + i));
        EXPECT_TRUE(queue.has_room(client));
        push(queue, client, i);
        EXPECT_EQ(queue.has_room(client), i == 0);
    }
}

TEST(WaitingQueue, TakesNothingWhereNothingMayWait) { EXPECT_FALSE(Queue(0).has_room("a")); }

TEST(WaitingQueue, GivesUpThoseThatLeave) {
    Queue queue(10);
    for (int i = 0; i < 6; ++i) push(queue, i % 2 ? "odd" : "even", i);
    const auto gone =
        queue.extract([](const std::unique_ptr<int>& item) { return *item % 2 == 1 || *item == 2; });
    EXPECT_EQ(gone.size(), 4u);
    EXPECT_EQ(queue.size(), 2u);
    EXPECT_THAT(drain(queue), testing::ElementsAre(0, 4));
}

TEST(WaitingQueue, GivesUpPartsOfRequests) {
    Queue queue(2);
    push(queue, "a", {1, 2, 3});
    push(queue, "a", {4, 6});
    const auto gone = queue.extract([](const std::unique_ptr<int>& item) { return *item % 2 == 0; });
    EXPECT_EQ(gone.size(), 3u);
    EXPECT_EQ(queue.size(), 2u);
    EXPECT_TRUE(queue.has_room("a"));  // nothing is left of the second
    EXPECT_THAT(drain(queue), testing::ElementsAre(1, 3));
}

}  // namespace
}  // namespace coterie::scheduler
