#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace coterie::cli {

/// One line for a value that a flag cannot take, a missing value, and so on.
std::string describe_parse_error(const CLI::ParseError& error);

/// One line for a word that neither the root nor the chosen command took, with the nearest known one.
std::string describe_unknown(const CLI::App& root, const std::string& word);

/// A flag of one dash and several letters that there is not.
std::string describe_unknown_short_flag(const std::string& word);

}  // namespace coterie::cli
