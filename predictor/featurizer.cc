// SPDX-License-Identifier: Apache-2.0

#include "predictor/featurizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "predictor/fnv_hash.h"

namespace cubicml {
namespace {

// Categories with more values are hashed into kHashColumns.
constexpr size_t kMaxOneHot = 24;
constexpr size_t kHashColumns = 8;
// Integers that span at least this factor are counts: their effects multiply,
// whatever scale their values were given on.
constexpr double kCountRatio = 4.0;
// Sums and differences of the logarithms of two counts are columns of their own
// for at most this many counts (56 columns).
constexpr size_t kMaxPairedCounts = 8;
// Context numbers have no known range: their logarithms to base 2 are divided
// by this.
constexpr double kContextOctaves = 8.0;

uint64_t Hash(absl::string_view text) {  // and SplitMix64's finaliser
  uint64_t hash = FnvHash(text);
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

// Random signs, the same for the same text: different texts are far apart, and
// nothing need be known of those to come.
void AppendSigns(uint64_t hash, std::vector<float>* row) {
  for (size_t bit = 0; bit < kHashColumns; ++bit) {
    row->push_back((hash >> bit) & 1U ? 0.5F : -0.5F);
  }
}

float ContextNumber(double value) {
  const double octaves = std::log2(1.0 + std::abs(value));
  return static_cast<float>(std::copysign(octaves / kContextOctaves, value));
}

// The first number in a text, with its unit of size: 1.3 of "gpt-1.3b" is
// 1.3e9.
std::optional<double> NumberIn(absl::string_view text) {
  size_t i = 0;
  while (i < text.size() && (text[i] < '0' || text[i] > '9')) ++i;
  if (i == text.size()) return std::nullopt;
  double value = 0.0;
  double unit = 0.0;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && unit == 0.0) {
      unit = 1.0;
    } else if (text[i] >= '0' && text[i] <= '9') {
      value = value * 10.0 + (text[i] - '0');
      unit *= 10.0;
    } else {
      break;
    }
  }
  if (unit > 0.0) value /= unit;
  constexpr absl::string_view kUnits = "kmbt";
  if (i < text.size()) {
    char c = static_cast<char>(text[i] | 0x20);  // lower case
    if (c == 'g') c = 'b';
    const size_t power = kUnits.find(c);
    if (power != absl::string_view::npos) {
      value *= std::pow(1000.0, static_cast<double>(power + 1));
    }
  }
  return value;
}

// Maps values to [-1, 1].
struct Axis {
  bool logarithmic = false;
  double low = 0.0;
  double high = 0.0;

  double Raw(double value) const {
    return logarithmic ? std::log(value) : value;
  }
  float Position(double value) const {
    if (high == low) return 0.0F;
    return static_cast<float>(2.0 * (Raw(value) - low) / (high - low) - 1.0);
  }
};

bool IsCount(const Knob& knob) {
  return knob.kind == KnobKind::kInteger && knob.levels.front() > 0.0 &&
         knob.levels.back() >= kCountRatio * knob.levels.front();
}

// How uneven the distances between neighbours are: standard deviation over
// mean.
double Unevenness(const std::vector<double>& values) {
  const double gaps = static_cast<double>(values.size()) - 1.0;
  const double mean = (values.back() - values.front()) / gaps;
  double squares = 0.0;
  for (size_t i = 1; i < values.size(); ++i) {
    const double d = values[i] - values[i - 1] - mean;
    squares += d * d;
  }
  return std::sqrt(squares / gaps) / mean;
}

// People choose values that are evenly spaced where it matters: on the scale
// that spaces a knob's values the most evenly.
bool IsEvenerInLogarithms(const std::vector<double>& levels) {
  if (levels.front() <= 0.0 || levels.size() < 3) return false;
  std::vector<double> logarithms;
  for (const double level : levels) logarithms.push_back(std::log(level));
  return Unevenness(logarithms) < Unevenness(levels);
}

Axis MakeAxis(const Knob& knob) {
  Axis axis;
  axis.logarithmic = knob.log_scale || IsEvenerInLogarithms(knob.levels);
  axis.low = axis.Raw(knob.levels.front());
  axis.high = axis.Raw(knob.levels.back());
  return axis;
}

Axis CountAxis(const Knob& knob) {
  return {true, std::log(knob.levels.front()), std::log(knob.levels.back())};
}

}  // namespace

struct Featurizer::Columns {
  std::shared_ptr<const SearchSpace> space;
  std::vector<Axis> axes;        // by knob; unused for categories
  std::vector<size_t> counts;    // knobs that are counts
  std::vector<Axis> count_axes;  // of counts
  // Whether their sums and differences are columns; else their logarithms are.
  bool paired = false;
  std::vector<std::string> names;

  void AppendKnob(size_t k, double value, std::vector<float>* row) const;
  void AppendCounts(const Point& point, std::vector<float>* row) const;
  void AppendField(const v1::ContextField& field, const Context::Field& value,
                   std::vector<float>* row) const;
  void NameKnob(const Knob& knob);
  void NameCounts();
  void NameField(const v1::ContextField& field);
};

void Featurizer::Columns::AppendKnob(size_t k, double value,
                                     std::vector<float>* row) const {
  const Knob& knob = space->knobs()[k];
  const bool active = !std::isnan(value);
  if (knob.kind != KnobKind::kCategory) {
    row->push_back(active ? axes[k].Position(value) : 0.0F);
  } else if (knob.levels.size() == 2) {
    row->push_back(active ? static_cast<float>(value) : 0.5F);
  } else if (knob.levels.size() <= kMaxOneHot) {
    for (const double level : knob.levels) {
      row->push_back(value == level ? 1.0F : 0.0F);
    }
  } else if (active) {
    AppendSigns(Hash(knob.labels[static_cast<size_t>(value)]), row);
  } else {
    row->insert(row->end(), kHashColumns, 0.0F);
  }
  if (knob.conditional) row->push_back(active ? 1.0F : 0.0F);
}

