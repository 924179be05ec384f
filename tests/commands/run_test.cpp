#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace coterie::commands_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string reference_answer(const std::string& question) {
    const auto file = nlohmann::json::parse(read_file(kDemoData + "answers.json"));
    for (const auto& reference : file.at("answers")) {
        if (reference.at("question") == question) return reference.at("answer").get<std::string>();
    }
    ADD_FAILURE() << "no such question: " << question;
    return "";
}

/// What --stats says: "..., answer 57 tokens at ...", one line for each answer.
std::vector<int> answer_lengths(const std::string& errors) {
    const std::string mark = "answer ";
    std::vector<int> lengths;
    for (std::size_t at = errors.find(mark); at != std::string::npos; at = errors.find(mark, at + 1)) {
        lengths.push_back(std::stoi(errors.substr(at + mark.size())));
    }
    return lengths;
}

TEST(RunTest, PrintsTheAnswerAndNothingElse) {
    const Outcome outcome = run({"run", "-m", kModel, "--temp", "0", "define volcano"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, reference_answer("define volcano") + "\n");
    EXPECT_EQ(outcome.errors, "");
}

TEST(RunTest, WithoutAModelTakesTheBuiltInOneAndSaysSo) {
    const Outcome outcome = run({"run", "--temp", "0", "-p", "Hello"});
    EXPECT_EQ(outcome.output, reference_answer("Hello") + "\n");
    EXPECT_THAT(outcome.errors, StartsWith("coterie: no -m given"));
    EXPECT_EQ(outcome.errors.find('\n'), outcome.errors.size() - 1);
}

TEST(RunTest, DevicesChangeNotALetter) {
    const TemporaryFolder folder;
    const std::string profile = folder.file("profile");
    for (const char* prefetch : {"off", "both"}) {
        const Outcome outcome =
            run({"run", "-m", kModel, "--temp", "0", "-p", "Hello", "--fake-gpu", "4M@10G/s,2M@10G/s",
                 "--expert-cache", "16", "--prefetch", prefetch, "--cache-profile", profile, "--stats"});
        EXPECT_EQ(outcome.status, 0) << outcome.errors;
        EXPECT_EQ(outcome.output, reference_answer("Hello") + "\n");
        EXPECT_THAT(outcome.errors, HasSubstr("% of "));
        EXPECT_THAT(outcome.errors, HasSubstr("GPU 1: "));
        EXPECT_EQ(outcome.errors.find("prefetch: ") != std::string::npos, std::string(prefetch) == "both");
        EXPECT_TRUE(std::filesystem::exists(profile));
    }
}

/// The files in the folder of routing profiles.
std::vector<std::string> profiles_in(const std::string& cache) {
    std::vector<std::string> files;
    if (!std::filesystem::exists(cache + "/coterie")) return files;
    for (const auto& entry : std::filesystem::directory_iterator(cache + "/coterie")) {
        files.push_back(entry.path());
    }
    return files;
}

TEST(RunTest, KeepsWhatItLearntInTheUsersCacheFolder) {
    const TemporaryFolder folder;
    const std::string cache = folder.file("cache");
    const auto run_with = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.end(), {"-m", kModel, "--fake-gpu", "8M@1G/s", "--expert-cache", "8"});
        Program program(std::move(arguments), {.environment = {"XDG_CACHE_HOME=" + cache}});
        const Outcome outcome = program.finish();
        EXPECT_EQ(outcome.status, 0) << outcome.errors;
        return outcome;
    };
    run_with({"run", "-p", "Hello", "-n", "3", "--cache-profile", "off"});
    run_with({"run", "-p", "Hello", "-n", "3", "--cache-profile", folder.file("mine")});
    run_with({"bench", "-p", "0", "-n", "4", "-r", "1"});
    EXPECT_TRUE(profiles_in(cache).empty()) << "nobody asked for one, or benchmarks train it";
    run_with({"run", "-p", "Hello", "-n", "3"});
    const std::vector<std::string> files = profiles_in(cache);
    ASSERT_EQ(files.size(), 1u);
    const std::string learnt = read_file(files[0]);
    run_with({"bench", "-p", "0", "-n", "4", "-r", "1"});
    EXPECT_EQ(read_file(files[0]), learnt);
    run_with({"run", "-p", "Hello", "-n", "3"});
    EXPECT_NE(read_file(files[0]), learnt);
    run_with({"run", "-p", "Hello", "-n", "3", "--cache-policy", "static"});
    // A folder that takes no file spoils nothing.
    std::filesystem::remove_all(cache);
    write_file(cache, "no folder");
    EXPECT_THAT(run_with({"run", "-p", "Hello", "-n", "3"}).errors, HasSubstr("--cache-profile"));
}

