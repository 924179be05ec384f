#pragma once

#include <string>
#include <string_view>

namespace coterie::cli {

/// The whole file, byte by byte; "-" is standard input. Throws NotFound, Io or, for a directory,
/// InvalidArgument naming the path.
std::string read_whole_file(const std::string& path);

/// The same of a text. Throws InvalidFile naming file and offset where it is not UTF-8 or has a null byte.
std::string read_text_file(const std::string& path);

/// Turns \n, \t, \r, \\, \', \" and \xHH into the characters they stand for; anything else stays as written.
std::string process_escapes(std::string_view text);

}  // namespace coterie::cli
