#include "tokenizer/pre_tokenizer/pre_tokenizer.h"

#include "tokenizer/utf8.h"

namespace coterie {
namespace {

/// The end of the stretch from `begin` that is all characters (`true`) or all other bytes (`false`).
std::size_t stretch_end(std::string_view text, std::size_t begin, bool characters) {
    std::size_t position = begin;
    while (position < text.size()) {
        const Utf8Step step = utf8_step(text, position);
        if ((step.kind == Utf8Step::Kind::Character) != characters) break;
        position += step.bytes;
    }
    return position;
}

}  // namespace

PreTokenizer::PreTokenizer(const PreTokenizerFamily& family) {
    for (const std::string_view expression : family.patterns) patterns_.emplace_back(expression);
}

void PreTokenizer::split(std::string_view text, FunctionRef<void(std::string_view)> fragment) const {
    std::size_t position = 0;
    while (position < text.size()) {
        const std::size_t characters_end = stretch_end(text, position, true);
        if (characters_end > position)
            apply_from(0, text.substr(position, characters_end - position), fragment);
        position = stretch_end(text, characters_end, false);
        if (position > characters_end) fragment(text.substr(characters_end, position - characters_end));
    }
}

void PreTokenizer::apply_from(std::size_t level, std::string_view text,
                              FunctionRef<void(std::string_view)> fragment) const {
    if (level == patterns_.size()) return fragment(text);
    patterns_[level].split(text, [&](std::string_view part) { apply_from(level + 1, part, fragment); });
}

}  // namespace coterie
