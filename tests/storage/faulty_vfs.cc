// SPDX-License-Identifier: Apache-2.0

#include "tests/storage/faulty_vfs.h"

#include <sqlite3.h>

#include <filesystem>
#include <map>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "base/log.h"
#include "base/mutex.h"
#include "tests/support/temp_dir.h"

namespace cubicml {

struct FaultyVfs::State {
  sqlite3_vfs vfs{};
  sqlite3_vfs* real = nullptr;
  mutable Mutex mu;
  Fault fault ABSL_GUARDED_BY(mu) = Fault::kNone;
  int skip ABSL_GUARDED_BY(mu) = 0;
  bool struck ABSL_GUARDED_BY(mu) = false;
  // Bytes of each file as of its last sync.
  std::map<std::string, std::string> synced ABSL_GUARDED_BY(mu);

  // Whether a call that can have `kind` fails now.
  bool Fails(Fault kind) {
    MutexLock lock(&mu);
    if (fault != kind) return false;
    if (skip > 0) {
      --skip;
      return false;
    }
    struck = true;
    return true;
  }
};

namespace {

// SQLite allocates szOsFile bytes: this, then the real VFS's file.
struct File {
  sqlite3_file base;
  FaultyVfs::State* state;
  sqlite3_file* real;
  std::string path;
};

File* Cast(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Cast(file)->real; }

int Close(sqlite3_file* file) {
  const int code = Real(file)->pMethods->xClose(Real(file));
  Cast(file)->path.~basic_string();
  return code;
}

int Read(sqlite3_file* file, void* bytes, int size, sqlite3_int64 offset) {
  if (Cast(file)->state->Fails(Fault::kReadFails)) return SQLITE_IOERR_READ;
  return Real(file)->pMethods->xRead(Real(file), bytes, size, offset);
}

int Write(sqlite3_file* file, const void* bytes, int size,
          sqlite3_int64 offset) {
  if (Cast(file)->state->Fails(Fault::kDiskFull)) return SQLITE_FULL;
  if (Cast(file)->state->Fails(Fault::kShortWrite)) {
    Real(file)->pMethods->xWrite(Real(file), bytes, size / 2, offset);
    return SQLITE_IOERR_WRITE;
  }
  return Real(file)->pMethods->xWrite(Real(file), bytes, size, offset);
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  return Real(file)->pMethods->xTruncate(Real(file), size);
}

int Sync(sqlite3_file* file, int flags) {
  File* const self = Cast(file);
  if (self->state->Fails(Fault::kSyncFails)) return SQLITE_IOERR_FSYNC;
  const int code = self->real->pMethods->xSync(self->real, flags);
  sqlite3_int64 size = 0;
  self->real->pMethods->xFileSize(self->real, &size);
  std::string bytes(static_cast<size_t>(size), '\0');
  self->real->pMethods->xRead(self->real, bytes.data(), static_cast<int>(size),
                              0);
  MutexLock lock(&self->state->mu);
  self->state->synced[self->path] = std::move(bytes);
  return code;
}

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Real(file)->pMethods->xFileSize(Real(file), size);
}
int Lock(sqlite3_file* file, int kind) {
  return Real(file)->pMethods->xLock(Real(file), kind);
}
int Unlock(sqlite3_file* file, int kind) {
  return Real(file)->pMethods->xUnlock(Real(file), kind);
}
int CheckReservedLock(sqlite3_file* file, int* result) {
  return Real(file)->pMethods->xCheckReservedLock(Real(file), result);
}
int FileControl(sqlite3_file* file, int op, void* argument) {
  return Real(file)->pMethods->xFileControl(Real(file), op, argument);
}
int SectorSize(sqlite3_file* file) {
  return Real(file)->pMethods->xSectorSize(Real(file));
}
int DeviceCharacteristics(sqlite3_file* file) {
  return Real(file)->pMethods->xDeviceCharacteristics(Real(file));
}
int ShmMap(sqlite3_file* file, int page, int size, int extend,
           void volatile** out) {
  return Real(file)->pMethods->xShmMap(Real(file), page, size, extend, out);
}
int ShmLock(sqlite3_file* file, int offset, int n, int flags) {
  return Real(file)->pMethods->xShmLock(Real(file), offset, n, flags);
}
void ShmBarrier(sqlite3_file* file) {
  Real(file)->pMethods->xShmBarrier(Real(file));
}
int ShmUnmap(sqlite3_file* file, int erase) {
  return Real(file)->pMethods->xShmUnmap(Real(file), erase);
}

const sqlite3_io_methods* Methods() {
  static const sqlite3_io_methods methods = {2,
                                             Close,
                                             Read,
                                             Write,
                                             Truncate,
                                             Sync,
                                             FileSize,
                                             Lock,
                                             Unlock,
                                             CheckReservedLock,
                                             FileControl,
                                             SectorSize,
                                             DeviceCharacteristics,
                                             ShmMap,
                                             ShmLock,
                                             ShmBarrier,
                                             ShmUnmap,
                                             nullptr,
                                             nullptr};
  return &methods;
}

FaultyVfs::State* StateOf(sqlite3_vfs* vfs) {
  return static_cast<FaultyVfs::State*>(vfs->pAppData);
}

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags,
         int* out_flags) {
  FaultyVfs::State* const state = StateOf(vfs);
  File* const self = new (file) File;
  self->base.pMethods = nullptr;
  self->state = state;
  self->real = reinterpret_cast<sqlite3_file*>(self + 1);
  self->path = name == nullptr ? "" : name;
  const int code =
      state->real->xOpen(state->real, name, self->real, flags, out_flags);
  if (code == SQLITE_OK) {
    self->base.pMethods = Methods();
  } else {
    self->path.~basic_string();
  }
  return code;
}

// SQLite deletes journals, and syncs the folder where it matters.
int Delete(sqlite3_vfs* vfs, const char* name, int sync_folder) {
  FaultyVfs::State* const state = StateOf(vfs);
  {
    MutexLock lock(&state->mu);
    state->synced.erase(name);
  }
  return state->real->xDelete(state->real, name, sync_folder);
}

}  // namespace

FaultyVfs::FaultyVfs() : state_(std::make_unique<State>()) {
  state_->real = sqlite3_vfs_find(nullptr);
  state_->vfs = *state_->real;  // all that is not about files' bytes
  state_->vfs.pNext = nullptr;
  state_->vfs.zName = kName;
  state_->vfs.pAppData = state_.get();
  state_->vfs.szOsFile =
      static_cast<int>(sizeof(File)) + state_->real->szOsFile;
  state_->vfs.xOpen = Open;
  state_->vfs.xDelete = Delete;
  CUBICML_CHECK(sqlite3_vfs_register(&state_->vfs, 0) == SQLITE_OK);
}

FaultyVfs::~FaultyVfs() { sqlite3_vfs_unregister(&state_->vfs); }

void FaultyVfs::Inject(Fault fault, int skip) {
  MutexLock lock(&state_->mu);
  state_->fault = fault;
  state_->skip = skip;
  state_->struck = false;
}

bool FaultyVfs::Struck() const {
  MutexLock lock(&state_->mu);
  return state_->struck;
}

void FaultyVfs::SaveSyncedFiles(const std::string& folder) const {
  MutexLock lock(&state_->mu);
  for (const auto& [path, bytes] : state_->synced) {
    const std::string name = std::filesystem::path(path).filename().string();
    WriteFileOrDie(folder + "/" + name, bytes);
  }
}

}  // namespace cubicml
