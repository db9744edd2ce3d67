// SPDX-License-Identifier: Apache-2.0
//
// Reads a study from the store into memory.

#ifndef CUBICML_SERVER_CORE_STUDY_LOADER_H_
#define CUBICML_SERVER_CORE_STUDY_LOADER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "predictor/trainer.h"
#include "server/core/study_state.h"
#include "storage/study_store.h"

namespace cubicml {

struct StudyLoaderOptions {
  StudyStore* store = nullptr;
  const Trainer* trainer = nullptr;
  const Clock* clock = nullptr;
  // When this process started, on Clock::Elapsed: no lease lapses before its
  // holder had one lease's time to reach it.
  absl::Duration start;
  // Ends a load that nobody needs any more.
  ReadCheck check = {};
};

// NOT_FOUND; DATA_LOSS when its definition cannot be read. A trial or model
// that cannot be read is logged and left out.
absl::StatusOr<std::shared_ptr<StudyState>> LoadStudy(
    const StudyLoaderOptions& options, absl::string_view name);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_STUDY_LOADER_H_
