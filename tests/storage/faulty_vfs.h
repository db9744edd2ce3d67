// SPDX-License-Identifier: Apache-2.0
//
// A disk that fails on demand, and that knows what it would still hold after a
// loss of power: a SQLite VFS in front of the real one.

#ifndef CUBICML_TESTS_STORAGE_FAULTY_VFS_H_
#define CUBICML_TESTS_STORAGE_FAULTY_VFS_H_

#include <memory>
#include <string>

namespace cubicml {

enum class Fault {
  kNone,
  kSyncFails,   // and what was written is in doubt
  kShortWrite,  // half is written, then an I/O error
  kDiskFull,    // nothing more can be written
  kReadFails,
};

// Thread-safe. At most one at a time, since SQLite knows it by name. Must
// outlive all databases opened through it.
class FaultyVfs {
 public:
  FaultyVfs();
  ~FaultyVfs();
  FaultyVfs(const FaultyVfs&) = delete;
  FaultyVfs& operator=(const FaultyVfs&) = delete;

  static constexpr const char* kName = "faulty";

  // The call of this kind after `skip` others fails, and all that follow.
  void Inject(Fault fault, int skip);
  void Heal() { Inject(Fault::kNone, 0); }
  // Whether the injected fault has struck.
  bool Struck() const;

  // Writes what has been synced of the database and its log, and nothing
  // else, under the same names into another folder.
  void SaveSyncedFiles(const std::string& folder) const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace cubicml

#endif  // CUBICML_TESTS_STORAGE_FAULTY_VFS_H_