void Featurizer::Columns::AppendCounts(const Point& point,
                                       std::vector<float>* row) const {
  if (!paired) {
    for (size_t a = 0; a < counts.size(); ++a) {
      const double value = point[counts[a]];
      row->push_back(std::isnan(value) ? 0.0F : count_axes[a].Position(value));
    }
    return;
  }
  for (size_t a = 0; a < counts.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const double first = point[counts[a]];
      const double second = point[counts[b]];
      if (std::isnan(first) || std::isnan(second)) {
        row->insert(row->end(), 2, 0.0F);
        continue;
      }
      const Axis& x = count_axes[a];
      const Axis& y = count_axes[b];
      const double span = 0.5 * (x.high - x.low + y.high - y.low);
      const double centre = 0.5 * (x.high + x.low + y.high + y.low);
      const double skew = 0.5 * (x.high + x.low - y.high - y.low);
      const double p = x.Raw(first);
      const double q = y.Raw(second);
      row->push_back(static_cast<float>((p + q - centre) / span));
      row->push_back(static_cast<float>((p - q - skew) / span));
    }
  }
}

void Featurizer::Columns::AppendField(const v1::ContextField& field,
                                      const Context::Field& value,
                                      std::vector<float>* row) const {
  if (field.optional()) row->push_back(value.present ? 1.0F : 0.0F);
  switch (field.type()) {
    case v1::STRING: {
      if (!value.present) {
        row->insert(row->end(), kHashColumns + 1, 0.0F);
        return;
      }
      AppendSigns(Hash(value.text), row);
      const std::optional<double> number = NumberIn(value.text);
      row->push_back(number.has_value() ? ContextNumber(*number) : 0.0F);
      return;
    }
    case v1::BOOLEAN:
      row->push_back(value.present ? static_cast<float>(value.number) : 0.5F);
      return;
    default:
      row->push_back(value.present ? ContextNumber(value.number) : 0.0F);
  }
}

void Featurizer::Columns::NameKnob(const Knob& knob) {
  if (knob.kind != KnobKind::kCategory || knob.levels.size() == 2) {
    names.push_back(knob.name);
  } else {
    const size_t columns =
        knob.levels.size() <= kMaxOneHot ? knob.levels.size() : kHashColumns;
    for (size_t i = 0; i < columns; ++i) {
      names.push_back(absl::StrCat(knob.name, "=", i));
    }
  }
  if (knob.conditional) names.push_back(absl::StrCat(knob.name, " active"));
}

void Featurizer::Columns::NameCounts() {
  if (!paired) {
    for (const size_t k : counts) {
      names.push_back(absl::StrCat("log ", space->knobs()[k].name));
    }
    return;
  }
  for (size_t a = 0; a < counts.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const std::string& first = space->knobs()[counts[a]].name;
      const std::string& second = space->knobs()[counts[b]].name;
      names.push_back(absl::StrCat(first, "*", second));
      names.push_back(absl::StrCat(first, "/", second));
    }
  }
}

void Featurizer::Columns::NameField(const v1::ContextField& field) {
  if (field.optional()) names.push_back(absl::StrCat(field.name(), " present"));
  if (field.type() == v1::STRING) {
    for (size_t i = 0; i < kHashColumns; ++i) {
      names.push_back(absl::StrCat(field.name(), "#", i));
    }
  }
  names.push_back(field.name());
}

Featurizer::Featurizer(std::shared_ptr<const SearchSpace> space) {
  auto columns = std::make_unique<Columns>();
  columns->space = std::move(space);
  const std::vector<Knob>& knobs = columns->space->knobs();
  for (size_t k = 0; k < knobs.size(); ++k) {
    columns->axes.push_back(
        knobs[k].kind == KnobKind::kCategory ? Axis{} : MakeAxis(knobs[k]));
    if (IsCount(knobs[k])) {
      columns->counts.push_back(k);
      columns->count_axes.push_back(CountAxis(knobs[k]));
    }
    columns->NameKnob(knobs[k]);
  }
  columns->paired =
      columns->counts.size() >= 2 && columns->counts.size() <= kMaxPairedCounts;
  columns->NameCounts();
  for (const v1::ContextField& field : columns->space->context_fields()) {
    columns->NameField(field);
  }
  columns_ = std::move(columns);
}

Featurizer::~Featurizer() = default;
Featurizer::Featurizer(Featurizer&&) noexcept = default;

size_t Featurizer::columns() const { return columns_->names.size(); }

const std::vector<std::string>& Featurizer::column_names() const {
  return columns_->names;
}

FeatureMatrix Featurizer::Featurize(std::span<const Point> points,
                                    const Context& context) const {
  FeatureMatrix features;
  features.columns = columns();
  features.values.reserve(points.size() * columns());
  for (const Point& point : points) Append(point, context, &features);
  return features;
}

void Featurizer::Append(const Point& point, const Context& context,
                        FeatureMatrix* features) const {
  features->columns = columns();
  ++features->rows;
  std::vector<float>* row = &features->values;
  for (size_t k = 0; k < point.size(); ++k) {
    columns_->AppendKnob(k, point[k], row);
  }
  columns_->AppendCounts(point, row);
  const auto& fields = columns_->space->context_fields();
  for (size_t f = 0; f < context.fields.size(); ++f) {
    columns_->AppendField(fields[f], context.fields[f], row);
  }
}

}  // namespace cubicml
