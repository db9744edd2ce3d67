// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/tuning_rpc_service.h"

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "cubicml/v1/tuning_service.grpc.pb.h"
#include "google/protobuf/empty.pb.h"
#include "server/rpc/call_deadline.h"
#include "server/rpc/export_reactor.h"
#include "server/rpc/import_reactor.h"
#include "server/rpc/unary_dispatch.h"

namespace cubicml {
namespace {

using Bytes = grpc::ByteBuffer;
using Context = grpc::CallbackServerContext;
using Unary = grpc::ServerUnaryReactor;
using Wire = v1::TuningService;

// Every call takes and gives bytes (wire_message.h says why).
using ReadingCalls = Wire::WithRawCallbackMethod_GetStudy<
    Wire::WithRawCallbackMethod_ListStudies<
        Wire::WithRawCallbackMethod_GetTrial<
            Wire::WithRawCallbackMethod_ListTrials<
                Wire::WithRawCallbackMethod_ExportTrials<
                    Wire::WithRawCallbackMethod_ListOptimalTrials<
                        Wire::WithRawCallbackMethod_Predict<
                            Wire::Service>>>>>>>;
using StudyCalls = Wire::WithRawCallbackMethod_CreateStudy<
    Wire::WithRawCallbackMethod_UpdateStudy<
        Wire::WithRawCallbackMethod_DeleteStudy<ReadingCalls>>>;
using AllCalls = Wire::WithRawCallbackMethod_SuggestTrials<
    Wire::WithRawCallbackMethod_Heartbeat<
        Wire::WithRawCallbackMethod_CompleteTrial<
            Wire::WithRawCallbackMethod_CancelTrial<
                Wire::WithRawCallbackMethod_ImportTrials<StudyCalls>>>>>;

class TuningRpcService final : public AllCalls {
 public:
  explicit TuningRpcService(const RpcEnvironment& rpc) : rpc_(rpc) {}

  Unary* CreateStudy(Context* context, const Bytes* in, Bytes* out) override {
    return Dispatch("CreateStudy", context, in, out,
                    &StudyService::CreateStudy);
  }
  Unary* GetStudy(Context* context, const Bytes* in, Bytes* out) override {
    return Dispatch("GetStudy", context, in, out, &StudyService::GetStudy);
  }
  Unary* ListStudies(Context* context, const Bytes* in, Bytes* out) override {
    return Dispatch("ListStudies", context, in, out,
                    &StudyService::ListStudies);
  }
  Unary* UpdateStudy(Context* context, const Bytes* in, Bytes* out) override {
    return Dispatch("UpdateStudy", context, in, out,
                    &StudyService::UpdateStudy);
  }
  Unary* DeleteStudy(Context* context, const Bytes* in, Bytes* out) override {
    return Dispatch("DeleteStudy", context, in, out,
                    &StudyService::DeleteStudy);
  }
  Unary* SuggestTrials(Context* context, const Bytes* in, Bytes* out) override {
    return Dispatch("SuggestTrials", context, in, out,
                    &StudyService::SuggestTrials);
  }
  Unary* Heartbeat(Context* context, const Bytes* in, Bytes* out) override {
    return Dispatch("Heartbeat", context, in, out, &StudyService::Heartbeat);
  }
  Unary* CompleteTrial(Context* context, const Bytes* in, Bytes* out) override {
    return Dispatch("CompleteTrial", context, in, out,
                    &StudyService::CompleteTrial);
  }
  Unary* CancelTrial(Context* context, const Bytes* in, Bytes* out) override {
    return Dispatch("CancelTrial", context, in, out,
                    &StudyService::CancelTrial);
  }
  Unary* GetTrial(Context* context, const Bytes* in, Bytes* out) override {
    return Dispatch("GetTrial", context, in, out, &StudyService::GetTrial);
  }
  Unary* ListTrials(Context* context, const Bytes* in, Bytes* out) override {
    return Dispatch("ListTrials", context, in, out, &StudyService::ListTrials);
  }
  Unary* ListOptimalTrials(Context* context, const Bytes* in,
                           Bytes* out) override {
    return Dispatch("ListOptimalTrials", context, in, out,
                    &StudyService::ListOptimalTrials);
  }
  Unary* Predict(Context* context, const Bytes* in, Bytes* out) override {
    return Dispatch("Predict", context, in, out, &StudyService::Predict);
  }
  grpc::ServerReadReactor<Bytes>* ImportTrials(Context* context,
                                               Bytes* out) override {
    return new ImportReactor(rpc_, context, out);
  }
  grpc::ServerWriteReactor<Bytes>* ExportTrials(Context* context,
                                                const Bytes* in) override {
    return new ExportReactor(rpc_, context, in);
  }

 private:
  template <typename Request, typename Handler>
  Unary* Start(absl::string_view method, Context* context, const Bytes* in,
               Bytes* out, Handler handler) {
    return UnaryCall<Request, Handler>(rpc_, method, context,
                                       std::move(handler))
        .Start(in, out);
  }

  template <typename Request, typename Response>
  Unary* Dispatch(
      absl::string_view method, Context* context, const Bytes* in, Bytes* out,
      absl::StatusOr<Response> (StudyService::*call)(const Request&)) {
    return Start<Request>(
        method, context, in, out,
        [service = rpc_.service, call](const Request& request) {
          return (service->*call)(request);
        });
  }

  // Reads that may take long end with the call.
  template <typename Request, typename Response>
  Unary* Dispatch(absl::string_view method, Context* context, const Bytes* in,
                  Bytes* out,
                  absl::StatusOr<Response> (StudyService::*call)(
                      const Request&, const ReadCheck&)) {
    return Start<Request>(method, context, in, out,
                          [rpc = rpc_, context, call](const Request& request) {
                            return (rpc.service->*call)(request, [&] {
                              return CheckAwaited(*context, *rpc.clock);
                            });
                          });
  }

  // Calls that answer with nothing.
  template <typename Request>
  Unary* Dispatch(absl::string_view method, Context* context, const Bytes* in,
                  Bytes* out,
                  absl::Status (StudyService::*call)(const Request&)) {
    return Start<Request>(method, context, in, out,
                          [service = rpc_.service, call](const Request& request)
                              -> absl::StatusOr<google::protobuf::Empty> {
                            CUBICML_RETURN_IF_ERROR((service->*call)(request));
                            return google::protobuf::Empty();
                          });
  }

  // Calls that think until their deadline.
  template <typename Request, typename Response>
  Unary* Dispatch(absl::string_view method, Context* context, const Bytes* in,
                  Bytes* out,
                  absl::StatusOr<Response> (StudyService::*call)(
                      const Request&, absl::Duration,
                      const std::function<bool()>&)) {
    return Start<Request>(method, context, in, out,
                          [rpc = rpc_, context, call](const Request& request) {
                            return (rpc.service->*call)(
                                request, CallDeadline(*context, *rpc.clock),
                                [context] { return context->IsCancelled(); });
                          });
  }

  const RpcEnvironment rpc_;
};

}  // namespace

std::unique_ptr<grpc::Service> CreateTuningRpcService(
    const RpcEnvironment& rpc) {
  return std::make_unique<TuningRpcService>(rpc);
}

}  // namespace cubicml