TEST(RunTest, RamMayHoldOnlyWhatNoGpuHolds) {
    const Outcome outcome =
        run({"run", "-m", kModel, "--temp", "0", "-p", "Hello", "--fake-gpu", "8M@10G/s", "--expert-cache",
             "16", "--residency", "exclusive", "--cache-profile", "off", "--stats"});
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, reference_answer("Hello") + "\n");
    EXPECT_THAT(outcome.errors, HasSubstr("RAM holds what no GPU does"));
    expect_error({"run", "-m", kModel, "-p", "x", "--fake-gpu", "8M@10G/s", "--residency", "both"}, 2,
                 {"--residency both", "inclusive or exclusive"});
}

TEST(RunTest, BadCacheFlagsAreNamed) {
    expect_error({"run", "-m", kModel, "-p", "x", "--cache-policy", "lur"}, 2, {"'lur'", "admit"});
    expect_error({"run", "-m", kModel, "-p", "x", "--cache-policy", "belady"}, 2, {"coterie replay"});
    for (const char* profile : {"off", "/nowhere/profile"}) {
        expect_error({"run", "-m", kModel, "-p", "x", "--fake-gpu", "8M@1G/s", "--expert-cache", "8",
                      "--cache-policy", "static", "--cache-profile", profile},
                     2, {"--cache-policy static", "--cache-profile"});
    }
    expect_error({"run", "-m", kModel, "-p", "x", "--fake-gpu", "8M@1G/s", "--window", "some"}, 2,
                 {"--window some", "auto"});
    expect_error({"run", "-m", kModel, "-p", "x", "--prefetch", "always"}, 2,
                 {"--prefetch always", "router"});
    expect_error({"run", "-m", kModel, "-p", "x", "--fake-gpu", "4Q"}, 2, {"4Q", "2x64M@1G/s"});
}

TEST(RunTest, ChatsLineByLineUntilTheEndOfInput) {
    const Outcome outcome =
        run({"run", "-m", kModel, "--temp", "0"}, "Hello\n\n/clear\nWho are you?\n/exit\nThank you\n");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, reference_answer("Hello") + "\n" + reference_answer("Who are you?") + "\n");
}

TEST(RunTest, CompletesARawPrompt) {
    const auto reference = nlohmann::json::parse(read_file(kDemoData + "answers.json")).at("answers").at(0);
    const std::string prompt = reference.at("prompt");
    TemporaryFolder folder;
    write_file(folder.file("prompt"), prompt);
    const std::string answer = reference.at("answer").get<std::string>() + "\n";
    EXPECT_EQ(output_of({"run", "-m", kModel, "-no-cnv", "--temp", "0", "-f", folder.file("prompt")}),
              answer);

    // The same prompt with its line feeds written as \n: read as line feeds, unless told not to.
    std::string escaped = prompt;
    for (std::size_t at = 0; (at = escaped.find('\n', at)) != std::string::npos;)
        escaped.replace(at, 1, "\\n");
    const std::vector<std::string> arguments{"run", "-m", kModel, "-no-cnv", "--temp", "0", "-p", escaped};
    EXPECT_EQ(output_of(arguments), answer);
}

