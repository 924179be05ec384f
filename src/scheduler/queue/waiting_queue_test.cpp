#include "scheduler/queue/waiting_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coterie::scheduler {
namespace {

using Queue = WaitingQueue<std::unique_ptr<int>>;

void push(Queue& queue, const std::string& client, int value) {
    queue.push(client, std::make_unique<int>(value));
}

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

TEST(WaitingQueue, IsFullAtItsLimit) {
    Queue queue(2);
    push(queue, "a", 1);
    EXPECT_FALSE(queue.full());
    push(queue, "b", 2);
    EXPECT_TRUE(queue.full());
}

TEST(WaitingQueue, GivesUpThoseThatLeave) {
    Queue queue(10);
    for (int i = 0; i < 6; ++i) push(queue, i % 2 ? "odd" : "even", i);
    const auto gone =
        queue.extract([](const std::unique_ptr<int>& item) { return *item % 2 == 1 || *item == 2; });
    EXPECT_EQ(gone.size(), 4u);
    EXPECT_EQ(queue.size(), 2u);
    EXPECT_THAT(drain(queue), testing::ElementsAre(0, 4));
}

}  // namespace
}  // namespace coterie::scheduler
