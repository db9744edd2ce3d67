// SPDX-License-Identifier: Apache-2.0
//
// Times and durations as the protos carry them: UTC, whole nanoseconds.

#ifndef CUBICML_SERVER_CORE_TIME_PROTO_H_
#define CUBICML_SERVER_CORE_TIME_PROTO_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>

#include "absl/time/time.h"

namespace cubicml {

inline google::protobuf::Timestamp TimeToProto(absl::Time time) {
  const int64_t seconds = absl::ToUnixSeconds(time);
  google::protobuf::Timestamp proto;
  proto.set_seconds(seconds);
  proto.set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return proto;
}

inline absl::Time TimeFromProto(const google::protobuf::Timestamp& proto) {
  return absl::FromUnixSeconds(proto.seconds()) +
         absl::Nanoseconds(proto.nanos());
}

inline google::protobuf::Duration DurationToProto(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  google::protobuf::Duration proto;
  proto.set_seconds(seconds);
  proto.set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(duration - absl::Seconds(seconds))));
  return proto;
}

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_TIME_PROTO_H_
