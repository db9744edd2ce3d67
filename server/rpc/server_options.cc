// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/server_options.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "base/field_error.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

// Without looking names up: what a name means may change.
bool IsLoopback(absl::string_view host) {
  return host == "localhost" || host == "[::1]" ||
         absl::StartsWith(host, "127.");
}

absl::Status ValidateAddress(absl::string_view flag, absl::string_view address,
                             bool anywhere) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return FieldError(flag, absl::StrCat("'", address, "' is not host:port"));
  }
  const absl::string_view host = address.substr(0, colon);
  if (!anywhere && !IsLoopback(host)) {
    return FieldError(
        flag, absl::StrCat("'", host,
                           "' is not a loopback address, and whoever "
                           "reaches the port may do everything: pass "
                           "--insecure_listen_anywhere when the network is "
                           "trusted"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ServerOptions::Validate() const {
  CUBICML_RETURN_IF_ERROR(ValidateAddress("--listen_address", listen_address,
                                          insecure_listen_anywhere));
  if (!metrics_address.empty()) {
    CUBICML_RETURN_IF_ERROR(ValidateAddress(
        "--metrics_address", metrics_address, insecure_listen_anywhere));
  }
  if (worker_threads < 1 || worker_threads > 1024) {
    return FieldError("--worker_threads", "must be from 1 to 1024");
  }
  if (max_queued_calls < 1 || max_queued_calls > 1'000'000) {
    return FieldError("--max_queued_calls", "must be from 1 to 1000000");
  }
  if (drain_timeout < absl::ZeroDuration() || drain_timeout > absl::Hours(1)) {
    return FieldError("--drain_timeout_s", "must be from 0 to 3600");
  }
  if (training_niceness < 0 || training_niceness > 19) {
    return FieldError("--training_niceness", "must be from 0 to 19");
  }
  return absl::OkStatus();
}

}  // namespace cubicml
