// SPDX-License-Identifier: Apache-2.0

#include "server/core/resource_name.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

TEST(ResourceNameTest, TrialNamesAreTakenApartAndPutTogether) {
  const absl::StatusOr<TrialName> name =
      ParseTrialName("name", "studies/llm-70b/trials/42");
  ASSERT_THAT(name, IsOk());
  EXPECT_EQ(name->study, "studies/llm-70b");
  EXPECT_EQ(name->number.value, 42);
  EXPECT_EQ(FormatTrialName(name->study, name->number),
            "studies/llm-70b/trials/42");
}

TEST(ResourceNameTest, ATrialHasOneName) {
  for (const char* name :
       {"", "/", "studies/a/trials/", "studies/a/trials/0",
        "studies/a/trials/007", "studies/a/trials/-1", "studies/a/trials/+1",
        "studies/a/trials/ 1", "studies/a/trials/1x",
        "studies/a/trials/99999999999999999999", "studies/a/trials/1/",
        "/studies/a/trials/1", "studies/A/trials/1", "studies//trials/1",
        "study/a/trials/1", "studies/a/trial/1"}) {
    EXPECT_THAT(ParseTrialName("name", name),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << name;
  }
}

TEST(ResourceNameTest, StudyIdsFollowTheirGrammar) {
  for (const char* id : {"a", "a-1", "dlrm-2-gpus"}) {
    EXPECT_THAT(CheckStudyId("study_id", id), IsOk()) << id;
    EXPECT_THAT(CheckStudyName("name", FormatStudyName(id)), IsOk()) << id;
  }
  EXPECT_THAT(CheckStudyId("study_id", std::string(63, 'a')), IsOk());
  for (const std::string& id :
       {std::string(), std::string("1a"), std::string("-a"), std::string("A"),
        std::string("a_b"), std::string("a/b"), std::string("\xff"),
        std::string("a\0b", 3), std::string(64, 'a')}) {
    EXPECT_THAT(CheckStudyId("study_id", id),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << id;
    EXPECT_THAT(CheckStudyName("name", absl::StrCat("studies/", id)),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << id;
  }
}

}  // namespace
}  // namespace cubicml
