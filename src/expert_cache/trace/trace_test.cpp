#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <unistd.h>

#include "base/error.h"
#include "expert_cache/trace/trace_reader.h"
#include "expert_cache/trace/trace_writer.h"
#include "expert_cache/trace/traces_for_test.h"

namespace coterie::expert_cache {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::open_trace;
using testing::random_token;
using testing::Token;
using testing::trace_header;
using testing::whole_trace;

constexpr std::uint64_t kSeed = 20240731;

std::vector<std::byte> file_bytes(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

std::vector<Token> random_tokens(const TraceHeader& header, std::size_t count) {
    SplitMix64 random(kSeed);
    std::vector<Token> tokens;
    for (std::size_t i = 0; i < count; ++i) tokens.push_back(random_token(random, header));
    return tokens;
}

void expect_tokens(const TraceReader& trace, const std::vector<Token>& tokens) {
    ASSERT_EQ(trace.tokens(), static_cast<std::int64_t>(tokens.size()));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        Token read(tokens[i].size());
        trace.read(static_cast<std::int64_t>(i), read);
        EXPECT_EQ(read, tokens[i]) << "token " << i;
    }
}

std::string refusal(std::span<const std::byte> bytes) {
    try {
        TraceReader trace(bytes, "x.trace");
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::InvalidFile);
        return error.what();
    }
    return "";
}

TEST(TraceTest, ComesBackAsItWasWritten) {
    const fs::path path = fs::temp_directory_path() / ("coterie-trace-" + std::to_string(getpid()));
    for (const std::int32_t experts : {1, 8, 255, 256, 1000}) {
        const TraceHeader header = trace_header(5, experts, std::min(experts, 6));
        const std::vector<Token> tokens = random_tokens(header, 2000);  // more than a buffer holds
        {
            TraceWriter writer(path.string(), header);
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                writer.add(static_cast<std::uint32_t>(i / 3), tokens[i]);
            }
            writer.finish();
        }
        const std::vector<std::byte> bytes = file_bytes(path);
        const TraceReader trace(bytes, "trace");
        EXPECT_EQ(trace.warning(), "");
        EXPECT_EQ(trace.header().model_hash, header.model_hash);
        EXPECT_EQ(trace.header().experts, experts);
        EXPECT_EQ(trace.header().used, header.used);
        ASSERT_EQ(trace.header().layers.size(), 5u);
        EXPECT_EQ(trace.header().layers[4].layer, 5);
        EXPECT_EQ(trace.header().layers[4].expert_bytes, 1004u);
        EXPECT_EQ(trace.step(7), 2u);
        expect_tokens(trace, tokens);
    }
    fs::remove(path);
}

TEST(TraceTest, AnUnfinishedFileReadsAsCut) {
    const fs::path path = fs::temp_directory_path() / ("coterie-cut-trace-" + std::to_string(getpid()));
    const TraceHeader header = trace_header(2, 9, 3);
    const std::vector<Token> tokens = random_tokens(header, 10);
    {
        TraceWriter writer(path.string(), header);
        for (std::size_t i = 0; i < tokens.size(); ++i) writer.add(static_cast<std::uint32_t>(i), tokens[i]);
    }
    const std::vector<std::byte> bytes = file_bytes(path);
    const TraceReader trace(bytes, "x.trace");
    EXPECT_THAT(trace.warning(), AllOf(HasSubstr("x.trace"), HasSubstr("cut"), HasSubstr("10 tokens")));
    expect_tokens(trace, tokens);
    fs::remove(path);
}

TEST(TraceTest, GivesEveryTokenBeforeACut) {
    const TraceHeader header = trace_header(2, 9, 3);
    const std::vector<Token> tokens = random_tokens(header, 6);
    const std::vector<std::byte> bytes = whole_trace(header, tokens);
    const std::size_t first = trace_format::encode_header(header).size();
    for (std::size_t length = first; length < bytes.size(); ++length) {
        SCOPED_TRACE(length);
        const TraceReader trace({bytes.data(), length}, "x.trace");
        EXPECT_NE(trace.warning(), "");
        const std::size_t whole =
            std::min(tokens.size(), (length - first) / trace_format::record_bytes(header));
        expect_tokens(trace, {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(whole)});
    }
    for (std::size_t length = 0; length < first; ++length) {
        EXPECT_NE(refusal({bytes.data(), length}), "") << length;
    }
}

