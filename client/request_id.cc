// SPDX-License-Identifier: Apache-2.0

#include "client/request_id.h"

#include "absl/strings/str_format.h"
#include "base/rng.h"

namespace cubicml {

std::string NewRequestId() {
  return absl::StrFormat("%016x%016x", Rng::NewSeed(), Rng::NewSeed());
}

}  // namespace cubicml
