// SPDX-License-Identifier: Apache-2.0
//
// What operators put beside the server: promtool finds nothing to complain
// about, a real Prometheus scrapes it, and every query of the dashboard has an
// answer. Skipped where Prometheus is not installed.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/e2e_test.h"
#include "tests/support/http_get.h"
#include "tests/support/wait_until.h"

namespace cubicml {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kDashboard[] =
    CUBICML_DEPLOY_FOLDER "/grafana/cubicml-study.json";
constexpr char kScrapeExample[] = CUBICML_DEPLOY_FOLDER "/prometheus.yml";

bool IsInstalled(const std::string& program) {
  return std::system(
             absl::StrCat("command -v ", program, " >/dev/null").c_str()) == 0;
}

// A port that was free a moment ago.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(fd, generic, size), 0);
  EXPECT_EQ(getsockname(fd, generic, &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

std::string UrlEncode(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      result.push_back(c);
    } else {
      absl::StrAppend(
          &result, "%",
          absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return result;
}

// A Prometheus of its own, gone with the test.
class PrometheusProcess {
 public:
  PrometheusProcess(const std::string& config, const TempDir& dir)
      : port_(FreePort()) {
    std::vector<std::string> words = {
        "prometheus", absl::StrCat("--config.file=", config),
        absl::StrCat("--storage.tsdb.path=", dir.PathOf("tsdb")),
        absl::StrCat("--web.listen-address=127.0.0.1:", port_)};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string log = dir.PathOf("prometheus.log");
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  ~PrometheusProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  PrometheusProcess(const PrometheusProcess&) = delete;
  PrometheusProcess& operator=(const PrometheusProcess&) = delete;

  // The series that a query gives now.
  json Query(const std::string& expression) const {
    const HttpResponse response =
        HttpGet(port_, "/api/v1/query?query=" + UrlEncode(expression));
    // Chunked or not, the JSON is what lies between the braces.
    const size_t begin = response.body.find('{');
    const size_t end = response.body.rfind('}');
    if (response.code != 200 || begin == std::string::npos) return json();
    const json answer = json::parse(
        response.body.substr(begin, end - begin + 1), nullptr, false);
    if (answer.is_discarded()) return json();
    return answer["data"]["result"];
  }

 private:
  const int port_;
  pid_t pid_ = -1;
};

class MonitoringTest : public E2eTest {
 protected:
  // A study that has come far enough to have a model.
  void SetUp() override {
    StartServer();
    ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
    for (int i = 0; i < 20; ++i) RunTrial(i);
    ASSERT_TRUE(WaitUntil(absl::Seconds(60), [this] {
      const std::string metrics = Scrape();
      return absl::StrContains(metrics, "cubicml_surrogate_kendall_tau{") &&
             absl::StrContains(metrics, "cubicml_study_speedup_ratio{");
    })) << Scrape();
  }

  void RunTrial(int i) {
    v1::SuggestTrialsResponse suggested;
    ASSERT_TRUE(Suggest("studies/ads", "job", 1, &suggested).ok());
    ASSERT_EQ(suggested.trials_size(), 1);
    const v1::Trial& trial = suggested.trials(0);
    const double tp =
        static_cast<double>(trial.parameters().at("tp").int64_value());
    ASSERT_TRUE(Complete(trial, 100 + 10 * std::log2(tp) + i % 3).ok());
  }

  std::string Scrape() const {
    return HttpGet(server_->metrics_port(), "/metrics").body;
  }

  static std::vector<std::string> DashboardQueries() {
    std::vector<std::string> queries;
    const json dashboard = json::parse(ReadFileOrDie(kDashboard));
    for (const json& panel : dashboard["panels"]) {
      if (!panel.contains("targets")) continue;
      for (const json& target : panel["targets"]) {
        queries.push_back(target["expr"].get<std::string>());
      }
    }
    return queries;
  }
};

TEST_F(MonitoringTest, PromtoolFindsNothingWrongWithTheMetrics) {
  if (!IsInstalled("promtool")) GTEST_SKIP() << "promtool is not installed";
  const std::string metrics = dir_.PathOf("metrics");
  const std::string findings = dir_.PathOf("findings");
  WriteFileOrDie(metrics, Scrape());
  const int status = std::system(absl::StrCat("promtool check metrics < ",
                                              metrics, " > ", findings, " 2>&1")
                                     .c_str());
  EXPECT_EQ(status, 0) << ReadFileOrDie(findings);
  EXPECT_THAT(ReadFileOrDie(findings), IsEmpty());
}

TEST_F(MonitoringTest, ThePromisedMetricsAreThere) {
  const std::string metrics = Scrape();
  for (const char* name : {"cubicml_rpc_requests_total{",
                           "cubicml_rpc_duration_seconds_bucket{",
                           "cubicml_rpc_queue_depth ",
                           "cubicml_rpc_rejected_total ",
                           "cubicml_trials{",
                           "cubicml_trials_ended_total{",
                           "cubicml_suggestions_total{",
                           "cubicml_suggestion_duration_seconds_",
                           "cubicml_study_baseline_objective{",
                           "cubicml_study_best_objective{",
                           "cubicml_study_speedup_ratio{",
                           "cubicml_surrogate_kendall_tau{",
                           "cubicml_surrogate_rows{",
                           "cubicml_surrogate_created_timestamp_seconds{",
                           "cubicml_surrogate_training_duration_seconds_",
                           "cubicml_commit_duration_seconds_",
                           "cubicml_commit_group_size_",
                           "cubicml_commit_queue_depth ",
                           "cubicml_database_bytes ",
                           "cubicml_build_info{",
                           "cubicml_serving 1"}) {
    EXPECT_THAT(metrics, HasSubstr(absl::StrCat("\n", name)));
  }
}

TEST_F(MonitoringTest, TheExampleConfigurationIsOne) {
  if (!IsInstalled("promtool")) GTEST_SKIP() << "promtool is not installed";
  EXPECT_EQ(std::system(absl::StrCat("promtool check config ", kScrapeExample,
                                     " > ", dir_.PathOf("findings"), " 2>&1")
                            .c_str()),
            0);
}

TEST_F(MonitoringTest, EveryQueryOfTheDashboardHasAnAnswer) {
  if (!IsInstalled("prometheus")) GTEST_SKIP() << "no Prometheus is installed";
  const std::vector<std::string> queries = DashboardQueries();
  ASSERT_GT(queries.size(), 20u);
  const std::string config = dir_.PathOf("prometheus.yml");
  WriteFileOrDie(config,
                 absl::StrReplaceAll(
                     ReadFileOrDie(kScrapeExample),
                     {{"127.0.0.1:7265",
                       absl::StrCat("127.0.0.1:", server_->metrics_port())},
                      {"scrape_interval: 15s", "scrape_interval: 1s"}}));
  const PrometheusProcess prometheus(config, dir_);
  ASSERT_TRUE(WaitUntil(absl::Seconds(60), [&] {
    return prometheus.Query("up == 1").size() == 1;
  })) << ReadFileOrDie(dir_.PathOf("prometheus.log"));
  // Rates need two scrapes; the study goes on meanwhile.
  int i = 0;
  std::set<std::string> silent(queries.begin(), queries.end());
  WaitUntil(absl::Seconds(60), [&] {
    RunTrial(i++);
    for (auto query = silent.begin(); query != silent.end();) {
      const json series = prometheus.Query(absl::StrReplaceAll(
          *query, {{"$study", "ads"}, {"$__rate_interval", "30s"}}));
      query = series.empty() ? std::next(query) : silent.erase(query);
    }
    return silent.empty();
  });
  EXPECT_THAT(silent, IsEmpty());
  EXPECT_THAT(
      prometheus.Query("cubicml_study_speedup_ratio{study=\"ads\"} >= 1"),
      Not(IsEmpty()));
}

}  // namespace
}  // namespace cubicml
