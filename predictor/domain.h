// SPDX-License-Identifier: Apache-2.0
//
// The values of one knob: what they are, how they are written, and which of
// them are suggested. All knobs of a vector parameter share one.

#ifndef CUBICML_PREDICTOR_DOMAIN_H_
#define CUBICML_PREDICTOR_DOMAIN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cubicml/v1/study.pb.h"
#include "predictor/expression.h"
#include "predictor/search_space.h"

namespace cubicml {

inline constexpr size_t kMaxDomainValues = 10000;
inline constexpr size_t kContinuousLevels = 1025;
inline constexpr int64_t kMaxInteger = int64_t{1} << 53;
inline constexpr size_t kMaxStringBytes = 256;

// Checks what any value of a domain or context must be: of a kind, a finite
// number, an integer of 53 bits, a short UTF-8 string without NUL, no list.
// INVALID_ARGUMENT at `path`.
absl::Status CheckScalarValue(const v1::Value& value, absl::string_view path);

// A value type; immutable.
class Domain {
 public:
  // INVALID_ARGUMENT at a field below `path`, which is the parameter's.
  static absl::StatusOr<Domain> Parse(const v1::Parameter& parameter,
                                      absl::string_view path);

  KnobKind kind() const { return kind_; }
  bool log_scale() const { return log_scale_; }
  bool continuous() const { return continuous_; }
  const std::vector<double>& levels() const { return levels_; }
  // Of a category; empty for others.
  std::vector<std::string> MakeLabels() const;

  // The value as a knob's, brought onto the grid. INVALID_ARGUMENT at `path`.
  absl::StatusOr<double> ParseValue(const v1::Value& value,
                                    absl::string_view path) const;
  // REQUIRES: Contains(value), for all below.
  v1::Value FormatValue(double value) const;
  SqlValue FormatSql(double value) const;
  void AppendJson(double value, std::string* json) const;
  // The same for equal values of any domain of this kind, without ',' or '~'
  // outside of a string, whose length is told before it.
  void AppendKey(double value, std::string* key) const;

  // Whether it is the value of a knob, exactly.
  bool Contains(double value) const;
  // The index of exactly this level, or -1.
  int32_t FindLevel(double value) const;

  // FAILED_PRECONDITION at `path` when a value of `old` is none of this domain.
  absl::Status CheckExtends(const Domain& old, absl::string_view path) const;

 private:
  Domain() = default;

  absl::Status ParseInteger(const v1::IntegerDomain& domain,
                            const std::string& path);
  absl::Status ParseIntegerRange(const v1::IntegerDomain& domain,
                                 const std::string& path);
  absl::Status ParseNumber(const v1::NumberDomain& domain,
                           const std::string& path);
  absl::Status ParseCategory(const v1::CategoryDomain& domain,
                             const std::string& path);
  absl::StatusOr<double> ParseNumericValue(const v1::Value& value,
                                           absl::string_view path) const;
  absl::StatusOr<double> ParseCategoryValue(const v1::Value& value,
                                            absl::string_view path) const;
  std::string DescribeLevels() const;

  KnobKind kind_ = KnobKind::kInteger;
  bool log_scale_ = false;
  bool continuous_ = false;
  std::vector<double> levels_;
  double step_ = 0.0;  // of a number; 0 without
  std::vector<v1::Value> categories_;
  std::vector<std::string> category_keys_;
  std::unordered_map<std::string, size_t> category_index_;  // by key
};

// The message of a value of the wrong type: "must be an integer, got ...".
std::string DescribeMismatch(absl::string_view wanted, const v1::Value& value);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_DOMAIN_H_
