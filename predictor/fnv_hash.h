// SPDX-License-Identifier: Apache-2.0
//
// FNV-1a: a hash that is the same on every platform, unlike std::hash, so that
// it may be stored or learnt from.

#ifndef CUBICML_PREDICTOR_FNV_HASH_H_
#define CUBICML_PREDICTOR_FNV_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace cubicml {

inline uint64_t FnvHash(absl::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_FNV_HASH_H_
