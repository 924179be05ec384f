// What holding an answer to a grammar costs per token: grammar_bench [VOCABULARY]. A synthetic vocabulary of
// 150,000 tokens, or that of a file with one token a line in base64 (what stands behind a space is not read,
// as in .tiktoken files).
#include <algorithm>
#include <fmt/core.h>
#include <fstream>
#include <set>
#include <string>
#include <time.h>
#include <vector>

#include "base/split_mix.h"
#include "sampling/grammar/grammar_constraint.h"

namespace coterie {
namespace {

constexpr std::uint64_t kSeed = 7;
constexpr std::size_t kTokens = 150'000;

/// Processor time of this thread in microseconds: other programs do not count.
double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
}

/// Shares as in vocabularies of real models: mostly words with and without a space, then other scripts, then
/// code's punctuation and white space.
std::string random_piece(SplitMix64& random) {
    const auto up_to = [&](std::uint64_t count) { return random.next() % count; };
    const std::uint64_t kind = up_to(100);
    std::string piece;
    if (kind < 75) {
        if (up_to(2) == 0) piece += ' ';
        for (std::uint64_t i = 0, length = 2 + up_to(10); i < length; ++i)
            piece +=
                static_cast<char>((i == 0 && up_to(4) == 0 ? 'A' : 'a') + std::min(up_to(26), up_to(26)));
    } else if (kind < 90) {
        for (std::uint64_t i = 0, length = 1 + up_to(4); i < length; ++i) {
            piece += static_cast<char>(0xE4 + up_to(6));
            piece += static_cast<char>(0x80 + up_to(64));
            piece += static_cast<char>(0x80 + up_to(64));
        }
    } else if (kind < 97) {
        constexpr std::string_view kMarks = "\"{}[]:,.()<>=+-*/\\'_;#\n\t ";
        for (std::uint64_t i = 0, length = 1 + up_to(5); i < length; ++i)
            piece += kMarks[up_to(kMarks.size())];
    } else {
        piece.assign(1 + up_to(40), " \n\t"[up_to(3)]);
    }
    return piece;
}

std::vector<std::string> make_pieces() {
    SplitMix64 random(kSeed);
    std::set<std::string> pieces;
    for (int byte = 0; byte < 256; ++byte) pieces.insert(std::string(1, static_cast<char>(byte)));
    for (const char* common :
         {"{\"", "\":", "\": ", "\": \"", "\",", "\", \"", "\"}", "},", "}}", " {\"", ": \""})
        pieces.insert(common);
    while (pieces.size() < kTokens) pieces.insert(random_piece(random));
    return {pieces.begin(), pieces.end()};
}

/// The longest token each time.
std::vector<std::int32_t> cut(std::string_view text, const std::vector<std::string>& pieces) {
    std::vector<std::int32_t> ids;
    while (!text.empty()) {
        std::size_t length = std::min<std::size_t>(text.size(), 40);
        auto found = pieces.end();
        for (; length > 0; --length) {
            const std::string part(text.substr(0, length));
            found = std::lower_bound(pieces.begin(), pieces.end(), part);
            if (found != pieces.end() && *found == part) break;
        }
        ids.push_back(static_cast<std::int32_t>(found - pieces.begin()));
        text.remove_prefix(length);
    }
    return ids;
}

struct Times {
    double mean = 0;
    double median = 0;
    double highest = 0;
};

Times times_of(GrammarConstraint constraint, const std::vector<std::int32_t>& answer) {
    std::vector<double> times;
    for (const std::int32_t token : answer) {
        const double start = now();
        constraint.mask();
        constraint.accept(token);
        times.push_back(now() - start);
    }
    Times result;
    for (const double time : times) result.mean += time / static_cast<double>(times.size());
    std::sort(times.begin(), times.end());
    result.median = times[times.size() / 2];
    result.highest = times.back();
    return result;
}

void bench(const char* name, const GrammarPointer& grammar, std::string_view answer,
           const std::shared_ptr<const GrammarVocabulary>& vocabulary,
           const std::vector<std::string>& pieces) {
    const double start = now();
    GrammarConstraint constraint(grammar, vocabulary);
    const double made = (now() - start) / 1000;
    const std::vector<std::int32_t> tokens = cut(answer, pieces);
    const double preparing = now();
    constraint.prepare(std::chrono::milliseconds(100));
    const double prepared = (now() - preparing) / 1000;
    const Times first = times_of(constraint, tokens);
    const Times unprepared = times_of(GrammarConstraint(grammar, vocabulary), tokens);
    const Times later = times_of(constraint, tokens);
    fmt::print("{:<22} {:>6} {:>7.1f} ms {:>7.1f} ms", name, tokens.size(), made, prepared);
    for (const Times& times : {unprepared, first, later})
        fmt::print("   {:>9.1f} {:>9.1f} {:>9.1f}", times.mean, times.median, times.highest);
    fmt::print("\n");
}

constexpr std::string_view kAnswer =
    R"({"name": "Ada of the north", "age": 41, "tags": ["first", "second", "third one"], "address": )"
    R"({"street": "Long lane 12", "city": "Grönland", "zip": "01234"}, "active": true, "notes": )"
    R"("A longer text that goes on for a while, with \"quotes\" and a line break.\n It is what a model writes )"
    R"(most of the time when it fills in a form: prose within strings.", "scores": [1.5, 2.25, 1e3]})";

