#include "cli/text_input.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace coterie::cli {
namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/// The character that `c` stands for behind a backslash; 0 where it stands for itself and the backslash
/// stays.
char simple_escape(char c) {
    switch (c) {
        case 'n':
            return '\n';
        case 't':
            return '\t';
        case 'r':
            return '\r';
        case '\\':
        case '\'':
        case '"':
            return c;
        default:
            return 0;
    }
}

}  // namespace

std::string read_whole_file(const std::string& path) {
    if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
    if (!std::filesystem::exists(path)) fail(ErrorCode::NotFound, "{}: no such file", path);
    if (std::filesystem::is_directory(path)) {
        fail(ErrorCode::InvalidArgument, "{}: is a directory; give the path of a file", path);
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) fail(ErrorCode::Io, "{}: cannot be read", path);
    try {
        return {std::istreambuf_iterator<char>(file), {}};
    } catch (const std::ios_base::failure&) {
        fail(ErrorCode::Io, "{}: cannot be read to its end", path);
    }
}

std::string read_text_file(const std::string& path) {
    std::string text = read_whole_file(path);
    for (std::size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        if (step.kind != Utf8Step::Kind::Character || text[at] == '\0') {
            fail(ErrorCode::InvalidFile, "{}: byte {} is {:#04x}, which is no UTF-8 text; give a text file",
                 path == "-" ? "standard input" : path, at, static_cast<unsigned char>(text[at]));
        }
        at += step.bytes;
    }
    return text;
}

std::string process_escapes(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            result += text[i];
            continue;
        }
        if (const char c = simple_escape(text[i + 1])) {
            result += c;
            ++i;
        } else if (text[i + 1] == 'x' && i + 3 < text.size() && hex_digit(text[i + 2]) >= 0 &&
                   hex_digit(text[i + 3]) >= 0) {
            result += static_cast<char>(hex_digit(text[i + 2]) * 16 + hex_digit(text[i + 3]));
            i += 3;
        } else {
            result += text[i];
        }
    }
    return result;
}

}  // namespace coterie::cli
