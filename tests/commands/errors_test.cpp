#include <cctype>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

#include "program.h"

// Error texts and exit codes are part of the interface: docs/command-line.md.
namespace coterie::commands_test {
namespace {

using ::testing::HasSubstr;

TEST(ErrorsTest, SuggestsTheNearestFlag) {
    expect_error({"run", "--tmp", "0", "Hello"}, 2, {"'--tmp'", "'run'", "did you mean '--temp'?"});
    expect_error({"bench", "--repetition", "3"}, 2, {"'--repetition'", "did you mean '--repetitions'?"});
    expect_error({"logits", "--tokns", "1"}, 2, {"'--tokns'", "did you mean '--tokens'?"});
    expect_error({"inspect", "--jsn=1"}, 2, {"'--jsn'", "did you mean '--json'?"});
    expect_error({"tokenize", "--wholly-unknown", "x"}, 2, {"'--wholly-unknown'", "coterie tokenize --help"});
}

TEST(ErrorsTest, NamesTheUnknownFlagWhateverStandsBesideIt) {
    expect_error({"run", "--tmep", "0", "-p", "Hello"}, 2, {"'--tmep'", "did you mean '--temp'?"});
    expect_error({"run", "--n-gen", "5", "-p", "Hello"}, 2, {"'--n-gen'"});
}

TEST(ErrorsTest, TakesNoUnknownWordOfOneDashForALetterWithAValue) {
    for (const char* word : {"-hf", "-ngll", "-mli", "-md", "-pgg"}) {
        expect_error({"run", word, "x"}, 2, {"unknown flag '" + std::string(word) + "'"});
    }
    expect_error({"run", "-ngll", "5"}, 2, {"did you mean '-ngl'?"});
}

TEST(ErrorsTest, AnEmptyNumberIsNoNumber) {
    for (const char* flag : {"--temp", "-n", "--seed", "--top-k"})
        expect_error({"run", flag, "", "Hello"}, 2, {"number"});
    expect_error({"logits", "-m", kModel, "--tokens", ""}, 2, {"--tokens"});
}

TEST(ErrorsTest, FindsTokensOutsideTheVocabularyBeforeItWritesAnything) {
    expect_error({"logits", "-m", kModel, "--tokens", "1,8192"}, 2, {"8192", "vocabulary"});
}

TEST(ErrorsTest, RefusesAContextThatMemoryDoesNotHold) {
    const Outcome outcome = run({"run", "-m", kModel, "-c", "16777216", "Hello"});
    EXPECT_EQ(outcome.status, 4);
    EXPECT_THAT(outcome.errors, HasSubstr("use a smaller -c"));
}

TEST(ErrorsTest, WhatAFileHoldsCannotCommandATerminal) {
    std::string model = read_file(kModel);
    const std::size_t at = model.find("glm4moe");
    ASSERT_NE(at, std::string::npos);
    model.replace(at, 7, "\x1b[31m\n\a");
    TemporaryFolder folder;
    write_file(folder.file("evil.gguf"), model);
    const Outcome outcome = run({"run", "-m", folder.file("evil.gguf"), "Hello"});
    EXPECT_EQ(outcome.status, 3);
    EXPECT_EQ(outcome.errors.find('\x1b'), std::string::npos) << outcome.errors;
    EXPECT_EQ(outcome.errors.find('\a'), std::string::npos);
}

TEST(ErrorsTest, OutputThatCannotBeWrittenIsAnError) {
    const std::vector<std::vector<std::string>> commands = {{"--help"},
                                                            {"--version"},
                                                            {"run", "-m", kModel, "-n", "3", "Hello"},
                                                            {"tokenize", "-m", kModel, "-p", "Hello"},
                                                            {"inspect", "-m", kModel},
                                                            {"plan", "-m", kModel},
                                                            {"logits", "-m", kModel, "--tokens", "1"},
                                                            {"synth", "tiny-olmoe", "--plan"}};
    for (const std::vector<std::string>& command : commands) {
        SCOPED_TRACE(command.front());
        Program program(command, {.output_to = "/dev/full"});
        const Outcome outcome = program.finish();
        EXPECT_EQ(outcome.status, 5);
        EXPECT_THAT(outcome.errors, HasSubstr("cannot be written"));
    }
}

TEST(ErrorsTest, MessagesThatNobodyGetsStopNothing) {
    const std::string expected = output_of({"run", "--temp", "0", "-n", "5", "define volcano"});
    for (const char* errors : {"/dev/full", "-"}) {
        Program program({"run", "--temp", "0", "-n", "5", "define volcano"}, {.errors_to = errors});
        const Outcome outcome = program.finish();
        EXPECT_EQ(outcome.status, 0) << errors;
        EXPECT_EQ(outcome.output, expected) << errors;
        Program wrong({"run", "--nonsense"}, {.errors_to = errors});
        EXPECT_EQ(wrong.finish().status, 2) << errors;
    }
}

TEST(ErrorsTest, SuggestsTheNearestCommand) {
    expect_error({"perplexty"}, 2, {"'perplexty'", "did you mean 'perplexity'?"});
    expect_error({"zzzzzzzz"}, 2, {"'zzzzzzzz'", "coterie --help"});
    expect_error({"--temp", "0"}, 2, {"'--temp'", "before any command"});
}

TEST(ErrorsTest, NamesTheFlagOfABadValue) {
    expect_error({"run", "--temp", "hot", "Hello"}, 2, {"--temp: hot is not a number"});
    expect_error({"run", "-m", kModel, "--top-p", "7", "Hello"}, 2, {"top", "7"});
    expect_error({"run", "-t", "0", "Hello"}, 2, {"--threads", "from 1 to 1024"});
    expect_error({"run", "-p"}, 2, {"--prompt needs a value"});
    expect_error({"run", "-m", kModel, "-ctk", "q9", "Hello"}, 2, {"--cache-type-k", "q9", "q8_0"});
    expect_error({"run", "-m", kModel, "-l", "x", "Hello"}, 2, {"--logit-bias", "x"});
    expect_error({"run", "-m", kModel, "--samplers", "top_k;magic", "Hello"}, 2, {"magic"});
    expect_error({"run", "-m", kModel, "--cpu-isa", "avx9", "Hello"}, 2, {"--cpu-isa", "avx9", "avx2"});
    expect_error({"run", "-m", kModel, "--load-mode", "fast", "Hello"}, 2, {"--load-mode", "fast", "dio"});
    expect_error({"bench", "-o", "xml"}, 2, {"--output", "xml"});
    expect_error({"bench", "-p", "0", "-n", "0"}, 2, {"nothing to measure"});
    expect_error({"logits", "--tokens", "1,two"}, 2, {"--tokens"});
    expect_error({"logits"}, 2, {"--tokens"});
}

struct BadValue {
    std::vector<std::string> command;
    const char* flag;
    const char* value;
    const char* names;  ///< what the line holds besides the value
};

/// Whatever a flag cannot have is a fault of the command line, wherever it is found.
TEST(ErrorsTest, EveryBadValueEndsWithTheStatusOfFlags) {
    const std::vector<std::string> run_it{"run", "-m", kModel, "-n", "1", "Hello"};
    const std::vector<std::string> bench_it{"bench", "-m", kModel, "-p", "0", "-n", "1", "-r", "1"};
    const std::vector<std::string> serve_it{"serve", "-m", kModel, "--port", "0"};
    const std::vector<std::string> synth_it{"synth", "tiny-olmoe", "--plan"};
    const BadValue cases[] = {
        {run_it, "-n", "-7", "--n-predict"},
        {run_it, "-s", "x", "--seed"},
        {run_it, "-c", "-1", "--ctx-size"},
        {run_it, "-c", "99999999999", "--ctx-size"},
        {run_it, "-t", "1025", "--threads"},
        {run_it, "-tb", "x", "--threads-batch"},
        {run_it, "-b", "0", "--batch-size"},
        {run_it, "-ub", "0", "--ubatch-size"},
        {run_it, "-ctv", "q4_0", "--cache-type-v"},
        {run_it, "-fa=maybe", "", "--flash-attn"},
        {run_it, "--pre-tokenizer", "bogus", "--pre-tokenizer"},
        {run_it, "--chat-template", "{{ x", "--chat-template"},
        {run_it, "--chat-template", "nosuch", "--chat-template"},
        {run_it, "-ngl", "many", "--n-gpu-layers"},
        {run_it, "-sm", "row", "--split-mode"},
        {run_it, "-mg", "-1", "--main-gpu"},
        {run_it, "-lv", "x", "--log-verbosity"},
        {run_it, "--ram", "1X", "--ram"},
        {run_it, "--vram", "4G,none", "--vram"},
        {run_it, "--expert-cache", "some", "--expert-cache"},
        {run_it, "--residency", "both", "--residency"},
        {run_it, "--window", "0", "--window"},
        {run_it, "--fake-gpu", "4Q", "4Q"},
        {run_it, "-ncmoe", "x", "--n-cpu-moe"},
        {run_it, "-ot", "exps=CPU", "--cpu-moe"},
        {run_it, "--override-kv", "a=u8:1", "--override-kv"},
        {run_it, "--override-kv", "general.architecture=int:1", "general.architecture"},
        {run_it, "--prefetch", "always", "--prefetch"},
        {run_it, "--cache-policy", "best", "best"},
        {run_it, "--spec-type", "oracle", "--spec-type"},
        {run_it, "--spec-draft-n-max", "99", "--spec-draft-n-max"},
        {run_it, "--mirostat", "7", "mirostat"},
        {run_it, "--top-k", "-5", "top_k"},
        {run_it, "--top-n-sigma", "x", "--top-nsigma"},
        {run_it, "--typical-p", "2", "typical"},
        {run_it, "--grammar", "root ::= (", "grammar"},
        {bench_it, "-d", "-1", "--n-depth"},
        {bench_it, "--load-mode", "mmap,fast", "--load-mode"},
        {serve_it, "--pooling", "best", "--pooling"},
        {serve_it, "--tool-format", "best", "best"},
        {serve_it, "-np", "0", "--parallel"},
        {serve_it, "--queue", "-1", "--queue"},
        {serve_it, "--api-key", "", "--api-key"},
        {synth_it, "--skew", "9", "--skew"},
        {synth_it, "--topics", "0", "--topics"},
        {synth_it, "--quant", "q99", "q99"},
        {{"plan", "-m", kModel}, "--ram-rate", "-1", "--ram-rate"},
        {{"plan", "-m", kModel}, "--handoff", "x", "--handoff"},
        {{"replay", "/dev/null"}, "--link", "-1", "--link"},
        {{"replay", "/dev/null"}, "--policy", "best", "best"},
        {{"replay", "/dev/null"}, "-o", "xml", "--output"},
        {{"inspect", "-m", kModel}, "--array-values", "-1", "--array-values"},
        {{"perplexity", "-m", kModel, "-f", kModel}, "-c", "1", "-c 1"},
        {{"probe"}, "-t", "0", "--threads"},
    };
    for (const BadValue& bad : cases) {
        SCOPED_TRACE(std::string(bad.flag) + " " + bad.value);
        std::vector<std::string> command = bad.command;
        command.emplace_back(bad.flag);
        if (command.back().find('=') == std::string::npos) command.emplace_back(bad.value);
        expect_error(command, 2, {bad.names});
    }
}

/// The names in front of a help's lines: "  -n,--n-predict,--predict N  tokens ...".
std::vector<std::string> flags_in(const std::string& help) {
    std::vector<std::string> flags;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("  -")) continue;
        std::istringstream names(line.substr(2, line.find(' ', 2) - 2));
        for (std::string name; std::getline(names, name, ',');)
            flags.push_back(name.substr(0, name.find('{')));
    }
    return flags;
}