TEST(RunTest, StopsAtTheLimit) {
    const Outcome outcome = run({"run", "-m", kModel, "--temp", "0", "-n", "3", "--stats", "define volcano"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(answer_lengths(outcome.errors), std::vector<int>{3});
}

TEST(RunTest, TheSameSeedGivesTheSameAnswer) {
    const std::vector<std::string> arguments{"run",    "-m", kModel, "--temp", "1.5",
                                             "--seed", "7",  "-n",   "30",     "Tell me a word"};
    EXPECT_EQ(output_of(arguments), output_of(arguments));
}

TEST(RunTest, TakesFlagsAsLlamaCppDoes) {
    const std::string expected = output_of({"run", "-m", kModel, "--temp", "0", "-n", "4", "define volcano"});
    const std::vector<std::vector<std::string>> others = {
        {"-fa", "define volcano", "-n", "4"},
        {"-fa", "on", "-n", "4", "define volcano"},
        {"-fa", "0,1", "-n", "4", "define volcano"},
        {"--override-kv", "general.name=str:other,made.up=float:1.5", "-n", "4", "define volcano"},
        {"-n", "9", "-n", "4", "define volcano"},
        {"--n_predict", "4", "define volcano"},
        {"--no-mmap", "-n", "4", "define volcano"},
        {"-lv", "1", "-st", "-n", "4", "-p", "define volcano"},
        {"--no-warmup", "-n", "4", "-p", "define volcano"}};
    for (const std::vector<std::string>& other : others) {
        std::vector<std::string> arguments{"run", "-m", kModel, "--temp", "0"};
        arguments.insert(arguments.end(), other.begin(), other.end());
        EXPECT_EQ(output_of(arguments), expected) << other.front();
    }
    expect_error({"run", "-m", kModel, "-p", "Hello", "-f", "file"}, 2, {"-p", "-f"});
}

TEST(RunTest, DraftsDoNotChangeTheAnswer) {
    const std::vector<std::string> plain{"run",
                                         "-m",
                                         kModel,
                                         "-no-cnv",
                                         "--seed",
                                         "3",
                                         "--stats",
                                         "-n",
                                         "80",
                                         "-p",
                                         "one two three one two three one two",
                                         "--grammar",
                                         "root ::= (\" three one two\" [a-z])+"};
    std::vector<std::string> drafting = plain;
    for (const char* more : {"--spec-type", "ngram-simple", "--spec-ngram-size-n", "1"})
        drafting.push_back(more);
    const Outcome without = run(plain);
    const Outcome with = run(drafting);
    EXPECT_EQ(without.status, 0) << without.errors;
    EXPECT_EQ(with.output, without.output);
    EXPECT_THAT(without.errors, Not(HasSubstr("drafted")));
    EXPECT_THAT(with.errors, ContainsRegex("[1-9][0-9]* of [0-9]+ drafted tokens came true"));
}

TEST(RunTest, DraftsAreRefusedWhereTheyCannotBe) {
    EXPECT_THAT(run({"run", "-m", kModel, "--spec-type", "oracle", "hi"}).errors,
                HasSubstr("--spec-type oracle: must be none or ngram-simple"));
    EXPECT_THAT(run({"run", "-m", kModel, "--spec-type", "ngram-simple", "--trace", "t", "hi"}).errors,
                HasSubstr("leave --spec-type out"));
}

TEST(RunTest, CtrlCStopsTheAnswerAndNotTheChat) {
    Program program({"run", "-m", kModel, "-c", "2048", "--ignore-eos", "-n", "300", "--stats"});
    program.send("What is a volcano?\n");
    program.wait_for_output(1);
    program.interrupt();
    program.send("Hello\n");
    const Outcome outcome = program.finish();
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    const std::vector<int> lengths = answer_lengths(outcome.errors);
    ASSERT_EQ(lengths.size(), 2u) << outcome.errors;
    EXPECT_LT(lengths[0], 300);
    EXPECT_EQ(lengths[1], 300);
}

TEST(RunTest, CtrlCEndsAOneShotAnswerWithStatus130) {
    Program program({"run", "-m", kModel, "-c", "8192", "--ignore-eos", "-n", "8000", "define volcano"});
    program.wait_for_output(1);
    program.interrupt();
    const Outcome outcome = program.finish();
    EXPECT_EQ(outcome.status, 130);
    EXPECT_THAT(outcome.errors, HasSubstr("interrupted"));
}

TEST(RunTest, MetadataMayBeOverridden) {
    const std::string expert_key = "glm4moe.expert_used_count";
    const std::string text =
        output_of({"inspect", "-m", kModel, "--no-tensors", "--override-kv", expert_key + "=int:3"});
    EXPECT_THAT(text, ContainsRegex(expert_key + ".* 3\n"));
    const std::vector<std::string> plain{"logits", "-m", kModel, "--tokens", "1,2,3"};
    std::vector<std::string> fewer = plain;
    fewer.insert(fewer.end(), {"--override-kv", expert_key + "=int:3"});
    EXPECT_NE(output_of(fewer), output_of(plain));
    expect_error({"run", "-m", kModel, "-p", "x", "--override-kv", "glm4moe.rope.freq_base=float:0"}, 3,
                 {kModel, "glm4moe.rope.freq_base is 0"});
}

TEST(RunTest, TheSystemPromptMayComeFromAFile) {
    const TemporaryFolder folder;
    write_file(folder.file("system"), "Answer in one word.");
    const std::vector<std::string> start{"run", "-m", kModel, "--temp",        "0",
                                         "-n",  "8",  "-p",   "define volcano"};
    const auto answer = [&](const char* flag, const std::string& value) {
        std::vector<std::string> arguments = start;
        arguments.insert(arguments.end(), {flag, value});
        return output_of(arguments);
    };
    EXPECT_EQ(answer("-sysf", folder.file("system")), answer("-sys", "Answer in one word."));
    expect_error({"run", "-m", kModel, "-p", "x", "-sysf", "/nowhere/system"}, 3, {"/nowhere/system"});
    expect_error({"run", "-m", kModel, "-p", "x", "-sysf", "a", "-sys", "b"}, 2, {"--system-prompt"});
}

TEST(RunTest, RefusesAPromptLongerThanTheContext) {
    expect_error({"run", "-m", kModel, "-c", "16", "-no-cnv", "-p", std::string(600, 'x')}, 2,
                 {"prompt", "context of 16", "-c"});
}

TEST(RunTest, TakesFlagsOfOtherPrograms) {
    const Outcome outcome =
        run({"run",  "-m", kModel, "--temp", "0",  "-ctk", "f16", "-ctv", "q8_0", "-ub",  "64",
             "-ngl", "99", "-fa",  "on",     "-t", "1",    "-tb", "2",    "-p",   "Hello"});
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, reference_answer("Hello") + "\n");
    EXPECT_THAT(outcome.errors, HasSubstr("-ngl has no effect"));
}

TEST(RunTest, AnswersUnderTheNameOfLlamaCli) {
    Program program({"-m", kModel, "--temp", "0", "-p", "Hello"}, {.name = "/usr/bin/llama-cli"});
    EXPECT_EQ(program.finish().output, reference_answer("Hello") + "\n");
}

TEST(RunTest, ReadsItsEnvironmentAndPrefersFlags) {
    Program program({"run", "--temp", "0", "-p", "Hello"}, {.environment = {"COTERIE_MODEL=" + kModel}});
    const Outcome outcome = program.finish();
    EXPECT_EQ(outcome.output, reference_answer("Hello") + "\n");
    EXPECT_EQ(outcome.errors, "");

    Program flag_wins({"run", "-m", kModel, "--temp", "0", "-p", "Hello"},
                      {.environment = {"COTERIE_MODEL=/nowhere.gguf"}});
    EXPECT_EQ(flag_wins.finish().status, 0);
}

TEST(RunTest, AnswersFollowAGrammar) {
    const Outcome raw = run({"run", "-m", kModel, "-no-cnv", "-p", "Hello", "--temp", "1", "-s", "3",
                             "--grammar", "root ::= (\"yes\" | \"no\") \", \" [0-9]{3}"});
    EXPECT_EQ(raw.status, 0) << raw.errors;
    EXPECT_THAT(raw.output,
                ::testing::MatchesRegex("Hello(yes|no), [0-9][0-9][0-9]\n|(yes|no), [0-9][0-9][0-9]\n"));
    const Outcome chat = run({"run", "-m", kModel, "-p", "define volcano", "--temp", "0", "-j",
                              R"({"type": "object", "properties": {"word": {"enum": ["volcano", "hill"]},
                                  "sure": {"type": "boolean"}}, "required": ["word", "sure"]})"});
    EXPECT_EQ(chat.status, 0) << chat.errors;
    const auto answer = nlohmann::json::parse(chat.output);
    EXPECT_TRUE(answer.at("word") == "volcano" || answer.at("word") == "hill");
    EXPECT_TRUE(answer.at("sure").is_boolean());
    EXPECT_EQ(answer.size(), 2u);
}

TEST(RunTest, GrammarsThatCannotBeUsedAreRefusedBeforeThePrompt) {
    const Outcome syntax = run({"run", "-m", kModel, "-p", "Hello", "--grammar", "root ::= ("});
    EXPECT_EQ(syntax.status, 2);
    EXPECT_THAT(syntax.errors, HasSubstr("grammar, line 1, column 10"));
    const Outcome schema = run({"run", "-m", kModel, "-p", "Hello", "-j", R"({"not": {}})"});
    EXPECT_EQ(schema.status, 2);
    EXPECT_THAT(schema.errors, HasSubstr("at /not"));
    const Outcome both = run({"run", "-m", kModel, "-p", "Hello", "-j", "{}", "--grammar", "root ::= \"a\""});
    EXPECT_EQ(both.status, 2);
    EXPECT_THAT(both.errors, HasSubstr("exclude each other"));
    const Outcome missing = run({"run", "-m", kModel, "-p", "Hello", "-jf", "/no/such/schema"});
    EXPECT_EQ(missing.status, 3);
    EXPECT_THAT(missing.errors, HasSubstr("/no/such/schema"));
}

}  // namespace
}  // namespace coterie::commands_test
