#include "chat/written_text.h"

#include <algorithm>
#include <fmt/core.h>
#include <random>
#include <string_view>

#include "base/error.h"

namespace coterie {
namespace {

/// Letters and digits only, so that no template treats it specially; nobody can guess it.
std::string random_mark() {
    std::random_device random;
    std::string mark = "mark";
    for (int i = 0; i < 4; ++i) mark += fmt::format("{:08x}", random());
    return mark;
}

/// Templates strip the blanks around a message.
std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\n\r\f\v";
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

struct Marked {
    std::size_t at;  ///< in the marked text
    std::size_t message;
};

std::vector<Marked> find_marks(const std::string& text, const std::vector<std::string>& marks) {
    std::vector<Marked> found;
    for (std::size_t m = 0; m < marks.size(); ++m) {
        if (marks[m].empty()) continue;
        for (std::size_t at = text.find(marks[m]); at != std::string::npos;
             at = text.find(marks[m], at + 1)) {
            found.push_back({at, m});
        }
    }
    std::sort(found.begin(), found.end(), [](const Marked& a, const Marked& b) { return a.at < b.at; });
    return found;
}

[[noreturn]] void refuse() {
    fail(ErrorCode::InvalidArgument,
         "a message holds the text of a control token, and this model's template leaves open whose it is; "
         "write it "
         "differently");
}

/// Takes `piece` off the front of `text`.
bool take(std::string_view& text, std::string_view piece) {
    if (text.substr(0, piece.size()) != piece) return false;
    text.remove_prefix(piece.size());
    return true;
}

/// The ranges of the messages in `rendered`, of which `marked` is the form with marks.
std::vector<ByteRange> align(std::string_view rendered, std::string_view marked,
                             const std::vector<Marked>& found, const std::vector<std::string>& contents,
                             std::size_t mark_length) {
    std::vector<ByteRange> ranges;
    const std::size_t size = rendered.size();
    std::size_t from = 0;
    for (const Marked& mark : found) {
        if (!take(rendered, marked.substr(from, mark.at - from))) refuse();
        const std::size_t begin = size - rendered.size();
        const std::string_view content = contents[mark.message];
        if (!take(rendered, content) && !take(rendered, trimmed(content))) refuse();
        ranges.push_back({begin, size - rendered.size()});
        from = mark.at + mark_length;
    }
    if (rendered != marked.substr(from)) refuse();
    return ranges;
}

}  // namespace

WrittenText render_written(const std::vector<std::string>& contents, const std::vector<bool>& suspicious,
                           RenderContents render) {
    WrittenText result{render(contents), {}};
    if (std::find(suspicious.begin(), suspicious.end(), true) == suspicious.end()) return result;
    std::vector<std::string> marks(contents.size());
    std::vector<std::string> marked = contents;
    std::size_t mark_length = 0;
    for (std::size_t m = 0; m < contents.size(); ++m) {
        if (!suspicious[m]) continue;
        marked[m] = marks[m] = random_mark();
        mark_length = marks[m].size();
    }
    const std::string with_marks = render(marked);
    result.ranges = align(result.rendered, with_marks, find_marks(with_marks, marks), contents, mark_length);
    return result;
}

}  // namespace coterie
