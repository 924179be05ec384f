#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace coterie::scheduler {

/// Requests that wait for a slot. Clients take turns, each client's requests in their order, so that one who
/// asks a hundred things at once delays another by one request and not by a hundred.
template <typename Item>
class WaitingQueue {
  public:
    explicit WaitingQueue(std::size_t limit) : limit_(limit) {}

    std::size_t size() const { return size_; }
    bool full() const { return size_ >= limit_; }

    void push(const std::string& client, Item item) {
        line(client).items.push_back(std::move(item)), ++size_;
    }

    /// Takes the request whose turn it is, of those for which `may_run` holds, and gives the next client its
    /// turn. Nothing where none may run.
    template <typename Predicate>
    std::optional<Item> pop(Predicate may_run) {
        for (auto line = lines_.begin(); line != lines_.end(); ++line) {
            if (!may_run(line->items.front())) continue;
            Line served = std::move(*line);
            lines_.erase(line);
            Item item = std::move(served.items.front());
            served.items.pop_front();
            if (!served.items.empty()) lines_.push_back(std::move(served));
            --size_;
            return item;
        }
        return std::nullopt;
    }

    /// Takes out all for which `leaves` holds.
    template <typename Predicate>
    std::vector<Item> extract(Predicate leaves) {
        std::vector<Item> taken;
        for (Line& line : lines_) {
            for (Item& item : line.items) {
                if (leaves(item)) taken.push_back(std::exchange(item, Item()));
            }
            std::erase(line.items, Item());
        }
        std::erase_if(lines_, [](const Line& line) { return line.items.empty(); });
        size_ -= taken.size();
        return taken;
    }

  private:
    struct Line {
        std::string client;
        std::deque<Item> items;
    };

    Line& line(const std::string& client) {
        for (Line& line : lines_) {
            if (line.client == client) return line;
        }
        return lines_.emplace_back(Line{client, {}});
    }

    std::size_t limit_;
    std::size_t size_ = 0;
    std::deque<Line> lines_;  ///< clients with something to do, in the order of their turns
};

}  // namespace coterie::scheduler
