// SPDX-License-Identifier: Apache-2.0
//
// cubicml.v1.TuningService on the wire: the second file of every call
// (ARCHITECTURE.md, "Follow CreateStudy").

#ifndef CUBICML_SERVER_RPC_TUNING_RPC_SERVICE_H_
#define CUBICML_SERVER_RPC_TUNING_RPC_SERVICE_H_

#include <memory>

#include "grpcpp/impl/service_type.h"
#include "server/rpc/rpc_environment.h"

namespace cubicml {

// What `rpc` points to must outlive the service.
std::unique_ptr<grpc::Service> CreateTuningRpcService(
    const RpcEnvironment& rpc);

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_TUNING_RPC_SERVICE_H_
