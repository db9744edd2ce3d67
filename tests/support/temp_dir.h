// SPDX-License-Identifier: Apache-2.0
//
// A folder of a test's own, gone with everything in it when the test ends.

#ifndef CUBICML_TESTS_SUPPORT_TEMP_DIR_H_
#define CUBICML_TESTS_SUPPORT_TEMP_DIR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace cubicml {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // Of a file or folder in it, which need not exist.
  std::string PathOf(absl::string_view name) const;

 private:
  std::string path_;
};

// The file's bytes; the test program ends when it cannot be read or written.
std::string ReadFileOrDie(const std::string& path);
void WriteFileOrDie(const std::string& path, absl::string_view bytes);

}  // namespace cubicml

#endif  // CUBICML_TESTS_SUPPORT_TEMP_DIR_H_
