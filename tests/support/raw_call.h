// SPDX-License-Identifier: Apache-2.0
//
// Calls by the bytes of their messages: what no stub would send, and services
// (health, reflection) whose stubs are not packaged.

#ifndef CUBICML_TESTS_SUPPORT_RAW_CALL_H_
#define CUBICML_TESTS_SUPPORT_RAW_CALL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/status.h"

namespace cubicml {

// `path` is "/package.Service/Method". `response` may be null.
grpc::Status CallRaw(const std::shared_ptr<grpc::Channel>& channel,
                     const std::string& path, const std::string& request,
                     std::string* response);

// Sends `requests` over a stream, ends it, and takes up to `max_responses`.
grpc::Status StreamRaw(const std::shared_ptr<grpc::Channel>& channel,
                       const std::string& path,
                       const std::vector<std::string>& requests,
                       int max_responses, std::vector<std::string>* responses);

// What grpc.health.v1.Health/Check says: 1 SERVING, 2 NOT_SERVING, 0 none.
int CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                absl::string_view service);

}  // namespace cubicml

#endif  // CUBICML_TESTS_SUPPORT_RAW_CALL_H_