/// Whether a text has the word, and not only as a part of a longer one.
bool has_word(const std::string& text, const std::string& word) {
    const auto inside = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; };
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !inside(text[at - 1])) && (end == text.size() || !inside(text[end]))) return true;
    }
    return false;
}

TEST(ErrorsTest, EveryFlagStandsInTheDocumentation) {
    const std::string page = read_file(COTERIE_SOURCE_DIR "/docs/command-line.md");
    for (const std::string command : {"run", "serve", "bench", "logits", "perplexity", "plan", "probe",
                                      "tokenize", "inspect", "replay", "synth"}) {
        const std::vector<std::string> flags = flags_in(output_of({command, "--help"}));
        EXPECT_GT(flags.size(), 3u) << command;
        for (const std::string& flag : flags) EXPECT_TRUE(has_word(page, flag)) << command << " " << flag;
    }
}

TEST(ErrorsTest, FlagsThatHelpDoesNotListLeaveNoHoleInIt) {
    for (const std::string command : {"run", "serve", "tokenize"}) {
        const std::string help = output_of({command, "--help"});
        EXPECT_EQ(help.find("Hidden"), std::string::npos);
        EXPECT_EQ(help.find("--simple-io"), std::string::npos);
        EXPECT_EQ(help.find("\n\n\n"), std::string::npos) << help;
    }
}

