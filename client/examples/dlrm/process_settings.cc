// SPDX-License-Identifier: Apache-2.0
#include "client/examples/dlrm/process_settings.h"

#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace cubicml::dlrm {
namespace {

constexpr int64_t kMib = 1024 * 1024;
constexpr auto kOverlap = std::chrono::milliseconds(30);

// glibc hands blocks above its thresholds back to the system on every free,
// and the next one costs a page fault for each 4 KiB. mallopt takes an int,
// and refuses an mmap threshold above 32 MiB, beyond which blocks are mapped
// whatever it is told, unless mapping is off.
absl::Status SetMallocThreshold(int64_t mib) {
  const int bytes =
      static_cast<int>(mib * kMib > INT32_MAX ? INT32_MAX : mib * kMib);
  constexpr int64_t kMaxMmapThresholdMib = 32;
  const bool set_mmap = mib > kMaxMmapThresholdMib
                            ? mallopt(M_MMAP_MAX, 0) == 1
                            : mallopt(M_MMAP_THRESHOLD, bytes) == 1;
  if (!set_mmap || mallopt(M_TRIM_THRESHOLD, bytes) != 1) {
    return absl::UnavailableError(
        absl::StrCat("--malloc_threshold_mib: mallopt refused ", mib, " MiB"));
  }
  return absl::OkStatus();
}

// A line of what the kernel says about this process, in MiB; 0 without one.
double ProcessStatusMib(std::string_view name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    double kib = 0.0;
    if (word == name && status >> kib) return kib / 1024.0;
  }
  return 0.0;
}

// OpenBLAS maps a large buffer for each call that is running at once, keeps
// it, and tries for ever when it cannot have one. So it gets as many as there
// will be threads before there is a limit.
void MapBlasBuffers(int64_t threads) {
  constexpr int64_t kSize = 256;
  std::atomic<int64_t> not_started = threads;
  const auto multiply = [&not_started] {
    const at::Tensor factor = at::ones({kSize, kSize}, at::kFloat);
    --not_started;
    const auto start = std::chrono::steady_clock::now();
    while (not_started > 0 ||
           std::chrono::steady_clock::now() - start < kOverlap) {
      at::mm(factor, factor);
    }
  };
  std::vector<std::thread> others;
  for (int64_t i = 1; i < threads; ++i) others.emplace_back(multiply);
  multiply();
  for (std::thread& thread : others) thread.join();
}

// RLIMIT_DATA counts private writable memory: heap, mapped blocks and stacks,
// but not the libraries' code, nor address space that is only reserved, which
// RLIMIT_AS would. What the libraries hold already comes on top, or the limit
// would mean something else on each machine.
absl::Status SetMemoryLimit(int64_t mib) {
  const auto held = static_cast<int64_t>(ProcessStatusMib("VmData:"));
  const auto bytes = static_cast<rlim_t>((held + mib) * kMib);
  const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) {
    return absl::UnavailableError(
        absl::StrCat("--memory_limit_mib: setrlimit refused ", mib,
                     " MiB: ", std::generic_category().message(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyProcessSettings(const DlrmOptions& options) {
  if (options.malloc_threshold_mib > 0) {
    absl::Status status = SetMallocThreshold(options.malloc_threshold_mib);
    if (!status.ok()) return status;
  }
  if (options.intra_op_threads > 0) {
    at::set_num_threads(static_cast<int>(options.intra_op_threads));
  }
  // Starts LibTorch's threads before the limit: the thread library ends the
  // process without a word of memory when it cannot have a stack.
  at::parallel_for(0, at::get_num_threads(), 1, [](int64_t, int64_t) {});
  if (options.memory_limit_mib > 0) {
    MapBlasBuffers(options.worker_threads * at::get_num_threads());
    return SetMemoryLimit(options.memory_limit_mib);
  }
  return absl::OkStatus();
}

double PeakResidentMib() {
  // Not getrusage: its maximum includes that of the process that started this
  // one, which may have been larger.
  return ProcessStatusMib("VmHWM:");
}

bool IsOutOfMemory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    return system->code() == std::errc::resource_unavailable_try_again ||
           system->code() == std::errc::not_enough_memory;
  }
  return std::string_view(error.what()).find("can't allocate memory") !=
         std::string_view::npos;
}

}  // namespace cubicml::dlrm
