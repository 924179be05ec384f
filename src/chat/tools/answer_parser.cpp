#include "chat/tools/answer_parser.h"

#include <utility>

#include "base/error.h"
#include "chat/tools/formats/call_parser.h"

namespace coterie {
namespace {

std::unique_ptr<CallParser> make_call_parser(ToolFormat format, EventWriter& writer) {
    if (format == ToolFormat::Harmony) return make_harmony_parser(writer);
    if (!writer.has_tools()) return nullptr;
    switch (format) {
        case ToolFormat::Hermes:
            return make_hermes_parser(writer);
        case ToolFormat::QwenCoder:
            return make_qwen_coder_parser(writer);
        case ToolFormat::Glm:
            return make_glm_parser(writer);
        case ToolFormat::DeepSeek:
            return make_deepseek_parser(writer, true);
        case ToolFormat::DeepSeek31:
            return make_deepseek_parser(writer, false);
        case ToolFormat::MistralList:
        case ToolFormat::MistralArgs:
            return make_mistral_parser(writer);
        case ToolFormat::Harmony:
        case ToolFormat::None:
            return nullptr;
    }
    return nullptr;
}

/// Thoughts are taken off first; calls are looked for in the content.
class LayeredParser final : public AnswerParser {
  public:
    explicit LayeredParser(AnswerParserOptions options)
        : writer_(std::move(options.tools), options.id_seed),
          calls_(make_call_parser(options.format, writer_)) {
        if (options.format != ToolFormat::Harmony) thoughts_.emplace(options.tags, options.start);
    }

    void feed(std::string_view text, std::vector<AnswerEvent>& events) override {
        writer_.write_to(events);
        if (thoughts_) {
            deliver(thoughts_->feed(text));
        } else {
            calls_->feed(text);
        }
    }

    void finish(std::vector<AnswerEvent>& events) override {
        writer_.write_to(events);
        if (thoughts_) deliver(thoughts_->finish());
        if (calls_) calls_->finish();
        writer_.finish();
    }

  private:
    void deliver(const ReasoningDelta& delta) {
        writer_.reasoning(delta.reasoning);
        if (calls_) {
            calls_->feed(delta.content);
        } else {
            writer_.content(delta.content);
        }
    }

    EventWriter writer_;
    std::unique_ptr<CallParser> calls_;  ///< or null
    std::optional<ReasoningSplitter> thoughts_;
};

}  // namespace

std::unique_ptr<AnswerParser> make_answer_parser(AnswerParserOptions options) {
    return std::make_unique<LayeredParser>(std::move(options));
}

ParsedAnswer collect(std::span<const AnswerEvent> events) {
    ParsedAnswer answer;
    for (const AnswerEvent& event : events) {
        switch (event.kind) {
            case AnswerEvent::Kind::Reasoning:
                answer.reasoning += event.text;
                break;
            case AnswerEvent::Kind::Content:
                answer.content += event.text;
                break;
            case AnswerEvent::Kind::CallBegin:
                answer.calls.push_back({event.name, event.id, {}, false});
                break;
            case AnswerEvent::Kind::Arguments:
                answer.calls.at(event.call).arguments += event.text;
                break;
            case AnswerEvent::Kind::CallEnd:
                answer.calls.at(event.call).complete = true;
                break;
        }
    }
    return answer;
}

}  // namespace coterie
