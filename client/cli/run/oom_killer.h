// SPDX-License-Identifier: Apache-2.0
//
// Whether the kernel's out-of-memory killer has been at work: the job itself
// only sees a SIGKILL.

#ifndef CUBICML_CLIENT_CLI_RUN_OOM_KILLER_H_
#define CUBICML_CLIENT_CLI_RUN_OOM_KILLER_H_

#include <cstdint>
#include <map>
#include <string>

namespace cubicml {

// Counters of killed processes, by the file that holds them: those of this
// process's control group (v2 and v1) and of the machine. A value type.
class OomKillCounts {
 public:
  // `root` is the root of the file system, "" outside tests.
  static OomKillCounts Read(const std::string& root = "");

  // Has a counter grown since `before`? The machine's counts, too: a job in a
  // child group, or on a machine that is out of memory as a whole.
  bool HasGrownSince(const OomKillCounts& before) const;
  // Only those of the group, where hardly anybody but the job can be meant.
  bool GroupHasGrownSince(const OomKillCounts& before) const;

 private:
  std::map<std::string, int64_t> group_;
  int64_t machine_ = 0;
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_OOM_KILLER_H_
