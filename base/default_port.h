// SPDX-License-Identifier: Apache-2.0
//
// The TCP ports that server and clients agree on without being told.

#ifndef CUBICML_BASE_DEFAULT_PORT_H_
#define CUBICML_BASE_DEFAULT_PORT_H_

namespace cubicml {

inline constexpr int kDefaultPort = 7264;         // gRPC
inline constexpr int kDefaultMetricsPort = 7265;  // Prometheus, over HTTP

}  // namespace cubicml

#endif  // CUBICML_BASE_DEFAULT_PORT_H_
