#include "server/chat/answer_blocks.h"

#include <utility>

namespace coterie::server {

void AnswerBlocks::add(const std::vector<AnswerEvent>& events) {
    for (const AnswerEvent& event : events) add(event);
}

void AnswerBlocks::add(const AnswerEvent& event) {
    switch (event.kind) {
        case AnswerEvent::Kind::Reasoning:
            return grow(AnswerBlock::Kind::Reasoning, event.text);
        case AnswerEvent::Kind::Content:
            return grow(AnswerBlock::Kind::Text, event.text);
        case AnswerEvent::Kind::CallBegin:
            return begin({AnswerBlock::Kind::Call, 0, {}, event.name, event.id});
        case AnswerEvent::Kind::Arguments:
            return grow(AnswerBlock::Kind::Call, event.text);
        case AnswerEvent::Kind::CallEnd:
            return end();
    }
}

void AnswerBlocks::grow(AnswerBlock::Kind kind, const std::string& text) {
    if (text.empty()) return;
    if (!open_ || current_.kind != kind) begin({kind, 0, {}, {}, {}});
    current_.text += text;
    listener_.block_grows(current_, text);
}

void AnswerBlocks::begin(AnswerBlock block) {
    end();
    current_ = std::move(block);
    current_.index = next_index_++;
    open_ = true;
    listener_.block_begins(current_);
}

void AnswerBlocks::end() {
    if (!open_) return;
    open_ = false;
    listener_.block_ends(current_);
}

void AnswerBlocks::finish() { end(); }

}  // namespace coterie::server
