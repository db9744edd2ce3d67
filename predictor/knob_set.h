// SPDX-License-Identifier: Apache-2.0
//
// A set of knobs as bits: which earlier choices a dead end of a walk is due to.

#ifndef CUBICML_PREDICTOR_KNOB_SET_H_
#define CUBICML_PREDICTOR_KNOB_SET_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cubicml {

// A value type. REQUIRES: sets that are merged were made for the same number of
// knobs.
class KnobSet {
 public:
  explicit KnobSet(size_t knobs) : words_((knobs + 63) / 64) {}

  void Clear() { std::fill(words_.begin(), words_.end(), uint64_t{0}); }
  void Add(size_t knob) { words_[knob / 64] |= uint64_t{1} << (knob % 64); }
  void Remove(size_t knob) {
    words_[knob / 64] &= ~(uint64_t{1} << (knob % 64));
  }
  void Merge(const KnobSet& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }
  // The largest knob of the set, or -1.
  std::ptrdiff_t Highest() const {
    for (size_t w = words_.size(); w-- > 0;) {
      if (words_[w] != 0) {
        return static_cast<std::ptrdiff_t>(w * 64) + 63 -
               std::countl_zero(words_[w]);
      }
    }
    return -1;
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_KNOB_SET_H_
