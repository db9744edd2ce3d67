// SPDX-License-Identifier: Apache-2.0
//
// Typed values of parameters and contexts for C++ code:
//
//   client.StartTrial({.study = "ads",
//                      .context = MakeValues({{"gpus", 64}, {"fp8", true}})});
//   absl::StatusOr<int64_t> tp = GetValue<int64_t>(trial.parameters(), "tp");

#ifndef CUBICML_CLIENT_VALUES_H_
#define CUBICML_CLIENT_VALUES_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

using Values = std::map<std::string, v1::Value>;
// What a message holds, e.g. v1::Trial::parameters().
using ValueMap = google::protobuf::Map<std::string, v1::Value>;

template <typename T>
requires std::integral<T> &&(!std::same_as<T, bool>)v1::Value
    MakeValue(T number) {
  v1::Value value;
  value.set_int64_value(static_cast<int64_t>(number));
  return value;
}
v1::Value MakeValue(double number);
v1::Value MakeValue(bool truth);
v1::Value MakeValue(absl::string_view text);
v1::Value MakeValue(const std::string& text);
v1::Value MakeValue(const char* text);
template <typename T>
v1::Value MakeValue(const std::vector<T>& elements) {
  v1::Value value;
  v1::ValueList* list = value.mutable_list_value();
  for (const auto& element : elements) {
    *list->add_values() = MakeValue(static_cast<const T&>(element));
  }
  return value;
}

// One entry of MakeValues().
struct NamedValue {
  template <typename T>
  NamedValue(absl::string_view name_in, const T& value_in)
      : name(name_in), value(MakeValue(value_in)) {}
  std::string name;
  v1::Value value;
};

// Of two entries with one name the last one counts.
Values MakeValues(std::initializer_list<NamedValue> entries);

// The value as a C++ type: int64_t, double (also from an integer), bool,
// std::string, or a std::vector of one of them. INVALID_ARGUMENT when it holds
// something else.
template <typename T>
absl::StatusOr<T> ValueAs(const v1::Value& value);

// NOT_FOUND when there is no such name (a knob that is not active has no
// value), INVALID_ARGUMENT as for ValueAs().
template <typename T>
absl::StatusOr<T> GetValue(const ValueMap& values, absl::string_view name) {
  const auto found = values.find(std::string(name));
  if (found == values.end()) {
    return absl::NotFoundError("no value named '" + std::string(name) + "'");
  }
  return ValueAs<T>(found->second);
}

// For people and command lines: 8, 0.001, true, full, or full,grad,none. A
// double is the shortest text that reads back as the same number, and never
// looks like an integer: 2.0.
std::string FormatValue(const v1::Value& value);
// The double alone, as FormatValue() has it, without the trailing ".0".
std::string FormatNumber(double number);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_VALUES_H_
