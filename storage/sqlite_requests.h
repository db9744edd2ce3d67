// SPDX-License-Identifier: Apache-2.0
//
// Answers to calls that were carried out. They are written in the transaction
// of the change that they answer, so that either both are there or neither.

#ifndef CUBICML_STORAGE_SQLITE_REQUESTS_H_
#define CUBICML_STORAGE_SQLITE_REQUESTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/sqlite_db.h"
#include "storage/study_store.h"

namespace cubicml {

struct RequestAnswer {
  std::optional<int64_t> study_id;
  std::optional<int64_t> first_trial;
  std::optional<int64_t> trial_count;
  std::string answer;  // a serialized resource, or empty
};

// nullopt when the key has no id or a new one. INVALID_ARGUMENT on the field
// request_id when it belongs to another call.
absl::StatusOr<std::optional<RequestAnswer>> FindRequest(Database* db,
                                                         const RequestKey& key);

// Does nothing when the key has no id. ALREADY_EXISTS when it is known.
absl::Status InsertRequest(Database* db, const RequestKey& key, int64_t now_us,
                           const RequestAnswer& answer);

}  // namespace cubicml

#endif  // CUBICML_STORAGE_SQLITE_REQUESTS_H_