constexpr std::string_view kSchema = R"({"type": "object", "properties": {
    "name": {"type": "string"}, "age": {"type": "integer", "minimum": 0},
    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
    "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"},
        "zip": {"type": "string", "pattern": "^[0-9]{5}$"}}, "required": ["street", "city", "zip"]},
    "active": {"type": "boolean"}, "notes": {"type": "string"MAX},
    "scores": {"type": "array", "items": {"type": "number"}}},
    "required": ["name", "age", "tags", "address", "active", "notes", "scores"]})";

std::string schema(std::string_view notes) {
    std::string text(kSchema);
    text.replace(text.find("MAX"), 3, notes);
    return text;
}

std::string from_base64(std::string_view text) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : text.substr(0, text.find_first_of("= "))) {
        bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(c) & 63);
        count += 6;
        if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 255);
    }
    return bytes;
}

std::vector<std::string> read_pieces(const char* path) {
    std::set<std::string> pieces;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) pieces.insert(from_base64(line));
    pieces.erase("");
    return {pieces.begin(), pieces.end()};
}

void run(const char* path) {
    const std::vector<std::string> pieces = path ? read_pieces(path) : make_pieces();
    std::vector<GrammarToken> tokens;
    for (const std::string& piece : pieces) tokens.push_back({GrammarToken::Kind::Text, piece});
    tokens.push_back({GrammarToken::Kind::End, {}});
    const double start = now();
    const auto vocabulary = std::make_shared<const GrammarVocabulary>(tokens);
    fmt::print("{} tokens, {} nodes, made in {:.0f} ms\n\n", tokens.size(), vocabulary->trie().size(),
               (now() - start) / 1000);
    fmt::print(
        "us per token           tokens  made in   prepared    unprepared: mean, median, highest   prepared: "
        "mean, "
        "median, highest      later: mean, median, highest\n");
    bench("any object", grammar_of_json_objects(), kAnswer, vocabulary, pieces);
    bench("schema", grammar_from_json_schema(schema("")), kAnswer, vocabulary, pieces);
    bench("schema, maxLength 400", grammar_from_json_schema(schema(R"(, "maxLength": 400)")), kAnswer,
          vocabulary, pieces);
    bench("schema, maxLength 4000", grammar_from_json_schema(schema(R"(, "maxLength": 4000)")), kAnswer,
          vocabulary, pieces);
    bench("free text", parse_gbnf("root ::= .*"), kAnswer, vocabulary, pieces);
}

}  // namespace
}  // namespace coterie

int main(int count, char** arguments) { coterie::run(count > 1 ? arguments[1] : nullptr); }