TEST(TraceTest, RefusesEveryFlippedBit) {
    const TraceHeader header = trace_header(2, 9, 3);
    const std::vector<std::byte> bytes = whole_trace(header, random_tokens(header, 4));
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        std::vector<std::byte> damaged = bytes;
        damaged[bit / 8] ^= std::byte{1} << (bit % 8);
        EXPECT_THAT(refusal(damaged), AllOf(HasSubstr("x.trace"), HasSubstr("byte "))) << "bit " << bit;
    }
}

TEST(TraceTest, RefusesLiesThatCarryARightChecksum) {
    const TraceHeader header = trace_header(1, 4, 2);
    const std::string offset = std::to_string(trace_format::encode_header(header).size());
    EXPECT_THAT(refusal(whole_trace(header, {{0, 4}})), AllOf(HasSubstr("expert 4"), HasSubstr(offset)));
    EXPECT_THAT(refusal(whole_trace(header, {{3, 3}})), HasSubstr("expert 3"));
    EXPECT_THAT(refusal(whole_trace(header, {{-1, 3}})), HasSubstr("expert 3"));

    std::vector<std::byte> bytes = open_trace(header, {{0, 1}, {1, 2}});
    testing::append(bytes, trace_format::encode_trailer(3));
    EXPECT_THAT(refusal(bytes), HasSubstr("says 3 tokens, and there are 2"));
    bytes = whole_trace(header, {{0, 1}});
    bytes.push_back({});
    EXPECT_THAT(refusal(bytes), HasSubstr("1 bytes behind the end"));

    std::vector<std::byte> record(trace_format::record_bytes(header));
    bytes = open_trace(header, {{0, 1}});
    trace_format::encode_record(header, 1, 7, Token{0, 1}, record.data());
    testing::append(bytes, record);
    EXPECT_THAT(refusal(bytes), HasSubstr("step 7 behind step 0"));
}

TEST(TraceTest, RefusesHeadersThatNoTraceHas) {
    TraceHeader none = trace_header(0, 4, 2);
    EXPECT_THAT(refusal(whole_trace(none, {})), HasSubstr("layers"));
    EXPECT_THAT(refusal(whole_trace(trace_header(1, 0, 0), {})), HasSubstr("experts"));
    EXPECT_THAT(refusal(whole_trace(trace_header(1, 4, 5), {})), HasSubstr("no more than"));
    EXPECT_THAT(refusal(whole_trace(trace_header(1, 4096, 257), {})), HasSubstr("256"));
    EXPECT_THAT(refusal(whole_trace(trace_header(1, 4097, 2), {})), HasSubstr("4096"));
    EXPECT_THAT(refusal(whole_trace(trace_header(1025, 4, 2), {})), HasSubstr("layers"));
    TraceHeader twice = trace_header(2, 4, 2);
    twice.layers[1].layer = twice.layers[0].layer;
    EXPECT_THAT(refusal(whole_trace(twice, {})), HasSubstr("order"));
    EXPECT_THROW(TraceWriter("/dev/null", none), Error);
}

TEST(TraceTest, AFullDiskIsAnIoError) {
    const TraceHeader header = trace_header(2, 9, 3);
    try {
        TraceWriter writer("/dev/full", header);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Io);
        EXPECT_THAT(error.what(), HasSubstr("/dev/full"));
    }
}

// The seeds in the repository are what today's writer makes of `fuzz_seeds`.
TEST(TraceTest, FuzzSeedsAreCurrent) {
    const fs::path corpus = fs::path(COTERIE_SOURCE_DIR) / "tests/fuzz/trace";
    const fs::path fresh = fs::path(::testing::TempDir()) / "trace-seeds";
    fs::create_directories(fresh);
    for (const auto& [name, bytes] : testing::fuzz_seeds()) {
        std::ofstream(fresh / name, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        EXPECT_EQ(refusal(bytes), "") << name;
        EXPECT_TRUE(file_bytes(corpus / name) == bytes)
            << name << " is out of date: cp " << (fresh / name) << ' ' << corpus;
    }
}

}  // namespace
}  // namespace coterie::expert_cache
