// An answer is a row of messages, the first of which the prompt has begun with <|start|>assistant:
//
//     <|channel|>analysis<|message|>thoughts<|end|>
//     <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
//     <|start|>assistant<|channel|>final<|message|>content<|return|>
//
// The recipient may stand before the channel, too. Tokens that end an answer or a message have no text.

#include "chat/tools/formats/call_parser.h"

namespace coterie {
namespace {

constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kRecipient = "to=functions.";
constexpr std::string_view kHeadEnds[] = {kMessage};
constexpr std::string_view kBodyEnds[] = {"<|end|>", "<|return|>", "<|call|>", kStart, kChannel};
constexpr std::size_t kLongestHead = 400;

class HarmonyParser final : public CallParser {
  public:
    using CallParser::CallParser;

    void finish() override {
        const bool is_cut_head =
            state_ == State::Head && (pending_.starts_with(kStart) || pending_.starts_with(kChannel));
        if (state_ == State::Reasoning) writer_.reasoning(pending_);
        if (state_ == State::Reasoning || is_cut_head) pending_.clear();
        CallParser::finish();
    }

  private:
    enum class State { Head, Reasoning, Content, Arguments };

    bool step() override {
        switch (state_) {
            case State::Head:
                return step_head();
            case State::Reasoning:
            case State::Content:
                return step_body();
            case State::Arguments:
                if (!step_json_arguments()) return false;
                state_ = State::Content;
                return true;
        }
        return false;
    }

    /// What does not read as a head is content, up to the next head.
    void reset() override { state_ = State::Content; }
    bool is_behind_call() const override { return false; }

    bool step_head() {
        const auto end = first_marker(pending_, kHeadEnds);
        const bool is_whole = end && end->number == 0;
        if (!is_whole && pending_.size() <= kLongestHead && may_be_head()) return false;
        if (!is_whole || !may_be_head()) {
            // The mark at its front must not be taken for the beginning of a head again.
            const auto mark = first_marker(pending_, kBodyEnds);
            if (mark && mark->place == 0 && mark->number < std::size(kBodyEnds))
                take_bytes(kBodyEnds[mark->number].size());
            give_up();
            return true;
        }
        const std::string head = take_bytes(end->place);
        take_bytes(kMessage.size());
        open_body(head);
        return true;
    }

    /// A head begins with a channel, a recipient or the role.
    bool may_be_head() const {
        for (const std::string_view start :
             {kStart, kChannel, std::string_view("assistant"), kRecipient, kMessage}) {
            if (match(start) != Match::No) return true;
        }
        return false;
    }

    void open_body(const std::string& head) {
        const std::size_t recipient = head.find(kRecipient);
        if (recipient != std::string::npos) {
            const std::size_t start = recipient + kRecipient.size();
            const std::string name = head.substr(start, head.find_first_of(" \n<", start) - start);
            if (!writer_.find(name)) return give_up();
            begin_call(name);
            state_ = State::Arguments;
            return;
        }
        raw_.clear();
        const std::size_t channel = head.find(kChannel);
        const bool is_analysis =
            channel != std::string::npos &&
            trimmed(std::string_view(head).substr(channel + kChannel.size())).starts_with("analysis");
        state_ = is_analysis ? State::Reasoning : State::Content;
    }

    bool step_body() {
        const auto end = first_marker(pending_, kBodyEnds);
        const std::string text = pending_.substr(0, end ? end->place : pending_.size());
        state_ == State::Reasoning ? writer_.reasoning(text) : writer_.content(text);
        pending_.erase(0, text.size());
        if (!end || end->number == std::size(kBodyEnds)) return false;
        const std::string_view marker = kBodyEnds[end->number];
        // A head is read from its first mark on; other marks only end a message.
        if (marker != kStart && marker != kChannel) pending_.erase(0, marker.size());
        raw_.clear();
        state_ = State::Head;
        return true;
    }

    State state_ = State::Head;
};

}  // namespace

std::unique_ptr<CallParser> make_harmony_parser(EventWriter& writer) {
    return std::make_unique<HarmonyParser>(writer);
}

}  // namespace coterie
