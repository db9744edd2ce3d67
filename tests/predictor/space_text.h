// SPDX-License-Identifier: Apache-2.0
//
// Search spaces and values as short text, for tests.

#ifndef CUBICML_TESTS_PREDICTOR_SPACE_TEXT_H_
#define CUBICML_TESTS_PREDICTOR_SPACE_TEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "predictor/search_space.h"

namespace cubicml {

// Of the text format; the test fails when it cannot be parsed.
inline v1::Study ReadStudy(const std::string& text) {
  v1::Study study;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &study))
      << text;
  return study;
}

inline std::shared_ptr<const SearchSpace> ReadSpace(const std::string& text) {
  absl::StatusOr<std::shared_ptr<const SearchSpace>> space =
      SearchSpace::Parse(ReadStudy(text));
  EXPECT_TRUE(space.ok()) << space.status();
  return space.ok() ? *space : nullptr;
}

// Values by the field `parameters` of a trial: "parameters {key: ...}".
inline ValueMap ReadValues(const std::string& text) {
  v1::Trial trial;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &trial))
      << text;
  return trial.parameters();
}

// One of them: Entry("tp", "int64_value: 4").
inline std::string Entry(const std::string& name, const std::string& value) {
  return "parameters {key: \"" + name + "\" value {" + value + "}} ";
}

inline std::vector<Point> AllPoints(const SearchSpace& space,
                                    const Context& context) {
  std::vector<Point> points;
  const bool complete = space.Enumerate(context, space.Free(), int64_t{1} << 40,
                                        [&](const Point& point) {
                                          points.push_back(point);
                                          return true;
                                        });
  EXPECT_TRUE(complete);
  return points;
}

inline Context ReadContext(const SearchSpace& space,
                           const std::string& text = "") {
  absl::StatusOr<Context> context = space.ParseContext(ReadValues(text));
  EXPECT_TRUE(context.ok()) << context.status();
  return *context;
}

}  // namespace cubicml

#endif  // CUBICML_TESTS_PREDICTOR_SPACE_TEXT_H_
