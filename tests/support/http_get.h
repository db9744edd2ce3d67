// SPDX-License-Identifier: Apache-2.0
//
// A plain HTTP request to a port of this machine.

#ifndef CUBICML_TESTS_SUPPORT_HTTP_GET_H_
#define CUBICML_TESTS_SUPPORT_HTTP_GET_H_

#include <string>

#include "absl/strings/string_view.h"

namespace cubicml {

struct HttpResponse {
  int code = 0;  // 0: no answer
  std::string head;
  std::string body;
};

HttpResponse HttpGet(int port, absl::string_view path);

}  // namespace cubicml

#endif  // CUBICML_TESTS_SUPPORT_HTTP_GET_H_
