// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that are the same for a seed on every platform and compiler,
// which the standard distributions do not promise. Generator: xoshiro256**
// (Blackman and Vigna, 2018), seeded by SplitMix64.

#ifndef CUBICML_BASE_RNG_H_
#define CUBICML_BASE_RNG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace cubicml {

// A value type; not thread-safe. Pass it by value or derive one for each use.
class Rng {
 public:
  using result_type = uint64_t;

  explicit Rng(uint64_t seed);

  // An independent generator for one use, e.g. Derive(study_seed, {trial}).
  static Rng Derive(uint64_t seed, std::initializer_list<uint64_t> keys);

  // A seed that is different at every call, from the operating system.
  static uint64_t NewSeed();

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()();

  // Uniform in [0, 1).
  double Uniform();
  // Uniform in [0, bound). REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound);
  // Standard normal.
  double Normal();

  template <typename T>
  void Shuffle(std::vector<T>* values) {
    for (size_t i = values->size(); i > 1; --i) {
      using std::swap;
      swap((*values)[i - 1], (*values)[Below(i)]);
    }
  }

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace cubicml

#endif  // CUBICML_BASE_RNG_H_
