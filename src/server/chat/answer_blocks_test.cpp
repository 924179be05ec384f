#include "server/chat/answer_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coterie::server {
namespace {

using Kind = AnswerEvent::Kind;

/// What a listener hears, as one line.
class Protocol final : public BlockListener {
  public:
    void block_begins(const AnswerBlock& block) override {
        heard += '(';
        heard += std::to_string(block.index);
        heard += block.name;
    }
    void block_grows(const AnswerBlock&, const std::string& text) override {
        heard += '+';
        heard += text;
    }
    void block_ends(const AnswerBlock& block) override {
        heard += '=';
        heard += block.text;
        heard += ')';
    }
    std::string heard;
};

std::string heard(const std::vector<AnswerEvent>& events) {
    Protocol protocol;
    AnswerBlocks blocks(protocol);
    blocks.add(events);
    blocks.finish();
    return protocol.heard;
}

TEST(AnswerBlocks, OpensAndClosesEachOnce) {
    EXPECT_EQ(heard({{Kind::Reasoning, "a"}, {Kind::Reasoning, "b"}, {Kind::Content, "c"}}),
              "(0+a+b=ab)(1+c=c)");
}

TEST(AnswerBlocks, GivesEachCallItsOwn) {
    EXPECT_EQ(heard({{Kind::Content, "x"},
                     {Kind::CallBegin, "", 0, "f", "1"},
                     {Kind::Arguments, "{}", 0},
                     {Kind::CallEnd, "", 0},
                     {Kind::CallBegin, "", 1, "g", "2"},
                     {Kind::Arguments, "{", 1},
                     {Kind::Arguments, "}", 1}}),
              "(0+x=x)(1f+{}={})(2g+{+}={})");
}

TEST(AnswerBlocks, NeverOpensOneWithoutText) {
    EXPECT_EQ(heard({{Kind::Reasoning, ""}, {Kind::Content, ""}}), "");
}

}  // namespace
}  // namespace coterie::server