TEST(ErrorsTest, NamesAFileThatIsNotThere) {
    for (const std::string command : {"inspect", "bench"}) {
        expect_error({command, "-m", "/nowhere/model.gguf"}, 3, {"/nowhere/model.gguf"});
    }
    expect_error({"run", "-m", "/nowhere/model.gguf", "Hello"}, 3, {"/nowhere/model.gguf"});
    expect_error({"perplexity", "-m", kModel, "-f", "/nowhere/text"}, 3, {"/nowhere/text"});
    expect_error({"tokenize", "-m", kModel, "-f", "/nowhere/text"}, 3, {"/nowhere/text"});
}

TEST(ErrorsTest, RefusesBrokenFilesInOneLine) {
    TemporaryFolder folder;
    const std::string model = read_file(kModel);
    const std::string cut = folder.file("cut.gguf");
    write_file(cut, model.substr(0, model.size() / 2));
    expect_error({"inspect", "-m", cut}, 3, {cut});
    expect_error({"run", "-m", cut, "Hello"}, 3, {cut});

    const std::string text = folder.file("text.gguf");
    write_file(text, "This is no model.\n");
    expect_error({"bench", "-m", text}, 3, {text});
    const std::string empty = folder.file("empty.gguf");
    write_file(empty, "");
    expect_error({"tokenize", "-m", empty, "-p", "x"}, 3, {empty});
}

TEST(ErrorsTest, SaysWhatIsWrongWithTheOutput) {
    expect_error({"logits", "-m", kModel, "--tokens", "1", "--raw", "/nowhere/out.f32"}, 5,
                 {"/nowhere/out.f32", "No such file"});
}

TEST(ErrorsTest, EveryCommandHasHelp) {
    const std::string root = output_of({"--help"});
    for (const std::string command :
         {"run", "bench", "logits", "perplexity", "tokenize", "inspect", "synth"}) {
        EXPECT_THAT(root, HasSubstr("\n  " + command));
        const Outcome help = run({command, "--help"});
        EXPECT_EQ(help.status, 0);
        EXPECT_EQ(help.errors, "");
        EXPECT_THAT(help.output, HasSubstr("coterie " + command));
        EXPECT_THAT(help.output, HasSubstr("Example"));
    }
}

TEST(ErrorsTest, WithoutArgumentsShowsHelp) {
    EXPECT_EQ(output_of({}), output_of({"--help"}));
    EXPECT_THAT(output_of({"--version"}), HasSubstr("coterie "));
}

}  // namespace
}  // namespace coterie::commands_test
