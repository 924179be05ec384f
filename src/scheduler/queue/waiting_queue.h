#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace coterie::scheduler {

/// Requests that wait for a slot, each of one or several parts that run on their own. Clients take turns,
/// each client's parts in their order, so that one who asks a hundred things at once delays another by one
/// part and not by a hundred.
///
/// The limit counts requests, so that a request is taken whole or not at all, however many parts it has. Who
/// waits with less than an even share of the limit comes in where others have filled it.
template <typename Item>
class WaitingQueue {
  public:
    /// `limit`: requests that may wait; 0: none.
    explicit WaitingQueue(std::size_t limit) : limit_(limit) {}

    /// Parts of all requests.
    std::size_t size() const { return size_; }

    /// Whether another request of this client may wait.
    bool has_room(const std::string& client) const {
        std::size_t requests = 0;
        std::size_t own = 0;
        for (const Line& line : lines_) {
            requests += line.requests.size();
            if (line.client == client) own = line.requests.size();
        }
        const std::size_t clients = lines_.size() + (own == 0 ? 1 : 0);
        return limit_ > 0 && (requests < limit_ || own < std::max<std::size_t>(limit_ / clients, 1));
    }

    /// A request of at least one part.
    void push(const std::string& client, std::vector<Item> parts) {
        size_ += parts.size();
        line(client).requests.emplace_back(std::make_move_iterator(parts.begin()),
                                           std::make_move_iterator(parts.end()));
    }

    /// Takes the part whose turn it is, of those for which `may_run` holds, and gives the next client its
    /// turn. Nothing where none may run.
    template <typename Predicate>
    std::optional<Item> pop(Predicate may_run) {
        for (auto line = lines_.begin(); line != lines_.end(); ++line) {
            if (!may_run(line->requests.front().front())) continue;
            Line served = std::move(*line);
            lines_.erase(line);
            Item item = std::move(served.requests.front().front());
            served.requests.front().pop_front();
            if (served.requests.front().empty()) served.requests.pop_front();
            if (!served.requests.empty()) lines_.push_back(std::move(served));
            --size_;
            return item;
        }
        return std::nullopt;
    }

    /// Takes out all parts for which `leaves` holds.
    template <typename Predicate>
    std::vector<Item> extract(Predicate leaves) {
        std::vector<Item> taken;
        for (Line& line : lines_) {
            for (Parts& parts : line.requests) take_out(parts, leaves, taken);
            std::erase_if(line.requests, [](const Parts& parts) { return parts.empty(); });
        }
        std::erase_if(lines_, [](const Line& line) { return line.requests.empty(); });
        size_ -= taken.size();
        return taken;
    }

  private:
    using Parts = std::deque<Item>;  ///< of one request, those that wait
    struct Line {
        std::string client;
        std::deque<Parts> requests;
    };

    template <typename Predicate>
    static void take_out(Parts& parts, Predicate& leaves, std::vector<Item>& taken) {
        for (Item& item : parts) {
            if (leaves(item)) taken.push_back(std::exchange(item, Item()));
        }
        std::erase(parts, Item());
    }

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
