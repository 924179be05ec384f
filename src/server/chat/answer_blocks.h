#pragma once

#include <string>
#include <vector>

#include "chat/tools/answer_parser.h"

namespace coterie::server {

/// A stretch of an answer of one kind: how Anthropic's API and OpenAI's Responses tell answers.
struct AnswerBlock {
    enum class Kind { Reasoning, Text, Call };
    Kind kind = Kind::Text;
    std::size_t index = 0;
    std::string text;  ///< of a call: its arguments
    std::string name;  ///< of a call
    std::string id;    ///< of a call
};

/// Told while an answer's blocks come.
class BlockListener {
  public:
    virtual ~BlockListener() = default;
    virtual void block_begins(const AnswerBlock& block) = 0;
    virtual void block_grows(const AnswerBlock& block, const std::string& text) = 0;
    /// The block is whole.
    virtual void block_ends(const AnswerBlock& block) = 0;
};

/// Cuts an answer's events into blocks. A block never begins without something to say in it, and ends once.
class AnswerBlocks {
  public:
    explicit AnswerBlocks(BlockListener& listener) : listener_(listener) {}

    void add(const std::vector<AnswerEvent>& events);
    void finish();

  private:
    void add(const AnswerEvent& event);
    void grow(AnswerBlock::Kind kind, const std::string& text);
    void begin(AnswerBlock block);
    void end();

    BlockListener& listener_;
    AnswerBlock current_;
    bool open_ = false;
    std::size_t next_index_ = 0;
};

/// Keeps them all, for an answer that is told at once.
class BlockCollector final : public BlockListener {
  public:
    void block_begins(const AnswerBlock&) override {}
    void block_grows(const AnswerBlock&, const std::string&) override {}
    void block_ends(const AnswerBlock& block) override { blocks_.push_back(block); }
    const std::vector<AnswerBlock>& blocks() const { return blocks_; }

  private:
    std::vector<AnswerBlock> blocks_;
};

}  // namespace coterie::server
