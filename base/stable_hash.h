// SPDX-License-Identifier: Apache-2.0
//
// A hash that is the same in every process and on every platform, for what is
// stored or seeds a generator: FNV-1a, 64 bits.

#ifndef CUBICML_BASE_STABLE_HASH_H_
#define CUBICML_BASE_STABLE_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace cubicml {

inline uint64_t StableHash(absl::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3u;
  }
  return hash;
}

}  // namespace cubicml

#endif  // CUBICML_BASE_STABLE_HASH_H_
