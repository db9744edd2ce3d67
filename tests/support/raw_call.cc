// SPDX-License-Identifier: Apache-2.0

#include "tests/support/raw_call.h"

#include <chrono>

#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace cubicml {
namespace {

constexpr std::chrono::seconds kTimeout{20};

grpc::ByteBuffer ToBytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToText(const grpc::ByteBuffer& bytes) {
  std::string text;
  std::vector<grpc::Slice> slices;
  if (bytes.Valid() && bytes.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  return text;
}

// Waits for the one operation under way.
bool Next(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue->Next(&tag, &ok) && ok;
}

}  // namespace

grpc::Status CallRaw(const std::shared_ptr<grpc::Channel>& channel,
                     const std::string& path, const std::string& request,
                     std::string* response) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareUnaryCall(&context, path, ToBytes(request), &queue);
  call->StartCall();
  grpc::ByteBuffer bytes;
  grpc::Status status;
  call->Finish(&bytes, &status, nullptr);
  Next(&queue);
  if (response != nullptr) *response = ToText(bytes);
  return status;
}

grpc::Status StreamRaw(const std::shared_ptr<grpc::Channel>& channel,
                       const std::string& path,
                       const std::vector<std::string>& requests,
                       int max_responses, std::vector<std::string>* responses) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, path, &queue);
  call->StartCall(nullptr);
  bool alive = Next(&queue);
  for (const std::string& request : requests) {
    if (!alive) break;
    call->Write(ToBytes(request), nullptr);
    alive = Next(&queue);
  }
  if (alive) {
    call->WritesDone(nullptr);
    Next(&queue);
  }
  for (int i = 0; i < max_responses; ++i) {
    grpc::ByteBuffer bytes;
    call->Read(&bytes, nullptr);
    if (!Next(&queue)) break;
    responses->push_back(ToText(bytes));
  }
  grpc::Status status;
  call->Finish(&status, nullptr);
  Next(&queue);
  return status;
}

int CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                absl::string_view service) {
  std::string request;
  if (!service.empty()) {
    request.push_back('\x0A');
    request.push_back(static_cast<char>(service.size()));
    request.append(service.data(), service.size());
  }
  std::string response;
  const grpc::Status status =
      CallRaw(channel, "/grpc.health.v1.Health/Check", request, &response);
  if (!status.ok() || response.size() != 2) return 0;
  return response[1];
}

}  // namespace cubicml
