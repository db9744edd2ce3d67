// SPDX-License-Identifier: Apache-2.0

#include "base/rng.h"

#include <bit>
#include <cmath>
#include <numbers>
#include <random>

namespace cubicml {
namespace {

uint64_t SplitMix64(uint64_t* state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

Rng::Rng(uint64_t seed) {
  for (uint64_t& word : state_) word = SplitMix64(&seed);
}

Rng Rng::Derive(uint64_t seed, std::initializer_list<uint64_t> keys) {
  uint64_t mixed = seed;
  for (uint64_t key : keys) {
    uint64_t word = SplitMix64(&mixed) ^ key;
    mixed = SplitMix64(&word);
  }
  return Rng(mixed);
}

uint64_t Rng::NewSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

uint64_t Rng::operator()() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Rng::Uniform() {
  return static_cast<double>((*this)() >> 11) * 0x1.0p-53;
}

uint64_t Rng::Below(uint64_t bound) {
  // Rejection of the uneven tail keeps it exactly uniform.
  const uint64_t limit = max() - max() % bound;
  uint64_t draw = (*this)();
  while (draw >= limit) draw = (*this)();
  return draw % bound;
}

double Rng::Normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * Uniform());
}

}  // namespace cubicml
