// SPDX-License-Identifier: Apache-2.0
//
// Times as they are stored: microseconds since 1970 in UTC.

#ifndef CUBICML_STORAGE_PROTO_TIME_H_
#define CUBICML_STORAGE_PROTO_TIME_H_

#include <google/protobuf/timestamp.pb.h>

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace cubicml {

// What is out of range becomes the nearest time that is not.
inline int64_t MicrosFromTimestamp(const google::protobuf::Timestamp& time) {
  const int64_t seconds =
      std::clamp(time.seconds(), kMinTimestampSeconds, kMaxTimestampSeconds);
  return seconds * 1'000'000 + std::clamp(time.nanos(), 0, 999'999'999) / 1000;
}

inline void SetTimestamp(int64_t micros, google::protobuf::Timestamp* time) {
  int64_t seconds = micros / 1'000'000;
  int64_t rest = micros % 1'000'000;
  if (rest < 0) {
    rest += 1'000'000;
    --seconds;
  }
  time->set_seconds(seconds);
  time->set_nanos(static_cast<int32_t>(rest * 1000));
}

}  // namespace cubicml

#endif  // CUBICML_STORAGE_PROTO_TIME_H_
