#include "scheduler/prefix/prefix_tree.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace coterie::scheduler {

struct PrefixTree::Node {
    std::vector<TokenId> label;  ///< tokens between the parent and here; empty only at the root
    Node* parent = nullptr;
    std::map<TokenId, std::unique_ptr<Node>> children;  ///< by the first token of their label
    std::vector<Id> ids;                                ///< sequences that end here
};

namespace {

std::size_t common(std::span<const TokenId> a, std::span<const TokenId> b) {
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

PrefixTree::PrefixTree() : root_(std::make_unique<Node>()) {}
PrefixTree::~PrefixTree() = default;

void PrefixTree::insert(Id id, std::span<const TokenId> tokens) {
    COTERIE_CHECK(!ends_.contains(id));
    Node* node = root_.get();
    while (!tokens.empty()) {
        std::unique_ptr<Node>& child = node->children[tokens.front()];
        if (!child) {
            child = std::make_unique<Node>();
            child->label.assign(tokens.begin(), tokens.end());
            child->parent = node;
            node = child.get();
            break;
        }
        const std::size_t shared = common(child->label, tokens);
        if (shared < child->label.size()) split(*child, shared);
        node = child.get();
        tokens = tokens.subspan(shared);
    }
    node->ids.push_back(id);
    ends_.emplace(id, node);
}

/// Makes a node of the first `length` tokens of the label; the rest becomes its child. Sequences that ended
/// at the node move with the rest, so the pointers to it are swapped and not looked for.
void PrefixTree::split(Node& node, std::size_t length) {
    auto upper = std::make_unique<Node>();
    upper->label.assign(node.label.begin(), node.label.begin() + static_cast<std::ptrdiff_t>(length));
    upper->parent = node.parent;
    std::unique_ptr<Node>& place = node.parent->children[node.label.front()];
    node.label.erase(node.label.begin(), node.label.begin() + static_cast<std::ptrdiff_t>(length));
    node.parent = upper.get();
    const TokenId first = node.label.front();
    upper->children[first] = std::exchange(place, nullptr);
    place = std::move(upper);
}

void PrefixTree::remove(Id id) {
    const auto found = ends_.find(id);
    if (found == ends_.end()) return;
    Node* node = found->second;
    ends_.erase(found);
    std::erase(node->ids, id);
    prune(node);
}

/// Takes out what no sequence needs any more, from `node` upwards, and joins what then has one way on.
void PrefixTree::prune(Node* node) {
    while (node != root_.get() && node->ids.empty() && node->children.empty()) {
        Node* parent = node->parent;
        parent->children.erase(node->label.front());
        node = parent;
    }
    if (node == root_.get() || !node->ids.empty() || node->children.size() != 1) return;
    std::unique_ptr<Node> child = std::move(node->children.begin()->second);
    child->label.insert(child->label.begin(), node->label.begin(), node->label.end());
    child->parent = node->parent;
    std::unique_ptr<Node>& place = node->parent->children[child->label.front()];
    place = std::move(child);
}

void PrefixTree::collect(const Node& node, std::int64_t length, std::vector<Match>& into) {
    for (const Id id : node.ids) into.push_back({id, length});
    for (const auto& [token, child] : node.children) collect(*child, length, into);
}

std::vector<PrefixTree::Match> PrefixTree::matches(std::span<const TokenId> tokens) const {
    std::vector<Match> found;
    const Node* node = root_.get();
    std::int64_t length = 0;
    while (true) {
        const Node* next = nullptr;
        std::size_t shared = 0;
        if (const auto child = tokens.empty() ? node->children.end() : node->children.find(tokens.front());
            child != node->children.end()) {
            next = child->second.get();
            shared = common(next->label, tokens);
        }
        if (length > 0) {
            for (const Id id : node->ids) found.push_back({id, length});
            for (const auto& [token, other] : node->children) {
                if (other.get() != next) collect(*other, length, found);
            }
        }
        if (next == nullptr) break;
        length += static_cast<std::int64_t>(shared);
        if (shared < next->label.size()) {
            collect(*next, length, found);
            break;
        }
        tokens = tokens.subspan(shared);
        node = next;
    }
    std::reverse(found.begin(), found.end());
    std::stable_sort(found.begin(), found.end(),
                     [](const Match& a, const Match& b) { return a.length > b.length; });
    return found;
}

namespace {

template <typename Node, typename Visit>
void visit_all(const Node& node, Visit& visit) {
    visit(node);
    for (const auto& [token, child] : node.children) visit_all(*child, visit);
}

}  // namespace

std::size_t PrefixTree::nodes() const {
    std::size_t count = 0;
    auto visit = [&](const Node&) { ++count; };
    visit_all(*root_, visit);
    return count;
}

void PrefixTree::check_integrity() const {
    std::size_t ids = 0;
    auto visit = [&](const Node& node) {
        ids += node.ids.size();
        for (const Id id : node.ids) COTERIE_CHECK(ends_.at(id) == &node);
        for (const auto& [token, child] : node.children) {
            COTERIE_CHECK(child->parent == &node && !child->label.empty() && child->label.front() == token);
        }
        if (&node != root_.get()) COTERIE_CHECK(!node.ids.empty() || node.children.size() > 1);
    };
    visit_all(*root_, visit);
    COTERIE_CHECK(ids == ends_.size());
}

}  // namespace coterie::scheduler
