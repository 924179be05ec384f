#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace coterie::commands_test {

inline const std::string kModel = COTERIE_SOURCE_DIR "/models/demo-dictionary-29m-q5_k_s.gguf";
inline const std::string kDemoData = COTERIE_SOURCE_DIR "/tests/data/demo/";

/// How a program ended and what it said.
struct Outcome {
    int status = -1;  ///< exit status; -1 when a signal ended it
    std::string output;
    std::string errors;
};

/// The built program with its three streams in our hands. COTERIE_ variables of our own environment do not
/// reach it. A program that runs too long is killed and fails the test.
class Program {
  public:
    struct Setting {
        std::string name = "coterie";               ///< argv[0]
        std::vector<std::string> environment = {};  ///< "NAME=value"
        std::string output_to = {};                 ///< path that takes standard output; empty: the test
        std::string errors_to = {};                 ///< the same of standard error; "-": it is closed
    };

    explicit Program(std::vector<std::string> arguments) : Program(std::move(arguments), Setting{}) {}
    Program(std::vector<std::string> arguments, const Setting& setting);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    void send(std::string_view text);
    void close_input();

    /// Waits until standard output, so far, has at least `bytes` bytes or ends.
    void wait_for_output(std::size_t bytes);
    /// The same of standard error, until it holds the text.
    void wait_for_errors(std::string_view text);
    /// Until standard output ends.
    void wait_for_end_of_output();

    void send_signal(int signal);
    /// As Ctrl-C does.
    void interrupt();

    /// Closes the program's input and waits for its end.
    Outcome finish();

  private:
    bool read_more();

    pid_t process_ = -1;
    int input_ = -1;
    int output_ = -1;
    int errors_ = -1;
    Outcome outcome_;
};

/// Runs the program to its end.
Outcome run(std::vector<std::string> arguments, std::string_view input = "");

/// The output of a run that must succeed.
std::string output_of(std::vector<std::string> arguments, std::string_view input = "");

/// A run that must fail with this status, nothing on standard output and one line on standard error which
/// holds every one of the texts.
void expect_error(std::vector<std::string> arguments, int status, const std::vector<std::string>& texts);

/// An empty folder for the running test, removed with the object.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    std::string file(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

void write_file(const std::string& path, std::string_view bytes);
std::string read_file(const std::string& path);

}  // namespace coterie::commands_test
