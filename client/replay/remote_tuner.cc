// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/replay/tuner.h"
#include "cubicml/client/tuning_client.h"

namespace cubicml {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(10);

class RemoteTuner final : public Tuner {
 public:
  explicit RemoteTuner(std::unique_ptr<TuningClient> client)
      : client_(std::move(client)) {}

  absl::StatusOr<v1::Study> CreateStudy(
      const v1::CreateStudyRequest& request) override {
    return client_->CreateStudy(request);
  }
  absl::StatusOr<v1::SuggestTrialsResponse> SuggestTrials(
      const v1::SuggestTrialsRequest& request) override {
    return client_->SuggestTrials(request);
  }
  absl::StatusOr<v1::Trial> CompleteTrial(
      const v1::CompleteTrialRequest& request) override {
    return client_->CompleteTrial(request);
  }
  absl::Status DeleteStudy(const v1::DeleteStudyRequest& request) override {
    return client_->DeleteStudy(request);
  }
  void Train() override {}

 private:
  const std::unique_ptr<TuningClient> client_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tuner>> NewRemoteTuner(
    const std::string& address) {
  TuningClientOptions options;
  options.server = address;
  CUBICML_ASSIGN_OR_RETURN(std::unique_ptr<TuningClient> client,
                           TuningClient::Create(options));
  CUBICML_RETURN_IF_ERROR(client->WaitForServer(kConnectTimeout));
  return std::unique_ptr<Tuner>(
      std::make_unique<RemoteTuner>(std::move(client)));
}

}  // namespace cubicml
