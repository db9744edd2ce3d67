// SPDX-License-Identifier: Apache-2.0
//
// The example job must be worth tuning: it learns, its data can be repeated,
// and no knob makes it fast by computing something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/examples/dlrm/click_log.h"
#include "client/examples/dlrm/dlrm_options.h"
#include "client/examples/dlrm/trainer.h"

namespace cubicml::dlrm {
namespace {

using ::testing::HasSubstr;

// A model small enough that a step takes a millisecond.
DlrmOptions Tiny(std::vector<std::string> extra = {}) {
  std::vector<std::string> args = {
      "--table_count=3",    "--rows_per_table=300", "--lookups_per_table=2",
      "--embedding_dim=8",  "--dense_features=4",   "--batch_size=64",
      "--eval_samples=2048"};
  args.insert(args.end(), extra.begin(), extra.end());
  absl::StatusOr<DlrmOptions> options = ParseDlrmOptions(args);
  EXPECT_TRUE(options.ok()) << options.status();
  return *options;
}

struct Clicks {
  std::vector<float> dense;
  std::vector<float> labels;
  std::vector<int64_t> rows;
};

Clicks ReadClicks(const ModelShape& shape, ClickStream stream, int64_t first,
                  int64_t count) {
  const ClickLog log(shape, TableLayout::kMerged);
  Clicks clicks;
  clicks.dense.resize(static_cast<size_t>(count * shape.dense_features));
  clicks.labels.resize(static_cast<size_t>(count));
  clicks.rows.resize(
      static_cast<size_t>(count * shape.table_count * shape.lookups_per_table));
  log.Read(stream, first, count,
           {.dense = clicks.dense.data(),
            .labels = clicks.labels.data(),
            .rows = clicks.rows.data()});
  return clicks;
}

TEST(ClickLogTest, SameSeedGivesSameSamplesHoweverTheyAreRead) {
  const ModelShape shape = Tiny().shape;
  const Clicks all = ReadClicks(shape, ClickStream::kTraining, 0, 100);
  const Clicks again = ReadClicks(shape, ClickStream::kTraining, 0, 100);
  const Clicks tail = ReadClicks(shape, ClickStream::kTraining, 60, 40);

  EXPECT_EQ(all.rows, again.rows);
  EXPECT_EQ(all.dense, again.dense);
  EXPECT_EQ(all.labels, again.labels);
  EXPECT_EQ(std::vector<int64_t>(all.rows.end() - 40 * 6, all.rows.end()),
            tail.rows);
  EXPECT_EQ(std::vector<float>(all.labels.end() - 40, all.labels.end()),
            tail.labels);
}

TEST(ClickLogTest, OtherSeedsAndStreamsGiveOtherSamples) {
  ModelShape shape = Tiny().shape;
  const Clicks all = ReadClicks(shape, ClickStream::kTraining, 0, 100);
  EXPECT_NE(all.rows, ReadClicks(shape, ClickStream::kHeldOut, 0, 100).rows);
  shape.seed = 2;
  EXPECT_NE(all.rows, ReadClicks(shape, ClickStream::kTraining, 0, 100).rows);
}

TEST(ClickLogTest, CategoriesAreSkewedAndWithinTheirTables) {
  const ModelShape shape = Tiny().shape;
  const Clicks all = ReadClicks(shape, ClickStream::kTraining, 0, 5000);
  std::vector<int64_t> counts(static_cast<size_t>(shape.TotalRows()));
  for (size_t i = 0; i < all.rows.size(); ++i) {
    const auto table = static_cast<int64_t>(i % 6 / 2);
    int64_t first = 0;
    for (int64_t t = 0; t < table; ++t) first += shape.TableRows(t);
    ASSERT_GE(all.rows[i], first);
    ASSERT_LT(all.rows[i], first + shape.TableRows(table));
    ++counts[static_cast<size_t>(all.rows[i])];
  }
  // Uniform categories would give each row of the first table 33 of 10,000.
  EXPECT_GT(*std::max_element(counts.begin(), counts.begin() + 300), 1000);
}

TEST(TrainerTest, LossFallsOverAFewHundredSteps) {
  Trainer trainer(Tiny({"--lr=0.3"}));
  const double before = trainer.HeldOutLoss();
  for (int i = 0; i < 400; ++i) trainer.Step();
  EXPECT_LT(trainer.HeldOutLoss(), before - 0.05);
}

TEST(TrainerTest, SameOptionsGiveTheSameLossToTheBit) {
  const DlrmOptions options =
      Tiny({"--accumulation=4", "--worker_threads=2", "--loader_threads=3"});
  Trainer first(options);
  Trainer second(options);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(first.Step(), second.Step()) << i;
}

// What a configuration computes: the loss of each step, and at the end the
// held-out loss, which sees the parameters after the last update.
std::vector<double> Trajectory(std::vector<std::string> knobs,
                               const std::string& optimizer) {
  knobs.push_back("--optimizer=" + optimizer);
  // Adagrad divides by the gradient's own size, which makes a rounding error
  // in a gradient of almost 0 as large as a step: keep that small.
  knobs.push_back(optimizer == "adagrad" ? "--lr=0.01" : "--lr=0.1");
  Trainer trainer(Tiny(std::move(knobs)));
  std::vector<double> losses;
  for (int i = 0; i < 40; ++i) losses.push_back(trainer.Step());
  losses.push_back(trainer.HeldOutLoss());
  return losses;
}

// The same for every configuration, so computed once.
const std::vector<double>& BaselineTrajectory(const std::string& optimizer) {
  static std::map<std::string, std::vector<double>>& known =
      *new std::map<std::string, std::vector<double>>;
  const auto [it, is_new] = known.try_emplace(optimizer);
  if (is_new) it->second = Trajectory({}, optimizer);
  return it->second;
}

class KnobTest : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(KnobTest, TrainsAsTheBaselineDoes) {
  for (const std::string optimizer : {"sgd", "adagrad"}) {
    const std::vector<double>& baseline = BaselineTrajectory(optimizer);
    const std::vector<double> changed = Trajectory(GetParam(), optimizer);
    ASSERT_EQ(baseline.size(), changed.size());
    // The other direction: the trajectory moves far more than the tolerance.
    EXPECT_GT(std::abs(baseline.front() - baseline.back()), 0.005);
    for (size_t i = 0; i < baseline.size(); ++i) {
      ASSERT_NEAR(baseline[i], changed[i], 2e-4)
          << "step " << i << " with " << optimizer;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllKnobs, KnobTest,
    ::testing::Values(
        std::vector<std::string>{"--embedding_gradient=sparse"},
        std::vector<std::string>{"--embedding_gradient=sparse,dense,sparse"},
        std::vector<std::string>{"--embedding_lookup=gather"},
        std::vector<std::string>{"--embedding_lookup=gather",
                                 "--embedding_gradient=sparse"},
        std::vector<std::string>{"--table_layout=merged"},
        std::vector<std::string>{"--table_layout=merged",
                                 "--embedding_gradient=sparse",
                                 "--embedding_lookup=gather"},
        std::vector<std::string>{"--interaction=loop"},
        std::vector<std::string>{"--interaction=fused"},
        std::vector<std::string>{"--update_loop=fused"},
        std::vector<std::string>{"--update_loop=fused", "--zero_grad=none",
                                 "--embedding_gradient=sparse"},
        std::vector<std::string>{"--update_loop=fused",
                                 "--embedding_gradient=sparse"},
        std::vector<std::string>{"--zero_grad=none"},
        std::vector<std::string>{"--embedding_gradient=sparse",
                                 "--zero_grad=none"},
        std::vector<std::string>{"--index_type=int32"},
        std::vector<std::string>{"--index_type=int32",
                                 "--embedding_gradient=sparse",
                                 "--table_layout=merged"},
        std::vector<std::string>{"--accumulation=4"},
        std::vector<std::string>{"--accumulation=4", "--worker_threads=3"},
        std::vector<std::string>{"--accumulation=2", "--worker_threads=2",
                                 "--embedding_gradient=sparse",
                                 "--update_loop=fused"},
        std::vector<std::string>{"--loader_threads=0"},
        std::vector<std::string>{"--loader_threads=3", "--prefetch_depth=7"},
        std::vector<std::string>{"--huge_pages=true"}));

TEST(ParseDlrmOptionsTest, RefusesBadFlagsByName) {
  const std::vector<std::vector<std::string>> bad = {
      {"--batch_size=0"},
      {"--batch_size=many"},
      {"--interaction=magic"},
      {"--lr=nan"},
      {"--accumulation=7", "--batch_size=256"},
      {"--worker_threads=2", "--accumulation=1"},
      {"--embedding_gradient=dense,sparse", "--table_count=3"},
      {"--table_layout=merged", "--embedding_gradient=dense,sparse",
       "--table_count=2"},
      {"--seconds=0"},
      {"--no_such_flag=1"}};
  for (const std::vector<std::string>& args : bad) {
    const absl::StatusOr<DlrmOptions> options = ParseDlrmOptions(args);
    EXPECT_TRUE(absl::IsInvalidArgument(options.status())) << args.front();
    const std::string flag = args.front().substr(0, args.front().find('='));
    EXPECT_THAT(options.status().message(), HasSubstr(flag));
  }
}

struct Ended {
  int exit_code = -1;
  std::string out;
  std::string err;
};

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Starts the real program with its output in files named after the test.
pid_t StartDlrmTrain(const std::vector<std::string>& args,
                     const std::string& prefix) {
  std::fflush(nullptr);  // or both processes write what is buffered
  const pid_t pid = fork();
  if (pid != 0) return pid;
  std::vector<std::string> all = {CUBICML_DLRM_TRAIN};
  all.insert(all.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& arg : all) argv.push_back(arg.data());
  argv.push_back(nullptr);
  if (std::freopen((prefix + ".out").c_str(), "w", stdout) == nullptr ||
      std::freopen((prefix + ".err").c_str(), "w", stderr) == nullptr) {
    _exit(126);
  }
  execv(argv[0], argv.data());
  _exit(127);
}

Ended WaitForEnd(pid_t pid, const std::string& prefix) {
  int status = 0;
  waitpid(pid, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          ReadFile(prefix + ".out"), ReadFile(prefix + ".err")};
}

Ended RunDlrmTrain(const std::vector<std::string>& args) {
  const std::string prefix =
      ::testing::TempDir() + "dlrm_" + std::to_string(getpid());
  return WaitForEnd(StartDlrmTrain(args, prefix), prefix);
}

TEST(DlrmTrainTest, PrintsOneLineForEachMetricAndWritesThemAsJson) {
  const std::string file =
      ::testing::TempDir() + "dlrm_metrics_" + std::to_string(getpid());
  const Ended ended = RunDlrmTrain(
      {"--table_count=2", "--rows_per_table=100", "--loss_samples=512",
       "--eval_samples=512", "--seconds=0.05", "--metrics_file=" + file});
  EXPECT_EQ(ended.exit_code, kExitSuccess) << ended.err;
  EXPECT_THAT(ended.out, ::testing::MatchesRegex("qps=[0-9.]+\nloss=[0-9.]+\n"
                                                 "peak_memory_mib=[0-9.]+\n"));
  EXPECT_THAT(ReadFile(file),
              ::testing::MatchesRegex("\\{\"loss\":[0-9.]+,"
                                      "\"peak_memory_mib\":[0-9.]+,"
                                      "\"qps\":[0-9.]+\\}\n"));
}

TEST(DlrmTrainTest, MemoryLimitStopsABigConfigurationAndNotASmallOne) {
  const std::vector<std::string> small = {"--memory_limit_mib=200",
                                          "--loss_samples=0",
                                          "--warmup_steps=0", "--steps=2"};
  const Ended fits = RunDlrmTrain(small);
  EXPECT_EQ(fits.exit_code, kExitSuccess) << fits.err;

  std::vector<std::string> big = small;
  big.insert(big.end(), {"--batch_size=16384", "--embedding_lookup=gather"});
  const Ended broken = RunDlrmTrain(big);
  EXPECT_EQ(broken.exit_code, kExitOutOfMemory);
  EXPECT_EQ(broken.out, "");
  EXPECT_THAT(broken.err, HasSubstr("can't allocate memory"));
  // What `cubicml run` looks for.
  EXPECT_THAT(broken.err, HasSubstr("cannot allocate memory: "));
}

TEST(DlrmTrainTest, BadFlagExitsWithTwo) {
  const Ended ended = RunDlrmTrain({"--batch_size=0"});
  EXPECT_EQ(ended.exit_code, kExitBadFlags);
  EXPECT_THAT(ended.err, HasSubstr("--batch_size"));
  EXPECT_THAT(ended.err, HasSubstr("1 to 1048576"));
}

TEST(DlrmTrainTest, SigtermEndsItQuickly) {
  const std::string prefix =
      ::testing::TempDir() + "dlrm_term_" + std::to_string(getpid());
  // The first words of the program open the other end of the pipe for good.
  ASSERT_EQ(mkfifo((prefix + ".err").c_str(), 0600), 0);
  const pid_t pid = StartDlrmTrain({"--table_count=2", "--rows_per_table=100",
                                    "--loss_samples=256", "--seconds=600"},
                                   prefix);
  std::ifstream words(prefix + ".err");
  std::string first_word;
  words >> first_word;
  const auto start = std::chrono::steady_clock::now();
  kill(pid, SIGTERM);
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kExitTerminated);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace
}  // namespace cubicml::dlrm
