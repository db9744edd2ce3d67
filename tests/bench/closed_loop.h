// SPDX-License-Identifier: Apache-2.0
//
// Clients that each call again as soon as they are answered, without a thread
// for each: the callback API carries them, so that they take as little as they
// can from the server on the same processor.

#ifndef CUBICML_TESTS_BENCH_CLOSED_LOOP_H_
#define CUBICML_TESTS_BENCH_CLOSED_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"

namespace cubicml {

// One kind of call. Both functions are called from several threads.
struct BenchCall {
  std::string path;  // "/package.Service/Method"
  // False: nothing is left to ask, the client stops.
  std::function<bool(grpc::ByteBuffer*)> next_request;
  std::function<void(const grpc::ByteBuffer&)> on_response = {};
  // The status that counts as an answer.
  int expected_code = 0;
};

struct BenchResult {
  double rate = 0;  // answers a second
  absl::Duration p50;
  absl::Duration p99;
  int64_t answers = 0;
  int64_t errors = 0;
  std::string first_error;
};

// Runs `clients` clients for `duration` over these channels in turn.
BenchResult RunClosedLoop(
    const std::vector<std::shared_ptr<grpc::Channel>>& channels, int clients,
    absl::Duration duration, const BenchCall& call);

}  // namespace cubicml

#endif  // CUBICML_TESTS_BENCH_CLOSED_LOOP_H_
