// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/health_monitor.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_study_store.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

// Pages of lists end early when what they hold is large; a study behind the end
// of the first page is no less alive.
TEST(HealthMonitorTest, StudiesOfAllPagesHaveTheirSeries) {
  FakeClock clock;
  FakeStudyStore store(&clock);
  ServiceFixture fixture(&store, &clock);
  constexpr int kStudies = 6;
  v1::Study large = PlainStudy();
  v1::TableConstraint* table = large.add_constraints()->mutable_table();
  table->add_columns("x");
  table->add_columns("y");
  // Some 2 MiB.
  for (int row = 0; row < 100'000; ++row) {
    v1::TableConstraint::Row* added = table->add_rows();
    *added->add_values() = IntegerValue(row % 16);
    *added->add_values() = IntegerValue(row / 16 % 16);
  }
  for (int i = 0; i < kStudies; ++i) {
    fixture.Create(absl::StrCat("s", i), large);
  }
  ServerMetrics metrics;
  HealthMonitorOptions options;
  options.store = &store;
  options.service = &fixture.service();
  options.metrics = &metrics;
  options.clock = &clock;
  HealthMonitor monitor(options);
  monitor.RefreshMetrics();
  const std::string text = metrics.Render();
  for (int i = 0; i < kStudies; ++i) {
    EXPECT_THAT(text,
                HasSubstr(absl::StrCat(
                    "cubicml_trials{state=\"active\",study=\"s", i, "\"} 0")));
  }
}

}  // namespace
}  // namespace cubicml
