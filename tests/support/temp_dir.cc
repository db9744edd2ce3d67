// SPDX-License-Identifier: Apache-2.0

#include "tests/support/temp_dir.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace cubicml {

TempDir::TempDir() {
  path_ = absl::StrCat(std::filesystem::temp_directory_path().string(),
                       "/cubicml_test_XXXXXX");
  CUBICML_CHECK(mkdtemp(path_.data()) != nullptr);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::PathOf(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

std::string ReadFileOrDie(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  CUBICML_CHECK(in.good());
  std::string bytes((std::istreambuf_iterator<char>(in)),
                    std::istreambuf_iterator<char>());
  CUBICML_CHECK(!in.bad());
  return bytes;
}

void WriteFileOrDie(const std::string& path, absl::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  CUBICML_CHECK(out.good());
}

}  // namespace cubicml
